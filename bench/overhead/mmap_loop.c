// Maps 64 MiB, touches each page once, unmaps it, and repeats: a program that only takes page
// faults, so that any cost that a recorder adds to a fault is fully visible.
// Usage: mmap_loop ROUNDS
#define _DEFAULT_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int main(int argc, char **argv) {
    if (argc != 2) {
        fprintf(stderr, "usage: %s ROUNDS\n", argv[0]);
        return 2;
    }
    const size_t size = 64u << 20;
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    for (long round = strtol(argv[1], NULL, 10); round > 0; round--) {
        char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED) {
            perror("mmap");
            return 1;
        }
        // Without huge pages, so that there is one fault for each page on every machine.
        madvise(memory, size, MADV_NOHUGEPAGE);
        for (size_t offset = 0; offset < size; offset += page) {
            *(volatile char *)(memory + offset) = 1;
        }
        if (munmap(memory, size) != 0) {
            perror("munmap");
            return 1;
        }
    }
    return 0;
}
