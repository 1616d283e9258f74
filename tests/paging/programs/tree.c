/* Several processes at the same time, each with pages of its own or of its parent, which all must
 * keep. Arguments: what they do, MiB, seconds.
 *   alike   four children fill and read this many MiB each
 *   uneven  one child reads this many MiB again and again, one has as much and sleeps
 *   inherit the parent fills this many MiB, four children read them, and write an eighth each
 *   rewrite the parent fills this many MiB, and one child writes to all of them */
#include "check.h"
#include <sys/resource.h>

static size_t pages;
static double until;

static char *filled(uint64_t version) {
    char *base = map(pages * PAGE);
    for (size_t i = 0; i < pages; i++) fill(base + i * PAGE, i, version);
    return base;
}

static long sweeps(char *base, uint64_t version) {
    long rounds = 0;
    unsigned seed = version;
    do {
        for (size_t i = 0; i < 4096; i++) {
            size_t at = rand_r(&seed) % pages;
            holds(base + at * PAGE, at, version);
        }
        rounds++;
    } while (now() < until);
    for (size_t i = 0; i < pages; i++) holds(base + i * PAGE, i, version);
    return rounds;
}

static void inherit(char *base, uint64_t number) {
    for (size_t i = number * pages / 8; i < (number + 1) * pages / 8; i++) fill(base + i * PAGE, i, number + 9);
    do {
        for (size_t i = 0; i < pages; i++)
            holds(base + i * PAGE, i, i * 8 / pages == number ? number + 9 : 1);
    } while (now() < until);
}

static void rewrite(char *base, uint64_t version) {
    for (size_t i = 0; i < pages; i++) *(volatile char *)(base + i * PAGE);
    for (size_t i = 0; i < pages; i++) fill(base + i * PAGE, i, version);
    while (now() < until) usleep(100000);
    for (size_t i = 0; i < pages; i++) holds(base + i * PAGE, i, version);
}

int main(int count, char **arguments) {
    const char *what = count > 1 ? arguments[1] : "alike";
    pages = (count > 2 ? atol(arguments[2]) : 40) * 256;
    until = now() + (count > 3 ? atof(arguments[3]) : 4);
    int inherits = !strcmp(what, "inherit"), rewrites = !strcmp(what, "rewrite");
    int children = rewrites ? 1 : strcmp(what, "uneven") ? 4 : 2;
    char *shared = inherits || rewrites ? filled(1) : NULL;
    int ends[2];
    need(pipe(ends) == 0, "pipe");
    for (int child = 0; child < children; child++) {
        if (fork()) continue;
        if (rewrites) rewrite(shared, 9);
        else if (inherits) inherit(shared, child);
        else if (!strcmp(what, "uneven") && child == 1) {
            char *base = filled(2);
            while (now() < until) usleep(100000);
            for (size_t i = 0; i < pages; i++) holds(base + i * PAGE, i, 2);
        } else {
            char *base = filled(child + 3);
            long rounds = sweeps(base, child + 3);
            if (write(ends[1], &rounds, sizeof rounds) != sizeof rounds) return 1;
        }
        return wrong != 0;
    }
    for (int child = 0, status = -1; child < children; child++) need(wait(&status) > 0 && status == 0, "a child");
    close(ends[1]);
    for (long rounds; read(ends[0], &rounds, sizeof rounds) > 0;) printf("%ld rounds\n", rounds);
    if (shared) for (size_t i = 0; i < pages; i++) holds(shared + i * PAGE, i, 1);
    return verdict("tree");
}
