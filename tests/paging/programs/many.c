/* More processes than a run has places for figures, one after the other and then at the same time:
 * some end, some become another program, some are killed. Arguments: MiB that each touches,
 * processes. Finally prints the number of programs and the least number of pages that they must
 * have evicted together (third argument: MiB of the budget). */
#include "check.h"
#include <signal.h>

static size_t pages;

/* Memory of the process's own, more than it may keep; each page is written, and looked at again. */
static void use(uint64_t version) {
    char *base = map(pages * PAGE);
    for (size_t page = 0; page < pages; page++) fill(base + page * PAGE, page, version);
    for (size_t page = 0; page < pages; page += 7) holds(base + page * PAGE, page, version);
    munmap(base, pages * PAGE);
}

static pid_t child(int number, char **arguments) {
    pid_t pid = fork();
    if (pid) return pid;
    if (number % 3 == 0) {
        char text[16];
        snprintf(text, sizeof text, "%d", number + 1);
        execl("/proc/self/exe", arguments[0], arguments[1], "leaf", text, NULL);
        _exit(9);
    }
    use(number + 1);
    if (number % 3 == 1) raise(SIGKILL);
    _exit(wrong != 0);
}

int main(int count, char **arguments) {
    if (count < 4) return 2;
    pages = (size_t)atoi(arguments[1]) << 8;
    if (!strcmp(arguments[2], "leaf")) {
        use(atoi(arguments[3]));
        return wrong != 0;
    }
    int processes = atoi(arguments[2]), programs = 1;
    size_t budget = (size_t)atoi(arguments[3]) << 8;
    for (int number = 0; number < processes; number++) {
        int status = 0;
        waitpid(child(number, arguments), &status, 0);
        int killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
        need(number % 3 == 1 ? killed : status == 0, "how a child ended");
        programs += number % 3 == 0 ? 2 : 1;
    }
    /* Now all live: as many again, which end together when the pipe closes. */
    int gate[2], ready[2];
    char letter;
    need(pipe(gate) == 0 && pipe(ready) == 0, "pipes");
    for (int number = 0; number < processes; number++) {
        if (fork() == 0) {
            close(gate[1]);
            need(write(ready[1], "r", 1) == 1, "to say that it is ready");
            if (read(gate[0], &letter, 1) != 0) _exit(1);
            _exit(0);
        }
    }
    for (int number = 0; number < processes; number++) need(read(ready[0], &letter, 1) == 1, "all ready");
    close(gate[1]);
    for (int number = 0; number < processes; number++) {
        int status = 0;
        wait(&status);
        need(status == 0, "how one that waited ended");
    }
    programs += processes;
    verdict("many");
    printf("%d programs, %zu pages\n", programs, processes * (pages - budget));
    return wrong != 0;
}
