/* A buffer pool written by hand: maps 16 MiB for each task with mmap and unmaps it afterwards. The
 * allocator is not involved, so no allocator setting can help; only a change of this code can. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

int main(int argc, char **argv) {
    int tasks = argc > 1 ? atoi(argv[1]) : 250;
    size_t size = 16u << 20;
    uint64_t sum = 0;
    for (int t = 0; t < tasks; t++) {
        uint64_t *buffer = mmap(NULL, size, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (buffer == MAP_FAILED) {
            perror("hand_mapped: mmap");
            return 1;
        }
        for (size_t i = 0; i < size / 8; i++) buffer[i] = i ^ (uint64_t)t;
        for (size_t i = 0; i < size / 8; i += 64) sum += buffer[i];
        munmap(buffer, size);
    }
    printf("%llu\n", (unsigned long long)sum);
    return 0;
}
