/* Memory in pieces of 256 KiB, each in a GiB of its own, as V8 scatters its heap; some later grow
 * downwards to 3 MiB, so that they cross pieces that were numbered at different times. Arguments:
 * number of pieces, MiB of the budget; the process must stay within that plus a tenth. */
#include "check.h"
#include <sys/resource.h>

enum { PIECE = 64, MORE = 704, THREADS = 4, LATER = 50 };
static const char *const FIRST = (char *)0x200000000000;

static char **pieces;
static int count;
static atomic_int mapped;

static void *fixed(const char *at, size_t pages) {
    void *got = mmap((void *)at, pages * PAGE, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    need(got == at, "mmap");
    return got;
}

static int first_page(int number) { return number % LATER == 0 && number < mapped ? -MORE : 0; }

static void each(int first, int step, uint64_t version, int writes, int grown) {
    for (int number = first; number < count; number += step) {
        while (number >= mapped) sched_yield();
        for (int page = grown ? first_page(number) : 0; page < PIECE; page++) {
            char *at = pieces[number] + page * PAGE;
            uint64_t name = (uint64_t)number * 1024 + page;
            if (writes) fill(at, name, version);
            else holds(at, name, version);
        }
    }
}

static void *work(void *argument) {
    int first = (int)(intptr_t)argument;
    each(first, THREADS, 1, 1, 0);
    each(first, THREADS, 1, 0, 0);
    return NULL;
}

static void *work_grown(void *argument) {
    int first = (int)(intptr_t)argument;
    each(first, THREADS, 2, 1, 1);
    each(first, THREADS, 2, 0, 1);
    return NULL;
}

static void all_threads(void *(*body)(void *)) {
    pthread_t threads[THREADS];
    for (intptr_t i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, body, (void *)i);
    if (body == work)
        for (int number = 0; number < count; number++) {
            pieces[number] = fixed(FIRST + ((size_t)number << 30) + ((size_t)(number % 1000) << 18) + (16 << 20), PIECE);
            mapped = number + 1;
        }
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
}

int main(int arguments, char **argument) {
    if (arguments < 3) return 2;
    count = atoi(argument[1]);
    pieces = calloc(count, sizeof *pieces);
    all_threads(work);
    for (int number = 0; number < count; number += LATER) fixed(pieces[number] - MORE * PAGE, MORE);
    all_threads(work_grown);

    pid_t child = fork();
    if (child == 0) {
        each(0, 1, 2, 0, 1);
        each(0, 7, 3, 1, 1);
        each(0, 7, 3, 0, 1);
        _exit(wrong != 0);
    }
    int status = -1;
    need(waitpid(child, &status, 0) == child && status == 0, "the child saw what it should");
    each(0, 1, 2, 0, 1);
    for (int number = 0; number < count; number += 3) need(munmap(pieces[number], PIECE * PAGE) == 0, "munmap");

    struct rusage use;
    getrusage(RUSAGE_SELF, &use);
    need(use.ru_maxrss <= atol(argument[2]) * 1126, "the peak is within the budget and a tenth");
    return verdict("scattered");
}
