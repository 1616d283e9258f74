#!/usr/bin/env bash
# Preloaded allocators and the figures that glibc's functions give (Debian 12). gperftools 2.10 answers mallinfo, and
# leaves mallinfo2, which replaced it since it overflows at 2 GiB, to glibc, whose heap is empty: one program sees 100
# MB in use by the one and 0 by the other. With jemalloc 5.3.0 and mimalloc 2.0.9 both are glibc's, 0. mallopt answers
# 1 (done) under all three, though none of them reads it.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
apt-get download -qq libtcmalloc-minimal4=2.10-1 libjemalloc2=5.3.0-1 libmimalloc2.0=2.0.9+ds-2 2>/dev/null
for package in *.deb; do dpkg -x "$package" root; done
cat > figures.c <<'C'
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int main(void) {
    for (int i = 0; i < 1000; i++) memset(malloc(100000), 1, 100000);
    int old = mallinfo().uordblks / 1000000;
    int new = mallinfo2().uordblks / 1000000;
    printf("%d %d %d\n", old, new, mallopt(M_MMAP_THRESHOLD, 1 << 20));
    return 0;
}
C
gcc -O0 -Wno-deprecated-declarations figures.c -o figures
libraries=$PWD/root/usr/lib/x86_64-linux-gnu
with() { LD_PRELOAD=${1:+$libraries/$1} ./figures; }
found="$(with "") / $(with libtcmalloc_minimal.so.4) / $(with libjemalloc.so.2) / $(with libmimalloc.so.2.0)"
echo "MB by mallinfo, by mallinfo2, and what mallopt returns: glibc / tcmalloc / jemalloc / mimalloc: $found"
[ "$found" = "100 100 1 / 106 0 1 / 0 0 1 / 0 0 1" ] || { echo "changed"; exit 1; }
echo "as found: mallinfo2 says 0 where mallinfo says 106"
