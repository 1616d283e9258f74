/* Address space that is reserved and then made accessible piece by piece, as allocators and virtual machines
 * do. While next to nothing is in use, the pager must not even start threads: some programs insist on having one.
 * Arguments: MiB, MiB of the budget; the process must stay within that plus a tenth. */
#include "check.h"
#include <dirent.h>
#include <sys/resource.h>

enum { STEP = 16 };
#define RESERVED (8ul << 30)

static int threads(void) {
    DIR *all = opendir("/proc/self/task");
    int count = -2;
    while (readdir(all)) count++;
    closedir(all);
    return count;
}

static void *of_a_thread(void *argument) {
    /* The arena of another thread than the first grows within a reservation. */
    size_t pages = (size_t)argument, each = 24;
    char **pieces = calloc(pages / each, sizeof *pieces);
    for (size_t i = 0; i < pages / each; i++) {
        pieces[i] = malloc(each * PAGE);
        for (size_t page = 0; page < each - 1; page++) fill(pieces[i] + 16 + page * PAGE, i * each + page, 1);
    }
    for (size_t i = 0; i < pages / each; i++)
        for (size_t page = 0; page < each - 1; page++) holds(pieces[i] + 16 + page * PAGE, i * each + page, 1);
    for (size_t i = 0; i < pages / each; i++) free(pieces[i]);
    free(pieces);
    return NULL;
}

int main(int count, char **arguments) {
    if (count < 3) return 2;
    size_t pages = (size_t)atoi(arguments[1]) * 256;
    char *base = mmap(NULL, RESERVED, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    need(base != MAP_FAILED, "mmap");
    base += PAGE;
    for (size_t page = 0; page < pages; page += STEP) {
        need(mprotect(base + page * PAGE, STEP * PAGE, PROT_READ | PROT_WRITE) == 0, "mprotect");
        for (size_t at = page; at < page + STEP; at++) fill(base + at * PAGE, at, 1);
        if (page == 64) need(threads() == 1, "one thread while next to nothing is in use");
    }
    need(threads() > 1, "threads of the pager");
    for (size_t page = 0; page < pages; page++) holds(base + page * PAGE, page, 1);
    pthread_t thread;
    pthread_create(&thread, NULL, of_a_thread, (void *)(pages / 2));
    pthread_join(thread, NULL);
    /* Given back, reserved anew, and used in other pieces. */
    char *half = base + pages / 2 * PAGE;
    need(mmap(half, pages / 4 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0) == half, "mmap");
    need(mprotect(half, pages / 4 * PAGE, PROT_READ | PROT_WRITE) == 0, "mprotect");
    for (size_t page = 0; page < pages / 4; page++) holds(half + page * PAGE, page, 0);
    for (size_t page = 0; page < pages / 4; page++) fill(half + page * PAGE, page, 2);
    for (size_t page = 0; page < pages / 2; page++) holds(base + page * PAGE, page, 1);
    for (size_t page = 0; page < pages / 4; page++) holds(half + page * PAGE, page, 2);

    struct rusage use;
    getrusage(RUSAGE_SELF, &use);
    need(use.ru_maxrss <= atol(arguments[2]) * 1126, "the peak is within the budget and a tenth");
    return verdict("reserve");
}
