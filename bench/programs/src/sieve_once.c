/* Fills one large table once: a sieve of primes. Every page is touched for the first time, none is
 * given back; the faults are the cost of the memory itself. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv) {
    size_t limit = argc > 1 ? strtoull(argv[1], NULL, 10) : 1500000000;
    unsigned char *composite = malloc(limit / 2 + 1);
    size_t primes = 1;
    if (!composite) {
        perror("sieve_once: malloc");
        return 1;
    }
    memset(composite, 0, limit / 2 + 1);
    for (size_t p = 3; p <= 37; p += 2)
        if (!composite[p / 2])
            for (size_t m = p * p; m < limit; m += 2 * p) composite[m / 2] = 1;
    for (size_t i = 1; i <= limit / 2; i++) primes += !composite[i];
    printf("%zu candidates\n", primes);
    free(composite);
    return 0;
}
