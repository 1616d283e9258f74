/* A thread on each of two nodes fills memory and uses it there: as it should be. */
#include "nodes.h"
#include <pthread.h>

enum { SIZE = 64 << 20 };

static int rounds;

static void *work(void *node) {
    run_on((int)(size_t)node);
    char *start = memory(SIZE, -1);
    memset(start, 1, SIZE);
    return (void *)use(start, SIZE, LINE, rounds);
}

int main(int argc, char **argv) {
    pthread_t threads[2];
    rounds = rounds_of(argc, argv, 200);
    for (size_t at = 0; at < 2; at++) pthread_create(&threads[at], NULL, work, (void *)at);
    for (int at = 0; at < 2; at++) pthread_join(threads[at], NULL);
    return 0;
}
