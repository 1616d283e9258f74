/* Writes snapshots as a key-value store does: a child process reads the table as it was at the fork
 * while the parent keeps changing it, so each page that the parent changes is copied. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SLOTS = (96 << 20) / 8, PAGE_SLOTS = 4096 / 8 };

static void die(const char *what) {
    perror(what);
    exit(1);
}

/* The child: keeps its snapshot until the parent has made its changes, then sums it up. */
static void snapshot(const uint64_t *table, int changed) {
    uint64_t sum = 0;
    char byte;
    if (read(changed, &byte, 1) < 0) die("fork_snapshots: read");
    for (size_t i = 0; i < SLOTS; i += PAGE_SLOTS) sum += table[i];
    _exit(sum == 0);
}

static void change(uint64_t *table, int turn) {
    for (size_t i = 0; i < SLOTS; i += PAGE_SLOTS) table[i] += (uint64_t)turn;
}

int main(int argc, char **argv) {
    int snapshots = argc > 1 ? atoi(argv[1]) : 15;
    uint64_t *table = malloc(sizeof *table * SLOTS);
    if (!table) die("fork_snapshots: malloc");
    for (size_t i = 0; i < SLOTS; i++) table[i] = i;
    for (int turn = 0; turn < snapshots; turn++) {
        int changed[2];
        if (pipe(changed) != 0) die("fork_snapshots: pipe");
        pid_t child = fork();
        if (child < 0) die("fork_snapshots: fork");
        if (child == 0) snapshot(table, changed[0]);
        change(table, turn);
        if (write(changed[1], "", 1) != 1) die("fork_snapshots: write");
        waitpid(child, NULL, 0);
        close(changed[0]);
        close(changed[1]);
    }
    printf("%llu\n", (unsigned long long)table[PAGE_SLOTS]);
    return 0;
}
