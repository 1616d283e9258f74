#!/usr/bin/env bash
# jemalloc 5.3.0 (Debian 12): a block of 16 MiB is purged as soon as it is freed, whatever finite decay is set.
# dirty_decay_ms:60000, "keep freed pages for a minute", changes nothing for a program that frees and takes such a block
# again within milliseconds: each round has 4,096 page faults. Nor does oversize_threshold:0, which ends the special
# treatment of blocks from 8 MiB on, alone or with that decay. Only dirty_decay_ms:-1, "never purge", does. Blocks of 4 MiB
# are kept by default.
# Output: about 4,100 faults a round by default, with a decay of a minute and without the threshold; less than 100 with -1,
# and for blocks of 4 MiB.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
apt-get download -qq 'libjemalloc2=5.3.0-1*' 2>/dev/null || { echo "no libjemalloc2 5.3.0-1 here: this finding is about Debian 12"; exit 2; }
dpkg -x libjemalloc2_*.deb root
lib=$(echo root/usr/lib/*-linux-gnu/libjemalloc.so.2)
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
    size_t size = (size_t)atoi(words[1]) << 20;
    long before = 0;
    for (int i = 0; i < 21; i++) {
        if (i == 1) before = faults();
        char *block = malloc(size);
        memset(block, 1, size);
        free(block);
    }
    printf("%ld\n", (faults() - before) / 20);
}
C
gcc -O0 -fno-builtin rounds.c -o rounds
while read -r size settings least most; do
    seen=$(MALLOC_CONF=${settings#-} LD_PRELOAD=$PWD/$lib ./rounds "$size")
    echo "$size MiB, ${settings#-}: $seen faults a round"
    [ "$seen" -ge "$least" ] && [ "$seen" -le "$most" ] || { echo "changed"; exit 1; }
done <<'ROUNDS'
16 - 4000 4200
16 dirty_decay_ms:60000 4000 4200
16 dirty_decay_ms:-1 0 100
16 oversize_threshold:0 4000 4200
16 oversize_threshold:0,dirty_decay_ms:60000 4000 4200
4 - 0 100
ROUNDS
echo "as found: jemalloc 5.3.0 purges large blocks at once, whatever finite decay is set"
