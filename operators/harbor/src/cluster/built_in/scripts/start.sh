# Read by bash before the entrypoint of the database image runs (BASH_ENV). The entrypoint takes a data
# directory with a PG_VERSION for an initialised one, even if its first start was interrupted: without
# password, or without databases. The file "initialising" marks such a directory: it is created before the
# initialisation, and the last file of the initialisation removes it.
case "$0" in
*/docker-entrypoint.sh) ;;
*) return 0 ;;
esac
unset BASH_ENV
harbor_mark="${PGDATA:?}/initialising"
harbor_found=
for harbor_file in "$PGDATA"/PG_VERSION "$PGDATA"/pg*/PG_VERSION; do
    if [ -e "$harbor_file" ]; then harbor_found=yes; fi
done
if [ -e "$harbor_mark" ]; then
    # During the initialisation the server listens at no address. A server that was started otherwise may
    # have been given data.
    for harbor_file in "$PGDATA"/pg*/postmaster.opts; do
        if [ -e "$harbor_file" ] && ! grep -q listen_addresses "$harbor_file"; then
            # The status of the HarborCluster quotes 200 bytes of this message.
            harbor_message="Initialisation was interrupted, and the server has run since: nothing is deleted. \
Check its databases and its password, then delete the file $harbor_mark"
            printf '%s\n' "$harbor_message" >&2
            printf '%s\n' "$harbor_message" 2>/dev/null >"${TERMINATION_LOG:-/dev/termination-log}" || true
            exit 1
        fi
    done
    echo "The first initialisation was interrupted before any client could connect: it is repeated." >&2
    rm -rf -- "$PGDATA"/pg*
elif [ -z "$harbor_found" ]; then
    mkdir -p -- "$PGDATA"
    : >"$harbor_mark"
fi
unset harbor_mark harbor_found harbor_file
