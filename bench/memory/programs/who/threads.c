/* Four threads that replace small blocks at random. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static long steps;

static void *work(void *number) {
    unsigned random = (unsigned)(size_t)number + 1;
    void *blocks[1000] = {0};
    for (long i = 0; i < steps; i++) {
        random = random * 1664525 + 1013904223;
        int at = (random >> 16) % 1000;
        size_t size = 16 + (random >> 8) % 200;
        free(blocks[at]);
        blocks[at] = malloc(size);
        memset(blocks[at], 1, size < 32 ? size : 32);
    }
    for (int i = 0; i < 1000; i++) free(blocks[i]);
    return NULL;
}

int main(int argc, char **argv) {
    pthread_t threads[4];
    steps = argc > 1 ? atol(argv[1]) : 1000000;
    for (size_t i = 0; i < 4; i++) pthread_create(&threads[i], NULL, work, (void *)i);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
}
