/* Writes one byte in each 2 MiB of memory with huge pages requested: each fault zeroes 2 MiB for
 * that byte. Without huge pages the program is a hundred times as fast. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

int main(int argc, char **argv) {
    size_t size = 1ull << 30, huge = 2u << 20;
    for (int round = argc > 1 ? atoi(argv[1]) : 4; round > 0; round--) {
        char *memory = mmap(NULL, size + huge, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (memory == MAP_FAILED) return 1;
        char *begin = (char *)(((uintptr_t)memory + huge - 1) & ~(uintptr_t)(huge - 1));
        madvise(begin, size, MADV_HUGEPAGE);
        for (size_t at = 0; at < size; at += huge) begin[at] = 1;
        munmap(memory, size + huge);
    }
    return 0;
}
