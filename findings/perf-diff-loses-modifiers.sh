#!/usr/bin/env bash
# perf 6.1.192 (Debian 12): `perf diff` of a recording with itself finds no counterpart for an event that another one precedes with the
# same number and other modifiers. Recorded with -e cpu-clock:u,cpu-clock:k, the user's functions have a delta of 0, and each of the
# kernel's functions has a baseline and no delta, as if it had gone: the kernel's samples of the first file are paired with the user's
# of the second (builtin-diff.c, evsel_match: type and config alone). No message says so. Needs perf software events.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
# Debian 12's package, pinned; its libraries come with any linux-perf (apt-get install linux-perf).
apt-get download -qq linux-perf=6.1.192-3 2>/dev/null || { echo "linux-perf=6.1.192-3 is not served here"; exit 2; }
dpkg-deb -x linux-perf_*.deb perf-package
PATH=$PWD/perf-package/usr/bin:$PATH
perf --version 2>/dev/null || { echo "perf lacks libraries: $(ldd "$(command -v perf)" | grep "not found" | xargs)"; exit 2; }
perf record -q -e cpu-clock:u,cpu-clock:k -o both.data -- dd if=/dev/zero of=/dev/null bs=512 count=1000000 2>/dev/null
perf record -q -e cpu-clock:k -o kernel.data -- dd if=/dev/zero of=/dev/null bs=512 count=1000000 2>/dev/null
# Lines with a baseline, and those of them that have a delta as well.
rows() {
    perf diff "$1" "$1" 2>/dev/null |
        awk -v event="$2" '/^# Event/ { on = index($0, event) > 0 } on && /^ +[0-9.]+%/ { all++; both += /[+-][0-9.]+%/ } END { print all + 0, both + 0 }'
}
user=$(rows both.data cpu-clock:u) kernel=$(rows both.data cpu-clock:k) alone=$(rows kernel.data cpu-clock:k)
echo "rows, and rows with a delta: cpu-clock:u $user; cpu-clock:k beside it $kernel; cpu-clock:k alone $alone"
[ "${alone% *}" -gt 0 ] && [ "${alone% *}" = "${alone#* }" ] || { echo "the kernel's samples alone have no deltas here"; exit 2; }
[ "${user% *}" = "${user#* }" ] && [ "${kernel% *}" -gt 0 ] && [ "${kernel#* }" = 0 ] || { echo "changed"; exit 1; }
echo "as found: the second event has no delta against itself"
