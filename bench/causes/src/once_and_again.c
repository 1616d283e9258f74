/* Touches FIRST pages once and keeps them, then maps, touches and unmaps AGAIN pages ROUNDS times:
 * first touches together with churn. FIRST + AGAIN of its faults are first touches, (ROUNDS - 1) x
 * AGAIN are churn; without the calls, the two must be distinguished in other ways. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

static volatile char *take(size_t pages) {
    volatile char *at = mmap(NULL, pages << 12, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) {
        perror("mmap");
        exit(1);
    }
    madvise((void *)at, pages << 12, MADV_NOHUGEPAGE);
    for (size_t page = 0; page < pages; page++) at[page << 12] = 1;
    return at;
}

int main(int argc, char **argv) {
    size_t first = argc > 1 ? strtoul(argv[1], NULL, 10) : 256000;
    int rounds = argc > 2 ? atoi(argv[2]) : 100;
    size_t again = argc > 3 ? strtoul(argv[3], NULL, 10) : 2048;
    volatile char *kept = take(first);
    for (; rounds > 0; rounds--) munmap((void *)take(again), again << 12);
    return kept[first << 11] != 1;
}
