/* Writes 64 MiB into the page cache, truncates the file, and repeats. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv) {
    static char block[1 << 20];
    char name[] = "/tmp/causes-XXXXXX";
    int file = mkstemp(name);
    if (file < 0) return 1;
    unlink(name);
    memset(block, 1, sizeof block);
    for (int round = argc > 1 ? atoi(argv[1]) : 25; round > 0; round--) {
        for (int i = 0; i < 64; i++)
            if (pwrite(file, block, sizeof block, (off_t)i << 20) < 0) return 1;
        if (ftruncate(file, 0) != 0) return 1;
    }
    return 0;
}
