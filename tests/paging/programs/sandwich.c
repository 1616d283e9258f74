/* malloc inside: blocks of every size, kept, moved and freed by eight threads; and a malloc that
 * aborts if it is called while a fault is resolved. Built with -DGUARD it replaces malloc. */
#include "check.h"
#define THREADS 8
static double until;
static size_t budget_blocks;

struct block { size_t bytes; uint64_t seed; unsigned char data[]; };

static void check_block(struct block *b) {
    checks++;
    for (size_t i = 0; i < b->bytes; i += 61)
        if (b->data[i] != (unsigned char)(mix(b->seed + i))) {
            wrong++;
            fprintf(stderr, "WRONG block of %zu bytes at %zu\n", b->bytes, i);
            return;
        }
}

static void *work(void *argument) {
    unsigned seed = (size_t)argument + 11;
    struct block **blocks = calloc(budget_blocks, sizeof *blocks);
    do {
        size_t i = rand_r(&seed) % budget_blocks;
        if (blocks[i]) {
            check_block(blocks[i]);
            if (rand_r(&seed) % 2) {
                size_t bytes = blocks[i]->bytes / 2 + rand_r(&seed) % 4096;
                struct block *moved = realloc(blocks[i], sizeof **blocks + bytes);
                size_t kept = moved->bytes < bytes ? moved->bytes : bytes;
                moved->bytes = kept;
                check_block(moved);
                moved->bytes = bytes;
                for (size_t k = kept / 61 * 61; k < bytes; k++) moved->data[k] = (unsigned char)mix(moved->seed + k);
                blocks[i] = moved;
            } else { free(blocks[i]); blocks[i] = NULL; }
        } else {
            static const size_t sizes[] = {24, 200, 1500, 5000, 40000, 150000, 700000, 3000000};
            size_t bytes = 1 + rand_r(&seed) % sizes[rand_r(&seed) % 8];
            blocks[i] = malloc(sizeof **blocks + bytes);
            blocks[i]->bytes = bytes;
            blocks[i]->seed = rand_r(&seed);
            for (size_t k = 0; k < bytes; k++) blocks[i]->data[k] = (unsigned char)mix(blocks[i]->seed + k);
        }
    } while (now() < until);
    for (size_t i = 0; i < budget_blocks; i++) if (blocks[i]) { check_block(blocks[i]); free(blocks[i]); }
    free(blocks);
    return NULL;
}

int main(int count, char **arguments) {
    budget_blocks = (count > 1 ? atol(arguments[1]) : 128) / THREADS * 4;
    until = now() + (count > 2 ? atof(arguments[2]) : 5);
    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, work, (void *)i);
    for (size_t i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    return verdict("sandwich");
}
