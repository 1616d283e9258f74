#!/bin/sh
# Creates a PostgreSQL cluster with pgbench's tables in FOLDER, once: `pg_init.sh FOLDER`.
set -e
data=$1
[ -e "$data/ready" ] && exit 0
bin=$(ls -d /usr/lib/postgresql/*/bin | tail -n 1)
if [ "$(id -u)" = 0 ]; then
    mkdir -p "$data" && chown postgres "$data"
    exec setpriv --reuid=postgres --regid=postgres --clear-groups sh "$0" "$data"
fi
"$bin/initdb" -D "$data" --no-sync >/dev/null
"$bin/pg_ctl" -D "$data" -s -w -o "-k $data -h ''" start >/dev/null
"$bin/pgbench" -h "$data" -i -s 5 -q postgres 2>/dev/null
"$bin/pg_ctl" -D "$data" -s -w stop
touch "$data/ready"
