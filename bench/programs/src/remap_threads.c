/* Threads grow and shrink mappings of their own (mremap): all queue at the mmap lock. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

static void *work(void *unused) {
    size_t small = 16 << 10, large = 256 << 10;
    char *data = mmap(NULL, small, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (long i = 0; i < 60000; i++) {
        data = mremap(data, small, large, MREMAP_MAYMOVE);
        if (data == MAP_FAILED) exit(1);
        data[i % large]++;
        data = mremap(data, large, small, 0);
    }
    return unused;
}

int main(void) {
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, work, NULL);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    return 0;
}
