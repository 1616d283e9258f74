/* Holds memory that no pager manages while a command runs: less of the budget is left for that.
 * Arguments: MiB, the command. The status is the command's. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int count, char **words) {
    if (count < 3) return 2;
    size_t bytes = strtoul(words[1], NULL, 10) << 20;
    char *held = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (held == MAP_FAILED) return 3;
    memset(held, 1, bytes);
    pid_t child = fork();
    if (child == 0) {
        execvp(words[2], words + 2);
        perror(words[2]);
        _exit(127);
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child) return 4;
    if (!WIFSIGNALED(status)) return WEXITSTATUS(status);
    struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    signal(WTERMSIG(status), SIG_DFL);
    raise(WTERMSIG(status));
    return 5;
}
