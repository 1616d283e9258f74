#!/usr/bin/env bash
# Linux 6.18, perf 6.1.192: memory that the kernel populates for a call (MAP_POPULATE, mlock, buffers pinned for direct I/O) counts as
# minor faults in getrusage and not at all in perf's page-faults event or the tracepoint exceptions:page_fault_user
# (mm/memory.c, mm_account_fault: perf events only where a register set is at hand). 256 MiB: 65,536 beside 54.
# Peers that print one of the two as "page faults" differ by that much: /usr/bin/time, hyperfine and top count the former, perf the latter.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
# Debian 12's package, pinned; its libraries come with any linux-perf (apt-get install linux-perf).
apt-get download -qq linux-perf=6.1.192-3 2>/dev/null || { echo "linux-perf=6.1.192-3 is not served here"; exit 2; }
dpkg-deb -x linux-perf_*.deb perf-package
PATH=$PWD/perf-package/usr/bin:$PATH
perf --version 2>/dev/null || { echo "perf lacks libraries: $(ldd "$(command -v perf)" | grep "not found" | xargs)"; exit 2; }
cat > populate.c <<'C'
#define _GNU_SOURCE
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
int main(void) {
    struct rusage before, after;
    getrusage(RUSAGE_SELF, &before);
    if (mmap(0, 256 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0) == MAP_FAILED) return 1;
    getrusage(RUSAGE_SELF, &after);
    printf("%ld\n", after.ru_minflt - before.ru_minflt);
}
C
gcc -O0 populate.c -o populate
own=$(perf stat -x, -e page-faults -o stat.csv ./populate)
perf=$(sed -n 's/^\([0-9]*\),,page-faults.*/\1/p' stat.csv)
echo "getrusage: $own minor faults; perf stat: $perf page faults"
[ "$own" -gt 100 ] && [ "$perf" -lt 200 ] && [ "$own" -ge $((perf * 2)) ] || { echo "changed"; exit 1; }
echo "as found: populated pages are in getrusage alone"
