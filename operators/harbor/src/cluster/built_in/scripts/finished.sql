\! rm -f -- "$PGDATA/initialising" && sync
