/* Small writes, each flushed to the disk before the next, as in a database log: for two seconds,
 * however fast the disk is. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

int main(int argc, char **argv) {
    char path[] = "pagewise-sync-XXXXXX", block[4096] = { 1 };
    int file = mkstemp(path);
    if (file < 0) return 1;
    unlink(path);
    for (time_t end = time(NULL) + (argc > 1 ? atoi(argv[1]) : 2); time(NULL) <= end;)
        if (write(file, block, sizeof block) != sizeof block || fsync(file) != 0) return 1;
    return 0;
}
