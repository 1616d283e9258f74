#!/bin/sh
# Starts a private nginx, drives it with ab, and stops it.
set -e
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
port=$((20000 + $$ % 10000))
chmod 755 "$dir"
head -c 20000 /dev/zero >"$dir/page"
cat >"$dir/conf" <<CONF
daemon off; pid $dir/pid; error_log $dir/error; worker_processes 1;
events {}
http { access_log off; client_body_temp_path $dir/b; server { listen 127.0.0.1:$port; root $dir; } }
CONF
nginx -c "$dir/conf" -p "$dir" 2>/dev/null &
server=$!
until [ -s "$dir/pid" ]; do sleep 0.05; done
ab -q -k -n 30000 -c 10 "http://127.0.0.1:$port/page" >/dev/null
kill -QUIT $server
wait $server
