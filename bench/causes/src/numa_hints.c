/* Threads on two nodes touch each page of the same memory again and again: NUMA balancing makes pages
 * inaccessible to learn who uses them, and never learns that. Takes kernel.numa_balancing=1. */
#include "nodes.h"
#include <pthread.h>

enum { SIZE = 256 << 20 };

static char *start;
static int rounds;

static void *work(void *node) {
    run_on((int)(size_t)node);
    return (void *)use(start, SIZE, PAGE, rounds);
}

int main(int argc, char **argv) {
    pthread_t threads[2];
    rounds = rounds_of(argc, argv, 8000);
    start = memory(SIZE, -1);
    memset(start, 1, SIZE);
    for (size_t at = 0; at < 2; at++) pthread_create(&threads[at], NULL, work, (void *)at);
    for (int at = 0; at < 2; at++) pthread_join(threads[at], NULL);
    return 0;
}
