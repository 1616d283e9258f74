/* A matrix multiplication that takes its workspace from malloc at each call.
 *
 * This is the pattern behind P. Ezolt, "A Study in Malloc: A Case of Excessive Minor Faults"
 * (ALS 2001): the math library's DGEMM allocated a buffer for its packed operand at each call and
 * freed it at the end; glibc gave the memory back to the kernel each time, and the chemistry
 * program on top of it faulted the same pages in 23 million times.
 *
 * Here dgemm_nt packs the transposed B (35 MB for the default size, above the 32 MiB up to which
 * glibc's mmap threshold adapts today) and multiplies a narrow A with it, as an integral
 * transformation does: few rows against a large basis.
 *
 *   dgemm [CALLS] [BASIS]      defaults: 400 calls, basis of 2100 functions
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 4, PANEL = 64 };

/* Copies the n x k matrix b, transposed, into PANEL-wide column panels. */
static void pack_transposed(double *packed, const double *b, size_t n, size_t k) {
    for (size_t j0 = 0; j0 < n; j0 += PANEL) {
        size_t width = n - j0 < PANEL ? n - j0 : PANEL;
        for (size_t p = 0; p < k; p++)
            for (size_t j = 0; j < width; j++) *packed++ = b[(j0 + j) * k + p];
    }
}

/* c += a * panel for ROWS rows of a and one packed panel. */
static void multiply_panel(double *c, size_t ldc, const double *a, const double *panel, size_t width,
                           size_t k) {
    double sum[ROWS][PANEL] = {{0.0}};
    for (size_t p = 0; p < k; p++)
        for (size_t r = 0; r < ROWS; r++)
            for (size_t j = 0; j < width; j++) sum[r][j] += a[r * k + p] * panel[p * width + j];
    for (size_t r = 0; r < ROWS; r++)
        for (size_t j = 0; j < width; j++) c[r * ldc + j] += sum[r][j];
}

/* c (ROWS x n) += a (ROWS x k) * transpose(b (n x k)); returns 0, or -1 without memory. */
static int dgemm_nt(double *c, const double *a, const double *b, size_t n, size_t k) {
    double *workspace = malloc(n * k * sizeof *workspace);
    if (!workspace) return -1;
    pack_transposed(workspace, b, n, k);
    for (size_t j0 = 0; j0 < n; j0 += PANEL) {
        size_t width = n - j0 < PANEL ? n - j0 : PANEL;
        multiply_panel(c + j0, n, a, workspace + j0 * k, width, k);
    }
    free(workspace);
    return 0;
}

static double *matrix(size_t rows, size_t columns, double scale) {
    double *m = malloc(rows * columns * sizeof *m);
    if (!m) {
        perror("dgemm: malloc");
        exit(1);
    }
    for (size_t i = 0; i < rows * columns; i++) m[i] = scale * (double)(i % 97) / 97.0;
    return m;
}

int main(int argc, char **argv) {
    int calls = argc > 1 ? atoi(argv[1]) : 400;
    size_t basis = argc > 2 ? strtoull(argv[2], NULL, 10) : 2100;
    if (calls <= 0 || basis == 0) {
        fprintf(stderr, "usage: dgemm [CALLS] [BASIS]\n");
        return 2;
    }
    double *a = matrix(ROWS, basis, 1.0), *b = matrix(basis, basis, 1e-3);
    double *c = calloc(ROWS * basis, sizeof *c);
    for (int call = 0; call < calls; call++)
        if (!c || dgemm_nt(c, a, b, basis, basis) != 0) {
            perror("dgemm: malloc");
            return 1;
        }
    double trace = 0.0;
    for (size_t r = 0; r < ROWS; r++) trace += c[r * basis + r];
    printf("%d calls of dgemm, checksum %.6f\n", calls, trace);
    free(c);
    free(b);
    free(a);
    return 0;
}
