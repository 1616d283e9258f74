/* A server whose requests are lookups: each follows a random cycle through its memory, one cache
 * line a step, every step in another page. Where the steps go by the TLB's reach, page walks are
 * most of what it does.
 *
 *   cc -O2 -o chase_server chase_server.c
 *   ./chase_server [MIB [SECONDS [never|always]]]
 *
 * It serves until the time is over (or for ever), prints the steps of each second of CPU time, and
 * keeps their number in the global variable `steps`. `always` and `never` ask the kernel for huge
 * or base pages. At the end it walks its whole memory and checks that no line has changed. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

struct line {
    uint64_t next;
    uint64_t check;
    char rest[48];
};

volatile uint64_t steps;

static double seconds(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return now.tv_sec + now.tv_nsec / 1e9;
}

static uint64_t state = 88172645463325252ull;

static uint64_t draw(void) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

int main(int argc, char **argv) {
    uint64_t mib = argc > 1 ? strtoull(argv[1], 0, 10) : 1024;
    double limit = argc > 2 ? strtod(argv[2], 0) : 0;
    const char *pages = argc > 3 ? argv[3] : "";
    uint64_t bytes = mib << 20, count = bytes / sizeof(struct line);
    if (count == 0) {
        fprintf(stderr, "chase_server: give a size in MiB\n");
        return 2;
    }
    struct line *lines =
        mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (lines == MAP_FAILED) {
        perror("chase_server: mmap");
        return 1;
    }
    if (!strcmp(pages, "always")) madvise(lines, bytes, MADV_HUGEPAGE);
    if (!strcmp(pages, "never")) madvise(lines, bytes, MADV_NOHUGEPAGE);
    for (uint64_t i = 0; i < count; i++) lines[i].next = i;
    /* One cycle through all lines (Sattolo). */
    for (uint64_t i = count - 1; i > 0; i--) {
        uint64_t j = draw() % i, swap = lines[i].next;
        lines[i].next = lines[j].next;
        lines[j].next = swap;
    }
    for (uint64_t i = 0; i < count; i++) lines[i].check = lines[i].next * 0x9e3779b97f4a7c15ull;
    setvbuf(stdout, 0, _IOLBF, 0);
    double began = seconds(CLOCK_MONOTONIC), cpu = seconds(CLOCK_PROCESS_CPUTIME_ID), last = began;
    uint64_t at = 0, before = 0;
    for (;;) {
        for (int i = 0; i < 4096; i++) at = lines[at].next;
        steps += 4096;
        double now = seconds(CLOCK_MONOTONIC);
        if (now - last >= 1) {
            double used = seconds(CLOCK_PROCESS_CPUTIME_ID);
            printf("%5.1f s  %6.2f M steps per CPU second\n", now - began,
                   (steps - before) / (used - cpu) / 1e6);
            before = steps, cpu = used, last = now;
        }
        if (limit > 0 && now - began >= limit) break;
    }
    uint64_t wrong = 0;
    for (uint64_t i = 0; i < count; i++)
        wrong += lines[i].check != lines[i].next * 0x9e3779b97f4a7c15ull;
    printf("%s: %llu of %llu lines changed\n", wrong ? "WRONG" : "memory intact",
           (unsigned long long)wrong, (unsigned long long)count);
    return wrong || at >= count;
}
