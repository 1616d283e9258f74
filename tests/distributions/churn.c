/* Maps, writes and unmaps 4 MiB a thousand times: a million page faults, whatever the C library. */
#define _DEFAULT_SOURCE
#include <string.h>
#include <sys/mman.h>

int main(void) {
    size_t size = 4 << 20;
    for (int round = 0; round < 1000; round++) {
        char *memory = mmap(0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED)
            return 1;
        memset(memory, round, size);
        munmap(memory, size);
    }
    return 0;
}
