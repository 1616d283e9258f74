#!/bin/sh
# Starts a private redis-server with much data and makes it save snapshots (fork) while clients
# write.
set -e
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
redis-server --port 0 --unixsocket "$dir/s" --save '' --dir "$dir" --loglevel warning --rdbcompression no &
server=$!
until redis-cli -s "$dir/s" ping >/dev/null 2>&1; do sleep 0.05; done
redis-cli -s "$dir/s" debug populate 150000 key 1000 >/dev/null
for _ in 1 2 3; do
    redis-cli -s "$dir/s" bgsave >/dev/null
    redis-benchmark -s "$dir/s" -q -n 60000 -P 16 -c 10 -r 150000 -d 1000 -t set >/dev/null
done
redis-cli -s "$dir/s" shutdown nosave
wait $server
