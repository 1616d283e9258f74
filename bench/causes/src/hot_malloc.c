/* Allocates and frees small blocks of many sizes: the allocator keeps its memory. */
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv) {
    static char *held[1024];
    unsigned state = 1;
    for (long i = argc > 1 ? atol(argv[1]) : 12000000; i > 0; i--) {
        state = state * 1103515245u + 12345u;
        unsigned at = state >> 22;
        free(held[at]);
        held[at] = malloc(16 + (state >> 8) % 2000);
        held[at][0] = 1;
    }
    return 0;
}
