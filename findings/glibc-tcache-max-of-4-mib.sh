#!/usr/bin/env bash
# glibc 2.43 (Debian sid, libc6 2.43-7): glibc.malloc.tcache_max may be up to 4 MiB since 2.42, and a thread then keeps large
# freed blocks. 4194304, the 4 MiB of the manual, is ignored without a word, as is all from 4194281 on; 4194280, 24 bytes
# less, works. ld.so --list-tunables shows no bound.
# Output: page faults of a round that takes, writes and frees 64 blocks of 64 KiB: about 1,000 by default and with 4194281
# and 4194304, none with 4194280 and 65536.
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
int main(void) {
    static char *block[64];
    long before = 0;
    for (int i = 0; i < 21; i++) {
        if (i == 1) before = faults();
        for (int j = 0; j < 64; j++) {
            block[j] = malloc(65536);
            memset(block[j], 1, 65536);
        }
        for (int j = 0; j < 64; j++) free(block[j]);
    }
    printf("%ld\n", (faults() - before) / 20);
}
C
gcc -O0 rounds.c -o rounds
while read -r value least most; do
    seen=$(GLIBC_TUNABLES=glibc.malloc.tcache_max=$value "$(echo "$lib"/ld-linux*.so.*)" --library-path "$lib" ./rounds)
    echo "tcache_max=$value: $seen faults a round"
    [ "$seen" -ge "$least" ] && [ "$seen" -le "$most" ] || { echo "changed"; exit 1; }
done <<'ROUNDS'
1032 900 1100
65536 0 20
4194280 0 20
4194281 900 1100
4194304 900 1100
ROUNDS
echo "as found: glibc 2.43 ignores a tcache_max above 4194280"
