/* Two threads fill and free small vectors. With both of glibc's thresholds raised, no memory goes
 * back to the kernel, and the remaining cost is the allocator's own code. */
#include <pthread.h>
#include <stdlib.h>

enum { VECTORS = 20000 };

static long rounds;

static void *work(void *start) {
    int **vectors = malloc(VECTORS * sizeof *vectors);
    unsigned state = (unsigned)(size_t)start;
    volatile long sum = 0;
    for (long round = 0; round < rounds; round++) {
        for (int at = 0; at < VECTORS; at++) {
            state = state * 1103515245u + 12345u;
            unsigned length = (state >> 16) % 64 + 1;
            vectors[at] = malloc(length * sizeof **vectors);
            for (unsigned i = 0; i < length; i++) vectors[at][i] = at;
        }
        for (int at = 0; at < VECTORS; at++) {
            sum += vectors[at][0];
            free(vectors[at]);
        }
    }
    free(vectors);
    return NULL;
}

int main(int argc, char **argv) {
    pthread_t threads[2];
    rounds = argc > 1 ? atol(argv[1]) : 600;
    for (size_t at = 0; at < 2; at++) pthread_create(&threads[at], NULL, work, (void *)(at + 1));
    for (int at = 0; at < 2; at++) pthread_join(threads[at], NULL);
    return 0;
}
