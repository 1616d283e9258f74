/* PageRank and BFS on a graph in compressed sparse row form, with verified results.
 *
 * usage: graph pagerank|bfs kronecker|uniform SCALE DEGREE
 *
 * After the GAP benchmark specification (Beamer, Asanović, Patterson, 2015/2017): Kronecker graphs
 * with A = 0.57, B = C = 0.19 and permuted vertex numbers, uniform random graphs, both undirected;
 * PageRank by pulling with damping 0.85, BFS from random sources that have edges. PageRank runs
 * three iterations, so that a run fits into a minute; BFS runs from three sources. Verification is
 * independent of the algorithm: ranks are pushed once more along the edges and must agree; depths
 * of the ends of each edge may differ by one at most, and every parent must be one level up.
 * Prints one line of JSON; exits 1 if the result is wrong.
 */
#define _GNU_SOURCE
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

static uint32_t vertices;
static uint64_t edge_count; /* in both directions */
static uint64_t *offsets;
static uint32_t *edges;

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static uint64_t mix(uint64_t value) {
    value += 0x9e3779b97f4a7c15u;
    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
    value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
    return value ^ (value >> 31);
}

/* Large arrays are mappings of their own, as large malloc blocks are. */
static void *array(uint64_t bytes) {
    void *place = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (place == MAP_FAILED) {
        perror("graph");
        exit(2);
    }
    madvise(place, bytes, MADV_NOHUGEPAGE);
    return place;
}

/* Edge `number` of the generated graph; the same each time, so that none need be stored twice. */
static void generated(uint64_t number, int kronecker, int scale, uint32_t *from, uint32_t *to) {
    uint64_t random = mix(number * 2 + 1);
    if (!kronecker) {
        *from = (uint32_t)(random % vertices);
        *to = (uint32_t)(mix(random) % vertices);
        return;
    }
    uint32_t a = 0, b = 0;
    for (int bit = 0; bit < scale; bit++) {
        /* Four levels out of each 64 random bits; thresholds in 1/65536. */
        if (bit % 4 == 0) random = mix(random);
        uint32_t chance = (uint32_t)(random >> (bit % 4 * 16)) & 0xffff;
        a = a << 1 | (chance >= 49807);
        b = b << 1 | (uint32_t)(((chance >= 37356) & (chance < 49807)) | (chance >= 62259));
    }
    /* An odd factor and a shift modulo a power of two permute the numbers. */
    uint32_t mask = vertices - 1;
    *from = (a * 0x9e3779b1u + 12345u) & mask;
    *to = (b * 0x9e3779b1u + 12345u) & mask;
}

static void build(int kronecker, int scale, uint64_t count) {
    offsets = array((vertices + 1ul) * sizeof *offsets);
    for (uint64_t number = 0; number < count; number++) {
        uint32_t from, to;
        generated(number, kronecker, scale, &from, &to);
        offsets[from + 1ul]++;
        offsets[to + 1ul]++;
    }
    for (uint32_t vertex = 0; vertex < vertices; vertex++) offsets[vertex + 1ul] += offsets[vertex];
    edge_count = offsets[vertices];
    edges = array(edge_count * sizeof *edges);
    /* Filled range by range of vertices, so that building does not thrash under a small budget. */
    uint64_t *next = array(vertices * sizeof *next);
    uint32_t part = vertices / 4;
    for (uint32_t first = 0; first < vertices; first += part) {
        for (uint32_t vertex = first; vertex < first + part; vertex++) next[vertex] = offsets[vertex];
        for (uint64_t number = 0; number < count; number++) {
            uint32_t from, to;
            generated(number, kronecker, scale, &from, &to);
            if (from - first < part) edges[next[from]++] = to;
            if (to - first < part) edges[next[to]++] = from;
        }
    }
    munmap(next, vertices * sizeof *next);
}

