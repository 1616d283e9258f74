#!/bin/sh
# Starts PostgreSQL on a cluster created by pg_init.sh, drives it with pgbench, and stops it:
# `pg_load.sh FOLDER OPTIONS…`.
set -e
if [ "$(id -u)" = 0 ]; then
    exec setpriv --reuid=postgres --regid=postgres --clear-groups sh "$0" "$@"
fi
data=$1
shift
bin=$(ls -d /usr/lib/postgresql/*/bin | tail -n 1)
"$bin/postgres" -D "$data" -k "$data" -h '' 2>/dev/null &
server=$!
until "$bin/pg_isready" -q -h "$data"; do sleep 0.05; done
"$bin/pgbench" -h "$data" -n "$@" postgres >/dev/null 2>&1
kill -INT $server
wait $server
