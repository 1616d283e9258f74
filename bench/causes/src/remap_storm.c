/* Grows and shrinks one mapping by mremap, moving it each time. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

int main(int argc, char **argv) {
    size_t size = 8u << 20;
    char *a = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *b = mmap(NULL, 4 * size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (a == MAP_FAILED || b == MAP_FAILED) return 1;
    memset(a, 1, size);
    char *places[2] = {b + 2048 * 4096 + 4096, b + 2 * size + 12288};
    for (int round = argc > 1 ? atoi(argv[1]) : 12000; round > 0; round--) {
        char *next = mremap(a, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, places[round & 1]);
        if (next == MAP_FAILED) return 1;
        a = next;
    }
    return 0;
}
