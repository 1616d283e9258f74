// Writes the monotonic clock, in nanoseconds, into a file: when a program started.
// Usage: start FILE
#include <stdio.h>
#include <time.h>

int main(int argc, char **argv) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    FILE *file = argc == 2 ? fopen(argv[1], "w") : NULL;
    if (!file) {
        fprintf(stderr, "usage: %s FILE\n", argv[0]);
        return 2;
    }
    fprintf(file, "%lld\n", now.tv_sec * 1000000000LL + now.tv_nsec);
    return fclose(file) != 0;
}
