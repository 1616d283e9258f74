#!/usr/bin/env bash
# libhugetlbfs 2.23 (Debian 12) with glibc 2.36: `hugectl --heap` and `hugectl --thp` change nothing and say nothing. glibc 2.34
# took away the hook (__morecore) by which the library served the heap. Exit status 0, no message unless HUGETLB_VERBOSE=3
# ("Not setting up morecore because it's not available"). Seen with huge pages reserved as well.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
apt-get download -qq libhugetlbfs-bin=2.23-5 libhugetlbfs0=2.23-5 libhugetlbfs-dev=2.23-5 2>/dev/null
for package in *.deb; do dpkg -x "$package" root; done
export PATH=$PATH:$PWD/root/usr/bin LD_LIBRARY_PATH=$PWD/root/usr/lib/x86_64-linux-gnu
cat > heap.c <<'C'
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int main(void) {
    size_t size = 64 << 20;
    char *p = malloc(size), line[256];
    memset(p, 1, size);
    FILE *f = fopen("/proc/self/smaps_rollup", "r");
    while (fgets(line, sizeof line, f))
        if (strstr(line, "AnonHugePages") || strstr(line, "Private_Hugetlb")) fputs(line, stdout);
    return p[size - 1] != 1;
}
C
gcc -O0 heap.c -o heap
grep -q '\[always\]' /sys/kernel/mm/transparent_hugepage/enabled && { echo "huge pages are always on here: nothing to see"; exit 2; }
for option in --heap --thp; do
    said=$(hugectl "$option" ./heap 2>&1)
    echo "hugectl $option: exit status 0,"$'\n'"$said"
    [ "$(grep -c ' 0 kB$' <<< "$said")" = 2 ] && [ "$(wc -l <<< "$said")" = 2 ] || { echo "changed"; exit 1; }
done
why=$(HUGETLB_VERBOSE=3 hugectl --heap ./heap 2>&1)
grep 'morecore.*not available' <<< "$why"
echo "as found: no huge page, no message"
