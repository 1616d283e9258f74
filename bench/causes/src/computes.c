/* Only computes. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    uint64_t x = 1;
    for (long i = argc > 1 ? atol(argv[1]) : 600000000; i > 0; i--) x = x * 6364136223846793005ull + 1;
    printf("%llu\n", (unsigned long long)x);
    return 0;
}