static double pagerank(int *wrong) {
    const float damping = 0.85f;
    float *ranks = array(vertices * sizeof *ranks), *shares = array(vertices * sizeof *shares);
    const float base = (1 - damping) / (float)vertices;
    for (uint32_t vertex = 0; vertex < vertices; vertex++) ranks[vertex] = 1 / (float)vertices;
    double start = now();
    for (int round = 0; round < 3; round++) {
        for (uint32_t vertex = 0; vertex < vertices; vertex++) {
            uint64_t degree = offsets[vertex + 1ul] - offsets[vertex];
            shares[vertex] = degree ? ranks[vertex] / (float)degree : 0;
        }
        for (uint32_t vertex = 0; vertex < vertices; vertex++) {
            double sum = 0;
            for (uint64_t edge = offsets[vertex]; edge < offsets[vertex + 1ul]; edge++)
                sum += shares[edges[edge]];
            ranks[vertex] = base + damping * (float)sum;
        }
    }
    double spent = now() - start;
    /* Push the last round once more and compare. */
    double *sums = array(vertices * sizeof *sums);
    for (uint32_t vertex = 0; vertex < vertices; vertex++)
        for (uint64_t edge = offsets[vertex]; edge < offsets[vertex + 1ul]; edge++)
            sums[edges[edge]] += shares[vertex];
    for (uint32_t vertex = 0; vertex < vertices; vertex++)
        *wrong |= fabs((double)base + 0.85 * sums[vertex] - ranks[vertex]) > 1e-6 * ranks[vertex];
    return spent;
}

static double bfs(int *wrong) {
    uint32_t *parents = array(vertices * sizeof *parents), *depths = array(vertices * sizeof *depths);
    uint32_t *queue = array(vertices * sizeof *queue);
    double spent = 0;
    for (uint64_t trial = 0, seed = 27; trial < 3; trial++) {
        uint32_t source;
        do source = (uint32_t)(mix(seed++) % vertices);
        while (offsets[source + 1ul] == offsets[source]);
        memset(depths, 0xff, vertices * sizeof *depths);
        uint32_t head = 0, tail = 1;
        queue[0] = parents[source] = source;
        depths[source] = 0;
        double start = now();
        while (head < tail) {
            uint32_t vertex = queue[head++];
            for (uint64_t edge = offsets[vertex]; edge < offsets[vertex + 1ul]; edge++) {
                uint32_t other = edges[edge];
                if (depths[other] != UINT32_MAX) continue;
                depths[other] = depths[vertex] + 1;
                parents[other] = vertex;
                queue[tail++] = other;
            }
        }
        spent += now() - start;
        for (uint32_t vertex = 0; vertex < vertices; vertex++) {
            if (vertex != source && depths[vertex] != UINT32_MAX)
                *wrong |= depths[parents[vertex]] + 1 != depths[vertex];
            for (uint64_t edge = offsets[vertex]; edge < offsets[vertex + 1ul]; edge++) {
                uint32_t other = edges[edge];
                *wrong |= (depths[vertex] == UINT32_MAX) != (depths[other] == UINT32_MAX);
                if (depths[vertex] != UINT32_MAX) *wrong |= depths[other] > depths[vertex] + 1;
            }
        }
    }
    return spent;
}

int main(int count, char **arguments) {
    if (count != 5) {
        fprintf(stderr, "usage: graph pagerank|bfs kronecker|uniform SCALE DEGREE\n");
        return 2;
    }
    int scale = atoi(arguments[3]);
    vertices = 1u << scale;
    double start = now();
    build(!strcmp(arguments[2], "kronecker"), scale, (uint64_t)vertices * strtoul(arguments[4], NULL, 10) / 2);
    double built = now() - start;
    int wrong = 0;
    double spent = strcmp(arguments[1], "bfs") ? pagerank(&wrong) : bfs(&wrong);
    printf("{\"seconds\": %.3f, \"build_seconds\": %.3f, \"megabytes\": %.0f, \"edges\": %lu, \"wrong\": %d}\n", spent,
           built, ((double)vertices * 20 + (double)edge_count * 4) / 1e6, (unsigned long)edge_count, wrong);
    return wrong;
}
