/* The program that the tests of bad situations observe. Compiled by the tests with the C compiler
 * that Rust links with.
 *
 *   target churn ROUNDS        maps, touches and unmaps 32 MiB through malloc, ROUNDS times
 *   target crash               churns, then raises SIGSEGV, as a bad pointer does
 *   target threads N [FILE]    N threads that live at the same time and touch 64 KiB each; until FILE exists
 *   target until-killed FILE   churns; makes FILE after 20 rounds; ends by itself after ten minutes
 *   target deny ERRNO CMD…     runs CMD with perf_event_open(2) forbidden by a seccomp filter
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { BLOCK = 33 << 20, THREAD_BLOCK = 64 << 10 };

static void die(const char *what) {
    perror(what);
    exit(1);
}

static void churn(int rounds) {
    for (int i = 0; i < rounds; i++) {
        volatile char *block = malloc(BLOCK);
        if (!block) die("target: malloc");
        for (size_t at = 0; at < BLOCK; at += 4096) block[at] = 1;
        free((char *)block);
    }
}

static void until_killed(const char *ready) {
    time_t start = time(NULL);
    churn(20);
    int file = open(ready, O_CREAT | O_WRONLY, 0644);
    if (file < 0 || close(file) != 0) die(ready);
    while (time(NULL) - start < 600) churn(1);
}

static pthread_barrier_t all_alive;
static const char *until;

static void *touch(void *unused) {
    volatile char *block = malloc(THREAD_BLOCK);
    if (!block) die("target: malloc");
    for (size_t at = 0; at < THREAD_BLOCK; at += 4096) block[at] = 1;
    pthread_barrier_wait(&all_alive);
    /* Twenty readings of a sampler, ten of them if it is kept from running half of the time: one has to see all. */
    if (!until) sleep(2);
    while (until && access(until, F_OK) != 0) usleep(20 * 1000);
    free((char *)block);
    return unused;
}

static void threads(unsigned count) {
    pthread_t *ids = calloc(count, sizeof *ids);
    pthread_attr_t small;
    if (!ids) die("target: calloc");
    pthread_barrier_init(&all_alive, NULL, count);
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 64 << 10);
    for (unsigned i = 0; i < count; i++)
        if ((errno = pthread_create(&ids[i], &small, touch, NULL)) != 0) die("target: pthread_create");
    for (unsigned i = 0; i < count; i++) pthread_join(ids[i], NULL);
    free(ids);
}

static void deny(int error, char **command) {
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_perf_event_open, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {sizeof code / sizeof *code, code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) die("target: no_new_privs");
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0) die("target: seccomp");
    execvp(command[0], command);
    die(command[0]);
}

int main(int argc, char **argv) {
    const char *mode = argc > 1 ? argv[1] : "";
    if (strcmp(mode, "churn") == 0 && argc == 3) {
        churn(atoi(argv[2]));
    } else if (strcmp(mode, "crash") == 0) {
        churn(20);
        raise(SIGSEGV);
    } else if (strcmp(mode, "threads") == 0 && (argc == 3 || argc == 4)) {
        until = argv[3];
        threads((unsigned)atoi(argv[2]));
    } else if (strcmp(mode, "until-killed") == 0 && argc == 3) {
        until_killed(argv[2]);
    } else if (strcmp(mode, "deny") == 0 && argc > 3) {
        deny(atoi(argv[2]), argv + 3);
    } else {
        fprintf(stderr, "target: unknown arguments\n");
        return 2;
    }
    return 0;
}
