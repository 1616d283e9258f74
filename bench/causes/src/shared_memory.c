/* Fills a segment of shared memory, and has a child fill it once more: each process faults on each
 * page, and the first one has it allocated and zeroed. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv) {
    size_t size = 64u << 20;
    for (int round = argc > 1 ? atoi(argv[1]) : 12; round > 0; round--) {
        int file = memfd_create("shared_memory", MFD_CLOEXEC);
        if (file < 0 || ftruncate(file, size) != 0) return 1;
        char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        if (memory == MAP_FAILED) return 1;
        memset(memory, round, size);
        pid_t child = fork();
        if (child < 0) return 1;
        if (child == 0) {
            memset(memory, round + 1, size);
            _exit(0);
        }
        waitpid(child, NULL, 0);
        munmap(memory, size);
        close(file);
    }
    return 0;
}
