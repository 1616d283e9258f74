/* A thread that computes until it is stopped, so that there is something to interrupt on its CPU.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

static atomic_int stop;

static void *compute(void *unused) {
    unsigned long sum = 1;
    while (!stop)
        for (int i = 0; i < 10000; i++) sum = sum * 6364136223846793005ul + 1;
    return sum == 0 ? NULL : unused;
}
