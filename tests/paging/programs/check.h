/* Common to the programs: pages whose expected contents can be checked. */
#ifndef CHECK_H
#define CHECK_H
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096
#define WORDS (PAGE / 8)
/* Only a hang ends a wait: a busy machine may take long to write pages out. */
#define LONGEST_WAIT_S 240

static atomic_long checks, wrong;

static inline uint64_t mix(uint64_t x) {
    x ^= x >> 33; x *= 0xff51afd7ed558ccdull;
    x ^= x >> 33; x *= 0xc4ceb9fe1a85ec53ull;
    return x ^ x >> 33;
}

/* Word `i` of a page: a quarter of all pages is noise, a quarter one repeated word, a quarter rising
 * integers, a quarter like text, so that stores which compress meet all that they tell apart. */
static inline uint64_t word_of(uint64_t seed, uint64_t page, int i) {
    switch (page % 4) {
    case 0: return seed + mix(i);
    case 1: return seed;
    case 2: return (seed & 0xffffff) + (uint64_t)i * 6 + ((seed & 0xffffff) + (uint64_t)i * 6 + 3) * 0x100000000ull;
    default: return 0x2061206465676150ull + (mix(seed + i) & 0x0303);
    }
}

/* Fills a page with what (page number, version) says; version 0 is all zeros. */
static inline void fill(void *at, uint64_t page, uint64_t version) {
    uint64_t *words = at;
    uint64_t seed = mix(page * 1000003 + version);
    for (int i = 0; i < WORDS; i++) words[i] = version ? word_of(seed, page, i) : 0;
}

/* Counts the page, and tells whether it holds that. */
static inline int holds(const void *at, uint64_t page, uint64_t version) {
    const uint64_t *words = at;
    uint64_t seed = mix(page * 1000003 + version);
    int bad = 0;
    for (int i = 0; i < WORDS; i++)
        bad += words[i] != (version ? word_of(seed, page, i) : 0);
    checks++;
    if (bad) {
        wrong++;
        fprintf(stderr, "WRONG page %lu version %lu at %p: %d words, first %lx wanted %lx\n",
                page, version, at, bad, words[0], version ? word_of(seed, page, 0) : 0);
    }
    return !bad;
}

static inline void *map(size_t bytes) {
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) { perror("mmap"); exit(3); }
    return at;
}

static inline void need(int good, const char *what) {
    checks++;
    if (!good) { wrong++; fprintf(stderr, "WRONG: %s (errno %d, %s)\n", what, errno, strerror(errno)); }
}

static inline int verdict(const char *name) {
    printf("%s: %ld checks, %ld wrong\n", name, (long)checks, (long)wrong);
    fflush(stdout);
    return wrong ? 1 : 0;
}

/* KiB after `name` in /proc/self/status. */
static inline long status_kib(const char *name) {
    char line[256];
    long kib = -1;
    FILE *file = fopen("/proc/self/status", "r");
    while (file && fgets(line, sizeof line, file))
        if (!strncmp(line, name, strlen(name))) kib = atol(line + strlen(name));
    if (file) fclose(file);
    return kib;
}

static inline double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}
#endif
