/* A server that uses one page in so many of a large mapping: huge pages would fill up the rest.
 *
 *   cc -O2 -o sparse_server sparse_server.c
 *   ./sparse_server [MIB [SECONDS [EVERY [GROWS-BY-MIB]]]]
 *
 * It follows a random cycle through its pages for the given time and keeps the number of steps in
 * the global variable `steps`. Half way it touches so much more memory, every page of it. At the end
 * it checks its memory and prints its resident set, now and at most, in KiB. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

volatile uint64_t steps;

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec / 1e9;
}

static uint64_t state = 88172645463325252ull;

static uint64_t draw(void) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static void *mapped(uint64_t bytes) {
    void *memory = mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        perror("sparse_server: mmap");
        exit(1);
    }
    return memory;
}

static uint64_t resident_kib(void) {
    uint64_t size, resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file || fscanf(file, "%lu %lu", &size, &resident) != 2) exit(1);
    fclose(file);
    return resident * (uint64_t)sysconf(_SC_PAGESIZE) / 1024;
}

int main(int argc, char **argv) {
    uint64_t mib = argc > 1 ? strtoull(argv[1], 0, 10) : 256;
    double limit = argc > 2 ? strtod(argv[2], 0) : 3;
    uint64_t every = argc > 3 ? strtoull(argv[3], 0, 10) : 8;
    uint64_t grows = argc > 4 ? strtoull(argv[4], 0, 10) << 20 : 0;
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    if (every == 0 || mib == 0) {
        fprintf(stderr, "sparse_server: give sizes above 0\n");
        return 2;
    }
    uint64_t count = (mib << 20) / page / every;
    char *memory = mapped(mib << 20);
    /* Word 0 of a used page is the next one's number, word 1 checks it. */
#define PAGE(i) ((uint64_t *)(memory + (i) * every * page))
    for (uint64_t i = 0; i < count; i++) PAGE(i)[0] = i;
    for (uint64_t i = count - 1; i > 0; i--) {
        uint64_t j = draw() % i, swap = PAGE(i)[0];
        PAGE(i)[0] = PAGE(j)[0], PAGE(j)[0] = swap;
    }
    for (uint64_t i = 0; i < count; i++) PAGE(i)[1] = ~PAGE(i)[0];
    double began = now();
    uint64_t at = 0;
    char *more = 0;
    for (double time = began; time - began < limit; time = now()) {
        for (int i = 0; i < 4096; i++) at = PAGE(at)[0];
        steps += 4096;
        if (!more && grows && time - began >= limit / 2) {
            more = mapped(grows);
            memset(more, 1, grows);
        }
    }
    uint64_t wrong = 0;
    for (uint64_t i = 0; i < count; i++) wrong += PAGE(i)[1] != ~PAGE(i)[0];
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    printf("%s resident %lu KiB now, %ld KiB at most\n", wrong ? "WRONG" : "memory intact",
           resident_kib(), usage.ru_maxrss);
    return wrong != 0 || at >= count;
}
