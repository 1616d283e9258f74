/* Two threads touch fresh memory while two others map and unmap a little of it. */
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

static void *fresh(size_t size) {
    void *data = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED) exit(1);
    return data;
}

static void *touch(void *unused) {
    size_t size = 128u << 20;
    for (int round = 0; round < 3; round++) {
        char *data = fresh(size);
        for (size_t at = 0; at < size; at += 4096) data[at] = 1;
        munmap(data, size);
    }
    return unused;
}

static void *map(void *unused) {
    for (long i = 0; i < 150000; i++) munmap(fresh(8192), 8192);
    return unused;
}

int main(void) {
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, i % 2 ? map : touch, NULL);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    return 0;
}
