/* Fills memory and reads it back, then sleeps; prints the CPU time that the whole process used meanwhile. */
#include "check.h"
#include <sys/resource.h>

static double used(void) {
    struct rusage use;
    getrusage(RUSAGE_SELF, &use);
    return use.ru_utime.tv_sec + use.ru_stime.tv_sec + (use.ru_utime.tv_usec + use.ru_stime.tv_usec) / 1e6;
}

int main(int count, char **arguments) {
    size_t pages = (count > 1 ? atol(arguments[1]) : 96) * 256;
    char *base = map(pages * PAGE);
    for (size_t i = 0; i < pages; i++) fill(base + i * PAGE, i, 1);
    for (size_t i = 0; i < pages; i++) holds(base + i * PAGE, i, 1);
    sleep(1);
    /* What runs by itself runs in each of these; an interrupt that lasted does not. */
    double share = 100;
    for (int i = 0; i < 3 && share >= 0.05; i++) {
        double before = used();
        sleep(3);
        share = (used() - before) / 3 * 100;
        printf("idle: %.2f %% CPU\n", share);
    }
    need(share < 0.05, "an idle program uses no CPU");
    return verdict("idle");
}
