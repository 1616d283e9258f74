/* One thread returns pages to the kernel while another computes: each return interrupts the CPU of
 * the other to flush its TLB. */
#include "computing.h"
#include <stdlib.h>
#include <sys/mman.h>

int main(int argc, char **argv) {
    pthread_t other;
    size_t size = 16 << 10;
    char *data = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    pthread_create(&other, NULL, compute, NULL);
    for (long i = argc > 1 ? atol(argv[1]) : 200000; i > 0; i--) {
        data[0] = data[4096] = 1;
        madvise(data, size, MADV_DONTNEED);
    }
    stop = 1;
    pthread_join(other, NULL);
    return 0;
}
