/* Maps a cached file, touches each page once, unmaps it, and repeats. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int main(int argc, char **argv) {
    static char block[1 << 20];
    char name[] = "/tmp/causes-XXXXXX";
    size_t size = 64u << 20;
    int file = mkstemp(name);
    unsigned long sum = 0;
    if (file < 0) return 1;
    unlink(name);
    for (int i = 0; i < 64; i++)
        if (write(file, block, sizeof block) < 0) return 1;
    for (int round = argc > 1 ? atoi(argv[1]) : 150; round > 0; round--) {
        volatile char *map = mmap(NULL, size, PROT_READ, MAP_SHARED, file, 0);
        if (map == MAP_FAILED) return 1;
        for (size_t at = 0; at < size; at += 4096) sum += map[at];
        munmap((void *)map, size);
    }
    return sum != 0;
}
