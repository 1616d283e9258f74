/* Starts a small program again and again, as a build or a shell script does. */
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>

extern char **environ;

int main(int argc, char **argv) {
    char *words[] = {"/bin/true", NULL};
    for (int round = argc > 1 ? atoi(argv[1]) : 1500; round > 0; round--) {
        pid_t child;
        if (posix_spawn(&child, words[0], NULL, NULL, words, environ) != 0) return 1;
        waitpid(child, NULL, 0);
    }
    return 0;
}
