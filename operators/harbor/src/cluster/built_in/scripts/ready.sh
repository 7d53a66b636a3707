# The database is ready when a client can use it: at the address of the pod, with the password, in Core's
# database.
if [ -e "$PGDATA/initialising" ]; then
    echo "the initialisation of the database has not finished" >&2
    exit 1
fi
PGPASSWORD="$POSTGRES_PASSWORD" PGCONNECT_TIMEOUT=4 exec psql -X -w -A -t -q -h "$POD_IP" -U postgres -d core -c 'select 1'
