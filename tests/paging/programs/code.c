/* Memory that is written and executed, as that of compilers at run time and of Lisps: one mapping that is so from
 * the start, one that becomes so. Each page is a function that returns its number. Arguments: MiB of both,
 * MiB of the budget; the process must stay within that plus a tenth. */
#include "check.h"
#include <sys/resource.h>

enum { ALL = PROT_READ | PROT_WRITE | PROT_EXEC };
static size_t pages;

static void write_code(char *at, uint32_t number) {
    fill(at, number, 1);
    at[0] = (char)0xb8; /* mov eax, number; ret */
    memcpy(at + 1, &number, 4);
    at[5] = (char)0xc3;
}

static int returns(char *at, uint32_t number) {
    union { char *bytes; uint32_t (*call)(void); } code = {at};
    int good = code.call() == number;
    need(good, "a function returns its number");
    return good;
}

static void each(char *base, uint32_t plus, int writes) {
    for (uint32_t page = 0; page < pages; page++) {
        char *at = base + page * PAGE;
        if (writes) write_code(at, page + plus);
        else returns(at, page + plus);
    }
}

int main(int count, char **arguments) {
    if (count < 3) return 2;
    pages = (size_t)atoi(arguments[1]) * 128;
    char *one = mmap(NULL, pages * PAGE, ALL, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    need(one != MAP_FAILED, "mmap");
    char *two = map(pages * PAGE);
    need(mprotect(two, pages * PAGE, ALL) == 0, "mprotect");
    each(one, 0, 1);
    each(two, 7, 1);
    each(one, 0, 0);

    pid_t child = fork();
    if (child == 0) {
        each(two, 7, 0);
        each(one, 9, 1);
        each(one, 9, 0);
        _exit(wrong != 0);
    }
    each(one, 3, 1);
    int status = -1;
    need(waitpid(child, &status, 0) == child && status == 0, "the child");
    each(one, 3, 0);
    each(two, 7, 0);
    /* Read-only code, and writable data again. */
    need(mprotect(two, pages * PAGE, PROT_READ | PROT_EXEC) == 0, "mprotect");
    each(one, 3, 0);
    each(two, 7, 0);
    need(mprotect(one, pages * PAGE, PROT_READ | PROT_WRITE) == 0, "mprotect");
    each(one, 5, 1);
    each(two, 7, 0);
    need(mprotect(one, pages * PAGE, ALL) == 0, "mprotect");
    each(one, 5, 0);

    struct rusage use;
    getrusage(RUSAGE_SELF, &use);
    need(use.ru_maxrss <= atol(arguments[2]) * 1126, "the peak is within the budget and a tenth");
    return verdict("code");
}
