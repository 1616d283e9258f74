/* Static arrays, which are there before the pager is: in memory, read and written by the kernel, and in
 * a child of fork. Arguments: MiB of the budget; the process must stay within that plus a tenth. */
#include "check.h"
#include <fcntl.h>
#include <sys/resource.h>

enum { PAGES = 64 * 256 };
static char array[PAGES][PAGE] __attribute__((aligned(PAGE)));
static char other[8 * 256][PAGE] __attribute__((aligned(PAGE)));

static void each(uint64_t version, int writes) {
    for (size_t page = 0; page < PAGES; page++) {
        if (writes) fill(array[page], page, version);
        else holds(array[page], page, version);
    }
}

int main(int count, char **arguments) {
    if (count < 2) return 2;
    each(0, 0);
    each(1, 1);
    memset(other, 7, sizeof other);
    each(1, 0);

    int pipes[2];
    need(pipe(pipes) == 0, "pipe");
    for (size_t page = 0; page < PAGES; page += 64) {
        need(write(pipes[1], array[page], PAGE) == PAGE, "write");
        need(read(pipes[0], other[page / 64], PAGE) == PAGE, "read");
        holds(other[page / 64], page, 1);
    }

    pid_t child = fork();
    if (child == 0) {
        each(1, 0);
        each(3, 1);
        each(3, 0);
        _exit(wrong != 0);
    }
    each(2, 1);
    int status = -1;
    need(waitpid(child, &status, 0) == child && status == 0, "the child");
    each(2, 0);

    struct rusage use;
    getrusage(RUSAGE_SELF, &use);
    need(use.ru_maxrss <= atol(arguments[1]) * 1126, "the peak is within the budget and a tenth");
    return verdict("static");
}
