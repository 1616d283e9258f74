/* Takes eight blocks of 1 MiB (by default) from malloc, fills and frees them, again and again: the
 * allocator gives them back each time, which its settings can prevent. */
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv) {
    size_t size = argc > 2 ? strtoul(argv[2], NULL, 10) : 1u << 20;
    char *blocks[8];
    for (int round = argc > 1 ? atoi(argv[1]) : 400; round > 0; round--) {
        for (int at = 0; at < 8; at++) {
            blocks[at] = malloc(size);
            if (blocks[at] == NULL) return 1;
            memset(blocks[at], round, size);
        }
        for (int at = 8; at-- > 0;) free(blocks[at]);
    }
    return 0;
}
