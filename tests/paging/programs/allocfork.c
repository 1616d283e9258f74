/* Forks while other threads allocate, free and fault in their allocations, so that malloc's locks
 * may be held at any moment; the children allocate as well. Also forks that bypass libraries:
 * _Fork, clone, the system call. Arguments: MiB, rounds. */
#include "check.h"
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#define THREADS 4
#define BLOCKS 64

static char *base;
static size_t pages, bytes_each;
static atomic_int stop;

static void *work(void *argument) {
    unsigned seed = (size_t)argument + 1;
    unsigned char *blocks[BLOCKS] = {0};
    while (!stop) {
        int i = rand_r(&seed) % BLOCKS;
        size_t bytes = bytes_each / 2 + rand_r(&seed) % bytes_each;
        if (blocks[i]) {
            need(blocks[i][0] == (unsigned char)i && blocks[i][bytes_each / 2 - 1] == (unsigned char)~i, "block");
            free(blocks[i]);
            blocks[i] = NULL;
        } else {
            blocks[i] = malloc(bytes);
            memset(blocks[i], 7, bytes);
            blocks[i][0] = i;
            blocks[i][bytes_each / 2 - 1] = ~i;
        }
    }
    for (int i = 0; i < BLOCKS; i++) free(blocks[i]);
    return NULL;
}

static int child(unsigned seed) {
    checks = wrong = 0;
    for (int i = 0; i < 500; i++) {
        size_t at = rand_r(&seed) % pages;
        holds(base + at * PAGE, at, 1);
        char *block = malloc(100 + rand_r(&seed) % 200000);
        block[0] = 1;
        if (i % 2) free(block);
    }
    for (size_t at = 0; at < pages; at += 13) holds(base + at * PAGE, at, 1);
    return wrong != 0;
}

/* The child of a fork that libc did not prepare: malloc's locks may be held, pages are all there. */
static int pages_only(void *unused) {
    (void)unused;
    checks = wrong = 0;
    for (size_t at = 0; at < pages; at++) holds(base + at * PAGE, at, 1);
    _exit(wrong != 0);
}

int main(int count, char **arguments) {
    size_t mib = count > 1 ? atol(arguments[1]) : 64;
    int rounds = count > 2 ? atoi(arguments[2]) : 6;
    pages = mib * 256;
    bytes_each = 100000;
    base = map(pages * PAGE);
    for (size_t i = 0; i < pages; i++) fill(base + i * PAGE, i, 1);
    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, work, (void *)i);
    static char stack[256 << 10] __attribute__((aligned(16)));
    for (int round = 0; round < rounds; round++) {
        pid_t pid = -1;
        switch (round % 4) {
        case 0: case 1: pid = fork(); break;
        case 2:
#if __GLIBC_PREREQ(2, 34)
            pid = _Fork();
#else
            pid = fork();
#endif
            break;
        case 3:
            pid = round % 8 == 3 ? clone(pages_only, stack + sizeof stack, SIGCHLD, NULL)
                                 : (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, 0);
        }
        if (pid == 0) {
            if (round % 4 < 2) _exit(child(round));
            pages_only(NULL);
        }
        int status = -1;
        need(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0, "child");
    }
    stop = 1;
    for (size_t i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    for (size_t i = 0; i < pages; i++) holds(base + i * PAGE, i, 1);
    return verdict("allocfork");
}
