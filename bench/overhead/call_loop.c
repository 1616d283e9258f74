// Maps, touches and unmaps one page, again and again: as many memory system calls per second as the
// kernel can handle, so that any cost that a recorder adds to a call is fully visible.
// Usage: call_loop ROUNDS
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
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    for (long round = strtol(argv[1], NULL, 10); round > 0; round--) {
        char *memory = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED) {
            perror("mmap");
            return 1;
        }
        *(volatile char *)memory = 1;
        if (munmap(memory, page) != 0) {
            perror("munmap");
            return 1;
        }
    }
    return 0;
}
