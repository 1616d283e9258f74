/* Threads map, touch and unmap memory of their own: each waits for the others at the mmap lock. */
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

static long rounds;

static void *work(void *unused) {
    size_t size = 64 << 10;
    for (long i = 0; i < rounds; i++) {
        char *data = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (data == MAP_FAILED) exit(1);
        for (size_t at = 0; at < size; at += 4096) data[at] = 1;
        munmap(data, size);
    }
    return unused;
}

int main(int argc, char **argv) {
    pthread_t threads[6];
    rounds = argc > 1 ? atol(argv[1]) : 15000;
    for (int i = 0; i < 6; i++) pthread_create(&threads[i], NULL, work, NULL);
    for (int i = 0; i < 6; i++) pthread_join(threads[i], NULL);
    return 0;
}
