#!/usr/bin/env bash
# glibc 2.36 (Debian 12) and 2.43 (Debian sid, libc6 2.43-7): malloc learns from the first free of a large block that such
# blocks come again (mallopt(3), M_MMAP_THRESHOLD: "dynamic"), and takes the next ones from the heap without a page fault.
# posix_memalign and aligned_alloc of a block aligned to a page do not profit: they ask malloc's code for the size plus
# the alignment, which is more than the threshold that the last free has set. Such a block is mapped, faulted in and
# unmapped each time, for ever. (Alignments of 32 or 64 bytes, of which C++'s aligned new asks, are learned or not by chance.)
# Output: page faults of each of 12 rounds that take, write and free one block of 12,000,000 bytes: about 2,930 each by
# posix_memalign, none from the third on by malloc. With both thresholds set above the size, nearly none by either.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
uri=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | grep -m1 /debian/)
echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $uri sid main" > sid.list
mkdir -p lists/partial cache/archives/partial
get() {
    apt-get -qq -o Dir::Etc::SourceList="$PWD/sid.list" -o Dir::Etc::SourceParts=/dev/null \
        -o Dir::State::Lists="$PWD/lists" -o Dir::Cache="$PWD/cache" -o APT::Sandbox::User=root "$@" 2>/dev/null
}
get update && get download libc6=2.43-7 || { echo "no libc6 2.43-7 here: this finding is about that"; exit 2; }
dpkg -x libc6_*.deb root
lib=$(echo root/usr/lib/*-linux-gnu)
cat > rounds.c <<'C'
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
static long faults(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_minflt;
}
int main(int count, char **words) {
    size_t alignment = strtoul(words[count - 1], NULL, 10), size = 12000000;
    for (int round = 0; round < 12; round++) {
        long before = faults();
        void *block = NULL;
        if (alignment == 0) block = malloc(size);
        else if (posix_memalign(&block, alignment, size)) return 1;
        memset(block, 1, size);
        free(block);
        printf("%ld ", faults() - before);
    }
    return 0;
}
C
gcc -O1 -fno-builtin rounds.c -o rounds
many() { tr ' ' '\n' <<< "$1" | awk '$1 > 2000 { n++ } END { print n + 0 }'; }
changed=0
for with in "" "$lib/ld-linux-x86-64.so.2 --library-path $lib"; do
    if [ -z "$with" ]; then getconf GNU_LIBC_VERSION; else echo "glibc 2.43-7"; fi
    by_malloc=$($with ./rounds 0) aligned=$($with ./rounds 4096)
    with_thresholds=$(GLIBC_TUNABLES=glibc.malloc.mmap_threshold=33554432:glibc.malloc.trim_threshold=67108864 $with ./rounds 4096)
    printf '  malloc:          %s\n  posix_memalign:  %s\n  thresholds set:  %s\n' "$by_malloc" "$aligned" "$with_thresholds"
    [ "$(many "$by_malloc")" -le 3 ] && [ "$(many "$aligned")" = 12 ] && [ "$(many "$with_thresholds")" -le 4 ] || changed=1
done
[ "$changed" = 0 ] || { echo "changed"; exit 1; }
echo "as found: blocks aligned to a page are mapped each time, those of malloc twice"
