/* Eight threads change, drop, move, protect and read back their own pages, side by side in one
 * mapping, while memory is short. Arguments: MiB, seconds. */
#include "check.h"

static char *base;
static size_t pages_each;
static double until;
#define THREADS 8

static void *work(void *argument) {
    size_t me = (size_t)argument;
    char *own = base + me * pages_each * PAGE;
    uint64_t *version = calloc(pages_each, sizeof *version);
    unsigned seed = me + 1;
    uint64_t next = 1;
    /* A mapping of this thread alone, that is resized and moved. */
    size_t small_pages = 20000;
    char *small = map(small_pages * PAGE);
    uint64_t *small_version = calloc(400000, sizeof *small_version);
    do {
        size_t at = rand_r(&seed) % pages_each;
        size_t count = 1 + rand_r(&seed) % 64;
        if (at + count > pages_each) count = pages_each - at;
        switch (rand_r(&seed) % 16) {
        case 0: /* dropped: zeros from now on */
            need(madvise(own + at * PAGE, count * PAGE, MADV_DONTNEED) == 0, "DONTNEED");
            for (size_t i = 0; i < count; i++) version[at + i] = 0;
            break;
        case 1: /* unmapped and mapped again */
            need(mmap(own + at * PAGE, count * PAGE, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == own + at * PAGE, "MAP_FIXED");
            for (size_t i = 0; i < count; i++) version[at + i] = 0;
            break;
        case 2: /* protected, read, and writable again */
            need(mprotect(own + at * PAGE, count * PAGE, PROT_READ) == 0, "PROT_READ");
            for (size_t i = 0; i < count; i++) holds(own + (at + i) * PAGE, me << 32 | (at + i), version[at + i]);
            need(mprotect(own + at * PAGE, count * PAGE, PROT_NONE) == 0, "PROT_NONE");
            need(mprotect(own + at * PAGE, count * PAGE, PROT_READ | PROT_WRITE) == 0, "PROT_WRITE");
            break;
        case 3: { /* moved, grown or shrunk */
            size_t want = 15000 + rand_r(&seed) % 10000;
            char *moved = mremap(small, small_pages * PAGE, want * PAGE, MREMAP_MAYMOVE);
            need(moved != MAP_FAILED, "mremap");
            if (moved == MAP_FAILED) break;
            for (size_t i = want; i < small_pages; i++) small_version[i] = 0;
            small = moved;
            small_pages = want;
            break;
        }
        case 4: case 5: { /* a page of the small mapping */
            size_t i = rand_r(&seed) % small_pages;
            holds(small + i * PAGE, i, small_version[i]);
            small_version[i] = next++;
            fill(small + i * PAGE, i, small_version[i]);
            break;
        }
        case 6: case 7: case 8: case 9: /* changed */
            for (size_t i = 0; i < count; i++) {
                version[at + i] = next++;
                fill(own + (at + i) * PAGE, me << 32 | (at + i), version[at + i]);
            }
            break;
        default: /* read back */
            for (size_t i = 0; i < count; i++)
                holds(own + (at + i) * PAGE, me << 32 | (at + i), version[at + i]);
        }
    } while (now() < until);
    for (size_t i = 0; i < pages_each; i++) holds(own + i * PAGE, me << 32 | i, version[i]);
    for (size_t i = 0; i < small_pages; i++) holds(small + i * PAGE, i, small_version[i]);
    munmap(small, small_pages * PAGE);
    free(version);
    free(small_version);
    return NULL;
}

int main(int count, char **arguments) {
    size_t mib = count > 1 ? atol(arguments[1]) : 256;
    until = now() + (count > 2 ? atof(arguments[2]) : 5);
    pages_each = mib * 256 / THREADS;
    base = map(pages_each * THREADS * PAGE);
    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, work, (void *)i);
    for (size_t i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    return verdict("churn");
}
