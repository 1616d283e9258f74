/* One thread fills memory on node 0; then a thread on each of two nodes uses all of it. */
#include "nodes.h"
#include <pthread.h>

enum { SIZE = 96 << 20 };

static char *start;
static int rounds;

static void *work(void *node) {
    run_on((int)(size_t)node);
    return (void *)use(start, SIZE, LINE, rounds);
}

int main(int argc, char **argv) {
    pthread_t threads[2];
    rounds = rounds_of(argc, argv, 150);
    start = memory(SIZE, 0);
    run_on(0);
    memset(start, 1, SIZE);
    for (size_t at = 0; at < 2; at++) pthread_create(&threads[at], NULL, work, (void *)at);
    for (int at = 0; at < 2; at++) pthread_join(threads[at], NULL);
    return 0;
}
