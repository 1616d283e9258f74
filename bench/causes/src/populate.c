/* Has the kernel populate memory that it hardly uses, over and over: pages are allocated and zeroed
 * without a page fault. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/mman.h>

int main(int argc, char **argv) {
    size_t size = 64u << 20;
    for (int round = argc > 1 ? atoi(argv[1]) : 40; round > 0; round--) {
        char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
        if (memory == MAP_FAILED) return 1;
        memory[0] = 1;
        munmap(memory, size);
    }
    return 0;
}
