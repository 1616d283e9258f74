#!/usr/bin/env bash
# glibc 2.36 (Debian 12) reads a tunable's number and ignores what follows it: GLIBC_TUNABLES=glibc.malloc.mmap_threshold=64M
# is a threshold of 64 bytes. Every block beyond that becomes a mapping of its own: the opposite of what was asked, without a
# word. MALLOC_MMAP_THRESHOLD_=64M does the same. Seen with Debian's libc6 2.36-9+deb12u.
# Output: 0 mapped blocks for 4194304, 101 for 4M (100 blocks of 1,000 bytes, and the thread's cache).
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
apt-get download -qq 'libc6=2.36-9*' 2>/dev/null
dpkg -x libc6_*.deb root
lib=root/lib/x86_64-linux-gnu
version=$("$lib/libc.so.6" | sed -n '1s/.*version \([0-9.]*[0-9]\).*/\1/p')
[ "$version" = 2.36 ] || { echo "glibc $version, not 2.36: this finding is about Debian 12"; exit 2; }
cat > blocks.c <<'C'
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
int main(void) {
    size_t before = mallinfo2().hblks;
    for (int i = 0; i < 100; i++)
        if (!malloc(1000)) return 1;
    size_t mapped = mallinfo2().hblks - before;
    printf("%zu mapped blocks\n", mapped);
}
C
gcc -O0 blocks.c -o blocks
with() { "$lib/ld-linux-x86-64.so.2" --library-path "$lib" ./blocks; }
for name in GLIBC_TUNABLES MALLOC_MMAP_THRESHOLD_; do
    prefix=
    [ "$name" = MALLOC_MMAP_THRESHOLD_ ] || prefix=glibc.malloc.mmap_threshold=
    for value in 4194304 4M; do
        seen=$(export "$name=$prefix$value"; with)
        echo "$name $value: $seen"
        case $value in
            4M) [ "$seen" = "101 mapped blocks" ] ;;
            *) [ "$seen" = "0 mapped blocks" ] ;;
        esac || { echo "changed"; exit 1; }
    done
done
echo "as found: glibc $version takes 4M for 4 bytes"
