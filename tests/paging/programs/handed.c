/* Threads read and write pages at random until the kernel pages this program (a swap file lies in FOLDER),
 * and then go on; forks before and after. Arguments: MiB, FOLDER. */
#include "check.h"

#define THREADS 4
#define AFTERWARDS 20000

static char *base;
static uint64_t *version;
static size_t pages;
static const char *folder;
static double until;

static int is_handed(void) {
    static atomic_int handed;
    char line[512];
    FILE *file = handed ? NULL : fopen("/proc/swaps", "r");
    while (file && fgets(line, sizeof line, file))
        if (strstr(line, folder)) handed = 1;
    if (file) fclose(file);
    return handed;
}

static void touch(size_t page, unsigned *seed) {
    holds(base + page * PAGE, page, version[page]);
    if (rand_r(seed) % 2) return;
    version[page]++;
    fill(base + page * PAGE, page, version[page]);
}

static void *work(void *argument) {
    size_t me = (size_t)argument, own = pages / THREADS;
    unsigned seed = me + 1;
    long left = AFTERWARDS;
    while (left > 0 && now() < until) {
        for (int turn = 0; turn < 200; turn++) touch(me * own + rand_r(&seed) % own, &seed);
        if (is_handed()) left -= 200;
    }
    return NULL;
}

static void check_all(void) {
    for (size_t page = 0; page < pages; page++) holds(base + page * PAGE, page, version[page]);
}

/* A child has all pages, writes to a third of them, and its parent sees nothing of it. */
static void fork_one(void) {
    pid_t child = fork();
    need(child >= 0, "fork");
    if (child == 0) {
        for (size_t page = 0; page < pages; page += 3) fill(base + page * PAGE, page, ++version[page]);
        check_all();
        _exit(wrong != 0);
    }
    int status = -1;
    need(waitpid(child, &status, 0) == child && status == 0, "the child finds all pages");
    check_all();
}

int main(int count, char **arguments) {
    if (count < 3) return 2;
    folder = arguments[2];
    pages = (size_t)atol(arguments[1]) << 20 >> 12;
    base = map(pages * PAGE);
    version = calloc(pages, sizeof *version);
    for (size_t page = 0; page < pages; page++) fill(base + page * PAGE, page, version[page] = 1);
    fork_one();
    until = now() + LONGEST_WAIT_S;
    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS; i++) need(pthread_create(&threads[i], NULL, work, (void *)i) == 0, "a thread");
    for (size_t i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    need(is_handed(), "the kernel takes over");
    fork_one();
    /* New memory, and old memory dropped: both as before. */
    char *more = map(pages / 4 * PAGE);
    for (size_t page = 0; page < pages / 4; page++) fill(more + page * PAGE, page, 7);
    need(madvise(base, pages / 8 * PAGE, MADV_DONTNEED) == 0, "DONTNEED");
    memset(version, 0, pages / 8 * sizeof *version);
    check_all();
    for (size_t page = 0; page < pages / 4; page++) holds(more + page * PAGE, page, 7);
    return verdict("handed");
}
