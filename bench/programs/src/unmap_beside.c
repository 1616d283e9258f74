/* One thread maps, touches and unmaps a few pages at a time while another computes: each unmapping
 * interrupts the CPU of the other to flush its TLB. */
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

static volatile int stop;

static void *compute(void *unused) {
    volatile unsigned long state = 1;
    while (!stop) state = state * 6364136223846793005ul + 1;
    return unused;
}

int main(void) {
    pthread_t other;
    size_t size = 32 << 10;
    pthread_create(&other, NULL, compute, NULL);
    for (long i = 0; i < 100000; i++) {
        char *data = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (data == MAP_FAILED) exit(1);
        data[0] = data[8192] = 1;
        munmap(data, size);
    }
    stop = 1;
    pthread_join(other, NULL);
    return 0;
}
