#!/usr/bin/env bash
# perf 6.1.192 (Debian 12), Linux 6.18: `perf kmem --page stat` counts movable pages under "Reclaimable" and reclaimable ones under
# "Movable". Its table has the migrate types in an order that the kernel no longer has (include/linux/mmzone.h, enum migratetype:
# MIGRATE_MOVABLE is 1, MIGRATE_RECLAIMABLE 2). The memory of programs, allocated with GFP_HIGHUSER_MOVABLE, is thus shown as
# reclaimable, which reads as if slabs were what fills memory; the tracepoint beside it says migratetype=1. Needs root.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
# Debian 12's package, pinned; its libraries come with any linux-perf (apt-get install linux-perf).
apt-get download -qq linux-perf=6.1.192-3 2>/dev/null || { echo "linux-perf=6.1.192-3 is not served here"; exit 2; }
dpkg-deb -x linux-perf_*.deb perf-package
PATH=$PWD/perf-package/usr/bin:$PATH
perf --version 2>/dev/null || { echo "perf lacks libraries: $(ldd "$(command -v perf)" | grep "not found" | xargs)"; exit 2; }
perf record -q -e kmem:mm_page_alloc -e kmem:mm_page_free -o kmem.data -- python3 -c 'bytearray(b"x") * (64 << 20)' 2>/dev/null ||
    { echo "needs root, and the tracepoints of kmem"; exit 2; }
perf script -i kmem.data -F event,trace 2>/dev/null | awk '
    /mm_page_alloc/ && / order=0 / { all++; movable += /__GFP_MOVABLE|_MOVABLE/ }
    END { print all + 0, movable + 0 }' > truth
read -r all movable < truth
perf kmem -i kmem.data --page stat 2>/dev/null | awk '$1 == "0" && NF == 6 { gsub(/\./, 0); print $2, $3, $4; exit }' > shown
read -r unmovable reclaimable shown_movable < shown
echo "pages allocated singly: $all, $movable of them with GFP_MOVABLE"
echo "perf kmem: $unmovable unmovable, $reclaimable reclaimable, $shown_movable movable"
[ "$movable" -gt 10000 ] || { echo "this machine allocates the program's memory in larger pieces"; exit 2; }
[ $((reclaimable * 10)) -ge $((movable * 9)) ] && [ $((shown_movable * 10)) -lt "$movable" ] || { echo "changed"; exit 1; }
echo "as found: movable pages stand under Reclaimable"
