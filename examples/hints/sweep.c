/* A sparse matrix times a vector, again and again, in less memory than it takes: the program says
 * which array is used how, and runs as well where no pager is.
 *
 *   cc -O2 -I ../../include -o sweep sweep.c
 *   ./sweep                                     plainly: the hints do nothing
 *   pagewise run --memory 64M --policy csr --min-region 1M --stats -- ./sweep
 */
#include <pagewise_pager.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 1 << 20, DEGREE = 16, SWEEPS = 3 };

static void *array(size_t bytes) {
    void *place = malloc(bytes);
    if (!place) exit(3);
    return place;
}

static void report(const char *what, int answer) {
    printf("%s: %s\n", what, answer ? strerror(answer) : "taken");
}

int main(void) {
    uint32_t *offsets = array((ROWS + 1) * sizeof *offsets);
    uint32_t *edges = array((size_t)ROWS * DEGREE * sizeof *edges);
    uint32_t *from = array(ROWS * sizeof *from), *to = array(ROWS * sizeof *to);
    /* Said before the first touch, so that the first pass already goes by it. */
    report("offsets", pagewise_declare(offsets, (ROWS + 1) * sizeof *offsets, PAGEWISE_CSR_OFFSETS));
    report("edges", pagewise_declare(edges, (size_t)ROWS * DEGREE * sizeof *edges, PAGEWISE_CSR_EDGES));
    report("vector", pagewise_declare(from, ROWS * sizeof *from, PAGEWISE_HOT));
    for (uint32_t row = 0; row <= ROWS; row++) offsets[row] = row * DEGREE;
    for (uint32_t i = 0; i < (uint32_t)ROWS * DEGREE; i++) edges[i] = i * 2654435761u % ROWS;
    for (uint32_t row = 0; row < ROWS; row++) from[row] = row;
    report("kept", pagewise_keep(from, ROWS * sizeof *from));
    uint64_t sum = 0;
    for (int sweep = 0; sweep < SWEEPS; sweep++) {
        report("ahead", pagewise_read_ahead(edges, 1 << 20));
        for (uint32_t row = 0; row < ROWS; row++) {
            uint32_t value = 0;
            for (uint32_t i = offsets[row]; i < offsets[row + 1]; i++) value += from[edges[i]];
            to[row] = value;
        }
        for (uint32_t row = 0; row < ROWS; row++) sum += to[row];
    }
    report("let go", pagewise_let_go(from, ROWS * sizeof *from));
    report("sent away", pagewise_send_away(edges, (size_t)ROWS * DEGREE * sizeof *edges));
    for (uint32_t i = 0; i < (uint32_t)ROWS * DEGREE; i += 4096)
        if (edges[i] != i * 2654435761u % ROWS) return 1;
    printf("sum %llu\n", (unsigned long long)sum);
    return 0;
}
