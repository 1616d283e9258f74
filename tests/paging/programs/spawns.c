/* Starts other programs by fork and exec, and writes to all of its memory after each: the kernel copies
 * nothing of it, as the child has gone. Arguments: MiB, how many programs. */
#include "check.h"

int main(int count, char **arguments) {
    if (count < 3) return 2;
    size_t pages = (size_t)atoi(arguments[1]) * 256;
    char *base = map(pages * PAGE);
    for (size_t i = 0; i < pages; i++) fill(base + i * PAGE, i, 0);
    for (int round = 1; round <= atoi(arguments[2]); round++) {
        pid_t child = fork();
        if (child == 0) {
            execlp("true", "true", (char *)NULL);
            _exit(1);
        }
        int status = -1;
        need(waitpid(child, &status, 0) == child && status == 0, "the child");
        for (size_t i = 0; i < pages; i++) fill(base + i * PAGE, i, round);
        usleep(20000);
        for (size_t i = 0; i < pages; i++) holds(base + i * PAGE, i, round);
    }
    return verdict("spawns");
}
