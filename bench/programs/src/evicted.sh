#!/bin/sh
# Runs a command after evicting FILE from the page cache: `evicted.sh FILE COMMAND…`;
# BENCH_READ_FIRST=1 reads it completely.
sync "$1"
dd if="$1" iflag=nocache count=0 status=none
[ -n "$BENCH_READ_FIRST" ] && cat "$1" >/dev/null
shift
exec "$@"
