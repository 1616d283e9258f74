/* Calls mmap and munmap itself, 1 MiB at a time by default, as a hand-written buffer pool does. No
 * allocator is involved, so no allocator setting can help. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

int main(int argc, char **argv) {
    size_t size = argc > 2 ? strtoul(argv[2], NULL, 10) : 1u << 20;
    for (int round = argc > 1 ? atoi(argv[1]) : 3000; round > 0; round--) {
        char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED) return 1;
        memset(memory, round, size);
        munmap(memory, size);
    }
    return 0;
}
