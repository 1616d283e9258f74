#!/bin/sh
# Starts a private redis-server (which bundles jemalloc), loads it, and stops it.
set -e
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
redis-server --port 0 --unixsocket "$dir/s" --save '' --dir "$dir" --loglevel warning &
server=$!
until redis-cli -s "$dir/s" ping >/dev/null 2>&1; do :; done
redis-benchmark -s "$dir/s" -q -n 200000 -P 32 -c 20 -r 100000 -d 512 -t set,get,lpush >/dev/null
redis-cli -s "$dir/s" shutdown nosave
wait $server
