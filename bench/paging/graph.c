/* PageRank and BFS on a graph in compressed sparse row form, with verified results.
 *
 * usage: graph pagerank|bfs kronecker|uniform SCALE DEGREE [SOURCES]
 *
 * Follows the GAP benchmark specification (Beamer, Asanović, Patterson, 2015/2017): Kronecker
 * graphs with A = 0.57, B = C = 0.19 and permuted vertex numbers, uniform random graphs, both
 * undirected, with 2^SCALE vertices and DEGREE edges per vertex; PageRank with damping 0.85, until
 * ranks change by less than 1e-4 in sum, at most 20 iterations; BFS, whose output is the parent of
 * each vertex, from SOURCES random vertices that have edges (64 in the specification, 4 by
 * default). PageRank pulls, BFS goes top down. Verification is independent of the algorithm: ranks
 * are pushed once more along the edges and must agree; depths computed from the parents may differ
 * by at most one along each edge, every parent must be a neighbour one level up, and whole
 * components are reached.
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

/* Odd factors and xors with higher bits, modulo a power of two, permute the numbers. */
static uint32_t permuted(uint32_t vertex, int scale) {
    uint32_t mask = vertices - 1;
    vertex = (vertex * 0x9e3779b1u + 12345u) & mask;
    vertex ^= vertex >> (scale / 2);
    vertex = (vertex * 0x85ebca6bu) & mask;
    return vertex ^ vertex >> (scale / 3 + 1);
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
    *from = permuted(a, scale);
    *to = permuted(b, scale);
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

static double pagerank(int *wrong, int *rounds) {
    const float damping = 0.85f;
    float *ranks = array(vertices * sizeof *ranks), *shares = array(vertices * sizeof *shares);
    const float base = (1 - damping) / (float)vertices;
    for (uint32_t vertex = 0; vertex < vertices; vertex++) ranks[vertex] = 1 / (float)vertices;
    double start = now();
    double change = 1;
    for (*rounds = 0; *rounds < 20 && change >= 1e-4; ++*rounds) {
        change = 0;
        for (uint32_t vertex = 0; vertex < vertices; vertex++) {
            uint64_t degree = offsets[vertex + 1ul] - offsets[vertex];
            shares[vertex] = degree ? ranks[vertex] / (float)degree : 0;
        }
        for (uint32_t vertex = 0; vertex < vertices; vertex++) {
            double sum = 0;
            for (uint64_t edge = offsets[vertex]; edge < offsets[vertex + 1ul]; edge++)
                sum += shares[edges[edge]];
            float rank = base + damping * (float)sum;
            change += fabs((double)rank - ranks[vertex]);
            ranks[vertex] = rank;
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

/* Whether `parents` is a breadth-first tree of the component of `source`. */
static int is_tree(const uint32_t *parents, uint32_t source, uint32_t *depths, uint32_t *queue) {
    memset(depths, 0xff, vertices * sizeof *depths);
    uint32_t head = 0, tail = 1;
    queue[0] = source;
    depths[source] = 0;
    while (head < tail) {
        uint32_t vertex = queue[head++];
        for (uint64_t edge = offsets[vertex]; edge < offsets[vertex + 1ul]; edge++) {
            uint32_t other = edges[edge];
            if (depths[other] != UINT32_MAX) continue;
            depths[other] = depths[vertex] + 1;
            queue[tail++] = other;
        }
    }
    int right = parents[source] == source;
    for (uint32_t vertex = 0; vertex < vertices; vertex++) {
        uint32_t parent = parents[vertex];
        right &= (parent == UINT32_MAX) == (depths[vertex] == UINT32_MAX);
        if (!right || vertex == source || parent == UINT32_MAX) continue;
        int neighbour = 0;
        for (uint64_t edge = offsets[vertex]; edge < offsets[vertex + 1ul] && !neighbour; edge++)
            neighbour = edges[edge] == parent;
        right &= neighbour && depths[parent] + 1 == depths[vertex];
    }
    return right;
}

static double bfs(int sources, int *wrong) {
    uint32_t *parents = array(vertices * sizeof *parents), *queue = array(vertices * sizeof *queue);
    uint32_t *depths = array(vertices * sizeof *depths);
    double spent = 0;
    uint64_t seed = 27;
    for (int trial = 0; trial < sources; trial++) {
        uint32_t source;
        do source = (uint32_t)(mix(seed++) % vertices);
        while (offsets[source + 1ul] == offsets[source]);
        double start = now();
        memset(parents, 0xff, vertices * sizeof *parents);
        uint32_t head = 0, tail = 1;
        queue[0] = parents[source] = source;
        while (head < tail) {
            uint32_t vertex = queue[head++];
            for (uint64_t edge = offsets[vertex]; edge < offsets[vertex + 1ul]; edge++) {
                uint32_t other = edges[edge];
                if (parents[other] != UINT32_MAX) continue;
                parents[other] = vertex;
                queue[tail++] = other;
            }
        }
        spent += now() - start;
        /* One tree of a run is proved, for a proof costs more than a search. */
        if (trial == sources - 1) *wrong |= !is_tree(parents, source, depths, queue);
    }
    return spent;
}

int main(int count, char **arguments) {
    if (count != 5 && count != 6) {
        fprintf(stderr, "usage: graph pagerank|bfs kronecker|uniform SCALE DEGREE [SOURCES]\n");
        return 2;
    }
    int scale = atoi(arguments[3]), sources = count == 6 ? atoi(arguments[5]) : 4;
    vertices = 1u << scale;
    double start = now();
    build(!strcmp(arguments[2], "kronecker"), scale, (uint64_t)vertices * strtoul(arguments[4], NULL, 10));
    double built = now() - start;
    int wrong = 0, rounds = sources;
    double spent = strcmp(arguments[1], "bfs") ? pagerank(&wrong, &rounds) : bfs(sources, &wrong);
    printf("{\"figures\": {\"runs per second\": %.5f}, \"seconds\": %.3f, \"rounds\": %d, "
           "\"build_seconds\": %.3f, \"megabytes\": %.0f, \"wrong\": %d}\n",
           1 / spent, spent, rounds, built, ((double)vertices * 20 + (double)edge_count * 4) / 1e6, wrong);
    return wrong;
}
