/* Threads switch the protection of pages on and off, as garbage collectors and JIT compilers do:
 * each switch interrupts the CPUs on which the others run. */
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

static long rounds;

static void *work(void *mine) {
    char *page = mine;
    for (long i = 0; i < rounds; i++) {
        mprotect(page, 4096, PROT_READ);
        mprotect(page, 4096, PROT_READ | PROT_WRITE);
        page[0]++;
    }
    return NULL;
}

int main(int argc, char **argv) {
    pthread_t threads[4];
    rounds = argc > 1 ? atol(argv[1]) : 120000;
    char *data = mmap(NULL, 4 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, work, data + i * (1 << 20));
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    return 0;
}
