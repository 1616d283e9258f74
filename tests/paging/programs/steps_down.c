/* A server that starts as root, takes the id of an ordinary user and forks: its children keep all
 * pages. Arguments: MiB, id of the user. */
#include "check.h"
#include <fcntl.h>
#include <grp.h>

int main(int count, char **arguments) {
    size_t pages = (count > 1 ? atol(arguments[1]) : 80) * 256;
    unsigned user = count > 2 ? atoi(arguments[2]) : 65534;
    char *base = map(pages * PAGE);
    for (size_t i = 0; i < pages; i++) fill(base + i * PAGE, i, i + 1);
    need(setgroups(0, NULL) == 0 && setgid(user) == 0 && setuid(user) == 0, "another user");
    for (int generation = 0; generation < 2; generation++) {
        pid_t pid = fork();
        if (pid > 0) {
            int status = -1;
            need(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0, "child");
            break;
        }
        /* Its own child comes from a process that has never been privileged. */
        for (size_t i = 0; i < pages; i++) holds(base + i * PAGE, i, i + 1);
        for (size_t i = 0; i < pages; i += 3) fill(base + i * PAGE, i, i + 1);
        /* A system call on memory that is away. */
        int file = open("/dev/zero", O_RDONLY);
        need(file >= 0 && read(file, base + 7 * PAGE, PAGE) == PAGE, "read to memory that is away");
        close(file);
        fill(base + 7 * PAGE, 7, 8);
    }
    for (size_t i = 0; i < pages; i++) holds(base + i * PAGE, i, i + 1);
    return verdict("steps_down");
}
