/* Random increments in a shared mapping of a file that is larger than the memory limit: the kernel
 * writes pages back and reads them again. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int main(int argc, char **argv) {
    size_t size = 300u << 20;
    char name[] = "/tmp/causes-XXXXXX";
    int file = mkstemp(name);
    if (file < 0 || ftruncate(file, size) != 0) return 1;
    unlink(name);
    char *map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (map == MAP_FAILED) return 1;
    uint64_t state = 88172645463325252ull;
    for (long i = argc > 1 ? atol(argv[1]) : 60000; i > 0; i--) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        map[state % size]++;
    }
    return 0;
}
