/* Eight threads read and write the same pages at random, under locks of their own: each page has a
 * counter that all of them increment. Arguments: MiB, seconds. */
#include "check.h"
#define THREADS 8
#define LOCKS 1024
static char *base;
static size_t pages;
static double until;
static pthread_mutex_t locks[LOCKS];
static uint64_t *version;

static void *work(void *argument) {
    unsigned seed = (size_t)argument + 1;
    do {
        for (int i = 0; i < 64; i++) {
            size_t at = rand_r(&seed) % pages;
            pthread_mutex_lock(&locks[at % LOCKS]);
            holds(base + at * PAGE, at, version[at]);
            if (rand_r(&seed) % 2) fill(base + at * PAGE, at, ++version[at]);
            pthread_mutex_unlock(&locks[at % LOCKS]);
        }
    } while (now() < until);
    return NULL;
}

int main(int count, char **arguments) {
    size_t mib = count > 1 ? atol(arguments[1]) : 256;
    until = now() + (count > 2 ? atof(arguments[2]) : 5);
    pages = mib * 256;
    base = malloc(pages * PAGE + PAGE);
    base += PAGE - (uintptr_t)base % PAGE;
    version = calloc(pages, sizeof *version);
    for (int i = 0; i < LOCKS; i++) pthread_mutex_init(&locks[i], NULL);
    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, work, (void *)i);
    for (size_t i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    for (size_t i = 0; i < pages; i++) holds(base + i * PAGE, i, version[i]);
    return verdict("shared");
}
