/* PageRank over a random graph: edges in order, vertices at random, as graph kernels are.
 *
 *   cc -O2 -o page_rank page_rank.c
 *   ./page_rank [THOUSANDS-OF-VERTICES [ROUNDS]]
 *
 * Eight edges a vertex. Vertices are allocated by malloc, so that the allocator's settings hold.
 * Keeps the edges followed in the global variable `edges` and prints a check sum. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { DEGREE = 8 };

volatile uint64_t edges;

static uint64_t state = 88172645463325252ull;

static uint64_t draw(void) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

int main(int argc, char **argv) {
    uint64_t count = (argc > 1 ? strtoull(argv[1], 0, 10) : 4000) * 1000;
    unsigned rounds = argc > 2 ? (unsigned)strtoul(argv[2], 0, 10) : 4;
    /* A cache line a vertex: rank, degree and what a real kernel keeps beside them. */
    struct vertex {
        double rank, next;
        char rest[48];
    } *vertices = calloc(count, sizeof *vertices);
    uint32_t *targets = malloc(count * DEGREE * sizeof *targets);
    if (!vertices || !targets || count == 0) {
        fprintf(stderr, "page_rank: not enough memory\n");
        return 1;
    }
    for (uint64_t i = 0; i < count; i++) vertices[i].rank = 1.0 / (double)count;
    for (uint64_t i = 0; i < count * DEGREE; i++) targets[i] = (uint32_t)(draw() % count);
    for (unsigned round = 0; round < rounds; round++) {
        for (uint64_t i = 0; i < count; i++) {
            double share = vertices[i].rank * (0.85 / DEGREE);
            for (int e = 0; e < DEGREE; e++) vertices[targets[i * DEGREE + e]].next += share;
            edges += DEGREE;
        }
        for (uint64_t i = 0; i < count; i++) {
            vertices[i].rank = 0.15 / (double)count + vertices[i].next;
            vertices[i].next = 0;
        }
    }
    double sum = 0;
    for (uint64_t i = 0; i < count; i++) sum += vertices[i].rank;
    printf("%.6f over %llu edges\n", sum, (unsigned long long)edges);
    return 0;
}
