/* Threads of known kinds: one computes, one sleeps, one waits for a pipe, a child computes while the
 * first thread waits for it. Each line of output is a thread: process, thread, what it is, CPU time
 * and lifetime in ns. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int ends[2];

static uint64_t now(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void tell(const char *what, uint64_t began) {
    printf("%d %ld %s %llu %llu\n", getpid(), syscall(SYS_gettid), what,
           (unsigned long long)now(CLOCK_THREAD_CPUTIME_ID),
           (unsigned long long)(now(CLOCK_MONOTONIC) - began));
    fflush(stdout);
}

static void compute(uint64_t ns) {
    volatile uint64_t sum = 0;
    while (now(CLOCK_THREAD_CPUTIME_ID) < ns)
        for (int i = 0; i < 10000; i++)
            sum += (uint64_t)i;
}

static void rest(int ms) {
    struct timespec t = {ms / 1000, (long)(ms % 1000) * 1000000};
    nanosleep(&t, NULL);
}

static void *computes(void *began) {
    prctl(PR_SET_NAME, "computes");
    compute(600000000);
    tell("computes", *(uint64_t *)began);
    return NULL;
}

static void *sleeps(void *began) {
    prctl(PR_SET_NAME, "sleeps");
    rest(900);
    if (write(ends[1], "x", 1) != 1)
        exit(1);
    tell("sleeps", *(uint64_t *)began);
    return NULL;
}

static void *reads(void *began) {
    char byte;
    prctl(PR_SET_NAME, "reads");
    if (read(ends[0], &byte, 1) != 1)
        exit(1);
    tell("reads", *(uint64_t *)began);
    return NULL;
}

int main(void) {
    uint64_t began = now(CLOCK_MONOTONIC);
    pthread_t threads[3];
    void *(*work[3])(void *) = {computes, sleeps, reads};
    if (pipe(ends) != 0)
        return 1;
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, work[i], &began);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    began = now(CLOCK_MONOTONIC);
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_NAME, "child");
        compute(300000000);
        tell("child", began);
        _exit(0);
    }
    waitpid(child, NULL, 0);
    return 0;
}
