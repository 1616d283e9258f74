/* Ends by a fault of its own while most of its memory is evicted: it must end in this way, soon,
 * and not hang in the core dump. Arguments: MiB, number of threads that keep running meanwhile. */
#include "check.h"
#include <sys/prctl.h>
#include <sys/resource.h>

static char *base;
static size_t pages;

static void *touch(void *argument) {
    unsigned seed = (size_t)argument;
    for (;;) {
        size_t i = rand_r(&seed) % pages;
        holds(base + i * PAGE, i, 1);
    }
    return NULL;
}

int main(int count, char **arguments) {
    struct rlimit most = {RLIM_INFINITY, RLIM_INFINITY};
    setrlimit(RLIMIT_CORE, &most);
    prctl(PR_SET_DUMPABLE, 1);
    pages = (count > 1 ? atol(arguments[1]) : 96) * 256;
    base = map(pages * PAGE);
    for (size_t i = 0; i < pages; i++) fill(base + i * PAGE, i, 1);
    for (size_t i = 0; i < pages; i++) holds(base + i * PAGE, i, 1);
    pthread_t thread;
    for (long i = 0; i < (count > 2 ? atol(arguments[2]) : 4); i++) pthread_create(&thread, NULL, touch, (void *)(i + 1));
    usleep(200000);
    if (wrong) return 1;
    volatile int *volatile nowhere = (int *)16;
    *nowhere = 1;
    return 1;
}
