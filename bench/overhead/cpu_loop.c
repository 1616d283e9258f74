// Computes in registers and touches no new memory: shows the cost of a recorder for a program that
// hardly ever enters the kernel.
// Usage: cpu_loop ROUNDS (each about 100 million steps)
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    if (argc != 2) {
        fprintf(stderr, "usage: %s ROUNDS\n", argv[0]);
        return 2;
    }
    uint64_t state = 88172645463325252u;
    for (long round = strtol(argv[1], NULL, 10); round > 0; round--) {
        for (int step = 0; step < 100000000; step++) {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
        }
    }
    printf("%llu\n", (unsigned long long)state);
    return 0;
}
