/* Children that rewrite shared memory and are killed meanwhile, while the parent rewrites its own:
 * the slots of each child in the store must be freed. Arguments: MiB, rounds. */
#include "check.h"
#include <signal.h>

static char *base;
static size_t pages;

static void rewrite(uint64_t version) {
    for (size_t i = 0; i < pages; i++) fill(base + i * PAGE, i * 4, version);
}

int main(int count, char **arguments) {
    pages = (count > 1 ? atol(arguments[1]) : 80) * 256;
    int rounds = count > 2 ? atoi(arguments[2]) : 12;
    base = map(pages * PAGE);
    rewrite(1);
    for (int round = 1; round <= rounds; round++) {
        int told[2];
        need(pipe(told) == 0, "pipe");
        pid_t child = fork();
        if (child == 0) {
            for (uint64_t version = 1000;; version++) {
                rewrite(version);
                if (version == 1000 && write(told[1], "x", 1) != 1) _exit(1);
            }
        }
        char one;
        close(told[1]);
        need(read(told[0], &one, 1) == 1, "the child got through once");
        close(told[0]);
        kill(child, SIGKILL);
        int status;
        need(waitpid(child, &status, 0) == child && WIFSIGNALED(status), "killed child");
        for (size_t i = 0; i < pages; i++) holds(base + i * PAGE, i * 4, round);
        rewrite(round + 1);
    }
    for (size_t i = 0; i < pages; i++) holds(base + i * PAGE, i * 4, rounds + 1);
    return verdict("killed");
}
