/* Gives memory back by madvise and touches it again, as a hand-written cache does. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

int main(int argc, char **argv) {
    size_t size = 4u << 20;
    char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return 1;
    for (int round = argc > 1 ? atoi(argv[1]) : 800; round > 0; round--) {
        memset(memory, round, size);
        madvise(memory, size, MADV_DONTNEED);
    }
    return 0;
}
