/* In addition to an array of 64 MiB, much memory in mappings of 2 MiB that are not adjacent, each
 * too small to be managed by default; taken over while threads write to them, after some were
 * locked or kept from children. Arguments: MiB, MiB of the budget, and "bounded" if the process
 * must stay within that plus a tenth, "open" if it need not, because --min-region was given. */
#include "check.h"
#include <sys/resource.h>

enum { ARRAY = 16384, PIECE = 512, THREADS = 4, LOCKED = 0, ABSENT = 1, WIPED = 2 };

static char **pieces;
static int count;
static atomic_int mapped;

/* 2 MiB between pages of another kind, so that no two are neighbours. */
static char *piece(void) {
    char *fence = mmap(NULL, (PIECE + 2) * PAGE, PROT_NONE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    need(fence != MAP_FAILED, "mmap");
    char *at = mmap(fence + PAGE, PIECE * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    need(at == fence + PAGE, "mmap");
    return at;
}

static void each(int first, int step, uint64_t version, int writes) {
    for (int number = first; number < count; number += step) {
        while (number >= mapped) sched_yield();
        for (int page = 0; page < PIECE; page++) {
            char *at = pieces[number] + page * PAGE;
            if (writes) fill(at, (uint64_t)number * PIECE + page, version);
            else holds(at, (uint64_t)number * PIECE + page, version);
        }
    }
}

static void *work(void *argument) {
    int first = (int)(intptr_t)argument;
    each(first, THREADS, 1, 1);
    each(first, THREADS, 1, 0);
    each(first, THREADS, 2, 1);
    return NULL;
}

int main(int arguments, char **argument) {
    if (arguments < 4) return 2;
    count = atoi(argument[1]) / 2;
    char *array = map(ARRAY * PAGE);
    for (int page = 0; page < ARRAY; page++) fill(array + page * PAGE, page, 4);
    pieces = calloc(count, sizeof *pieces);
    pthread_t threads[THREADS];
    for (intptr_t i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, work, (void *)i);
    int locked = 0;
    for (int number = 0; number < count; number++) {
        pieces[number] = piece();
        if (number == LOCKED) locked = mlock(pieces[number], PIECE * PAGE) == 0;
        if (number == ABSENT) need(madvise(pieces[number], PIECE * PAGE, MADV_DONTFORK) == 0, "DONTFORK");
        if (number == WIPED) need(madvise(pieces[number], PIECE * PAGE, MADV_WIPEONFORK) == 0, "WIPEONFORK");
        mapped = number + 1;
        usleep(500); /* what is mapped is touched before the next one comes */
    }
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);

    unsigned char there[PIECE];
    if (locked) {
        int resident = 0;
        need(mincore(pieces[LOCKED], PIECE * PAGE, there) == 0, "mincore");
        for (int page = 0; page < PIECE; page++) resident += there[page] & 1;
        need(resident == PIECE, "what was locked before is resident");
    } else puts("small: SKIP mlock: not allowed here");
    pid_t child = fork();
    if (child == 0) {
        need(mincore(pieces[ABSENT], PIECE * PAGE, there) == -1 && errno == ENOMEM, "not in the child");
        for (int page = 0; page < PIECE; page++) holds(pieces[WIPED] + page * PAGE, 0, 0);
        each(WIPED + 1, 1, 2, 0);
        each(WIPED + 1, 7, 3, 1);
        each(WIPED + 1, 7, 3, 0);
        _exit(wrong != 0);
    }
    int status = -1;
    need(waitpid(child, &status, 0) == child && status == 0, "the child saw what it should");
    each(0, 1, 2, 0);

    for (int page = 0; page < ARRAY; page++) holds(array + page * PAGE, page, 4);

    struct rusage use;
    getrusage(RUSAGE_SELF, &use);
    long most = atol(argument[2]) * 1126; /* KiB of 1.1 MiB */
    need((use.ru_maxrss <= most) == !strcmp(argument[3], "bounded"), "the peak is as the setting says");
    return verdict("small");
}
