#!/bin/sh
# Runs a command in a memory cgroup of its own: `in_group.sh MIB COMMAND…`;
# BENCH_LIMIT_MIB overrides. Needs root.
limit=${BENCH_LIMIT_MIB:-$1}
shift
if [ -d /sys/fs/cgroup/memory ]; then
    group=/sys/fs/cgroup/memory/bench-$$ file=memory.limit_in_bytes
else
    group=/sys/fs/cgroup/bench-$$ file=memory.max
fi
mkdir "$group" || exit 1
trap 'rmdir "$group"' EXIT
echo $((limit << 20)) >"$group/$file"
sh -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$group" "$@"
