/* Threads go over one mapping in runs of pages, read all words of each or write all anew, while memory is
 * short: as many checked pages in a second as the disk gives. Arguments: MiB, threads, seconds. */
#include "check.h"

static char *base;
static size_t pages_each;
static double until;

/* A page whose check costs less than reading it: a first word that no other page or version has, and steps. */
static uint64_t first_word(uint64_t page, uint64_t version) { return mix(page * 0x100000001b3u + version); }
#define STEP 0x9e3779b97f4a7c15ull

static void write_page(char *at, uint64_t page, uint64_t version) {
    uint64_t *words = (uint64_t *)at, first = first_word(page, version);
    for (uint64_t i = 0; i < WORDS; i++) words[i] = first + i * STEP;
}

static int is_page(const char *at, uint64_t page, uint64_t version) {
    const uint64_t *words = (const uint64_t *)at;
    uint64_t first = first_word(page, version), differences = 0;
    for (uint64_t i = 0; i < WORDS; i++) differences |= words[i] ^ (first + i * STEP);
    return !differences;
}

static void *work(void *argument) {
    size_t me = (size_t)argument;
    char *own = base + me * pages_each * PAGE;
    uint32_t *version = calloc(pages_each, sizeof *version);
    unsigned seed = me * 7919 + (unsigned)getpid();
    long checked = 0, bad = 0;
    for (size_t i = 0; i < pages_each; i++) write_page(own + i * PAGE, me << 32 | i, 0);
    do {
        /* One run in 16 is a good part of the mapping, the others are a few pages. */
        size_t at = rand_r(&seed) % pages_each;
        size_t count = 1 + rand_r(&seed) % (rand_r(&seed) % 16 ? 8 : pages_each);
        if (at + count > pages_each) count = pages_each - at;
        int is_written = rand_r(&seed) % 8 == 0;
        for (size_t i = at; i < at + count; i++) {
            if (!is_page(own + i * PAGE, me << 32 | i, version[i])) {
                bad++;
                fprintf(stderr, "WRONG page %zu of thread %zu, version %u\n", i, me, version[i]);
            }
            if (is_written) write_page(own + i * PAGE, me << 32 | i, ++version[i]);
        }
        checked += (long)count;
    } while (now() < until);
    checks += checked;
    wrong += bad;
    free(version);
    return NULL;
}

int main(int count, char **arguments) {
    size_t mib = count > 1 ? atol(arguments[1]) : 256, threads = count > 2 ? atol(arguments[2]) : 4;
    until = now() + (count > 3 ? atof(arguments[3]) : 5);
    pages_each = mib * 256 / threads;
    base = map(pages_each * threads * PAGE);
    pthread_t workers[64];
    need(threads <= 64, "at most 64 threads");
    for (size_t i = 0; i < threads; i++) pthread_create(&workers[i], NULL, work, (void *)i);
    for (size_t i = 0; i < threads; i++) pthread_join(workers[i], NULL);
    return verdict("soak");
}
