/* Children that share this process's memory until they become other programs: by vfork, slow to do so, and by
 * posix_spawn. Their memory is this one's, and counts once. Arguments: MiB, how many of each. */
#include "check.h"
#include <spawn.h>

extern char **environ;

int main(int count, char **arguments) {
    if (count < 3) return 2;
    size_t pages = (size_t)atoi(arguments[1]) * 256;
    char *base = map(pages * PAGE);
    for (size_t i = 0; i < pages; i++) fill(base + i * PAGE, i, 0);
    for (int round = 1; round <= atoi(arguments[2]); round++) {
        pid_t children[2] = {vfork(), 0};
        if (children[0] == 0) {
            /* Long enough that the run looks at the sizes of its processes meanwhile. */
            usleep(300000);
            execlp("true", "true", (char *)NULL);
            _exit(1);
        }
        char *words[] = {"sleep", "0.1", NULL};
        need(posix_spawnp(&children[1], "sleep", NULL, NULL, words, environ) == 0, "posix_spawn");
        for (size_t i = 0; i < pages; i++) fill(base + i * PAGE, i, round);
        for (int i = 0; i < 2; i++) {
            int status = -1;
            need(waitpid(children[i], &status, 0) == children[i] && status == 0, "the child");
        }
        for (size_t i = 0; i < pages; i++) holds(base + i * PAGE, i, round);
    }
    return verdict("vforks");
}
