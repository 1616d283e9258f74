/* All memory is bound to node 0, as if one thread there had filled it, and a thread on each of two
 * nodes uses all of it. */
#include "nodes.h"
#include <pthread.h>

enum { SIZE = 96 << 20 };

static char *start;
static int rounds;

static void *work(void *node) {
    run_on((int)(size_t)node);
    memset(start + (size_t)node * (SIZE / 2), 1, SIZE / 2);
    return (void *)use(start, SIZE, LINE, rounds);
}

int main(int argc, char **argv) {
    pthread_t threads[2];
    rounds = rounds_of(argc, argv, 150);
    start = memory(SIZE, 0);
    for (size_t at = 0; at < 2; at++) pthread_create(&threads[at], NULL, work, (void *)at);
    for (int at = 0; at < 2; at++) pthread_join(threads[at], NULL);
    return 0;
}
