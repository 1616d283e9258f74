/* Takes random numbers from the kernel, eight bytes at a time and then 4 KiB at a time. */
#include <stdlib.h>
#include <sys/random.h>

int main(int argc, char **argv) {
    static char block[4096];
    for (long i = argc > 1 ? atol(argv[1]) : 100000; i > 0; i--) {
        if (getrandom(block, 8, 0) < 0) return 1;
        if (getrandom(block, sizeof block, 0) < 0) return 1;
    }
    return 0;
}
