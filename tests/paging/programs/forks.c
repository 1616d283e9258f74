/* Forks while threads fault: parent and child both keep all pages. Also vfork, posix_spawn, exec, a
 * child that execs a copy of this program, children that are killed, and one whose id the kernel
 * writes. Arguments: MiB, rounds. */
#include "check.h"
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>

extern char **environ;
static char *base;
static size_t pages;
static uint64_t *version;
static atomic_int stop;

/* Another thread reads pages that nobody changes, all the time. */
static void *reader(void *argument) {
    unsigned seed = (size_t)argument;
    while (!stop) {
        size_t i = pages / 2 + rand_r(&seed) % (pages / 2);
        holds(base + i * PAGE, i, version[i]);
    }
    return NULL;
}

static int child(unsigned seed) {
    checks = wrong = 0;
    for (int i = 0; i < 3000; i++) {
        size_t at = rand_r(&seed) % pages;
        holds(base + at * PAGE, at, version[at]);
        if (i % 3 == 0) {
            version[at] += 1000;
            fill(base + at * PAGE, at, version[at]);
        }
    }
    for (size_t at = 0; at < pages; at += 7) holds(base + at * PAGE, at, version[at]);
    return wrong ? 1 : 0;
}

static void expect(pid_t pid, const char *what) {
    int status = -1;
    need(pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0, what);
}

/* The kernel writes the child's number, before the child runs, to a page that the parent has only
 * read: the child must not take it for what is stored. */
static void number_written(void) {
    for (size_t i = 0; i < pages; i++) holds(base + i * PAGE, i, version[i]);
    size_t at = pages / 3;
    holds(base + at * PAGE, at, version[at]);
    pid_t *number = (pid_t *)(base + at * PAGE + 64);
    pid_t pid = syscall(SYS_clone, SIGCHLD | CLONE_CHILD_SETTID, NULL, NULL, number, NULL);
    if (pid == 0) {
        for (size_t i = 0; i < pages; i++)
            if (i != at) holds(base + i * PAGE, i, version[i]);
        _exit(wrong || *number != getpid());
    }
    expect(pid, "number of a child");
}

int main(int count, char **arguments) {
    if (count > 1 && !strcmp(arguments[1], "execed")) return 0;
    size_t mib = count > 1 ? atol(arguments[1]) : 256;
    int rounds = count > 2 ? atoi(arguments[2]) : 5;
    pages = mib * 256;
    base = map(pages * PAGE);
    version = calloc(pages, sizeof *version);
    for (size_t i = 0; i < pages; i++) fill(base + i * PAGE, i, version[i] = i + 1);
    pthread_t thread;
    pthread_create(&thread, NULL, reader, (void *)1);
    unsigned seed = 7;
    for (int round = 0; round < rounds; round++) {
        pid_t two[2];
        for (int i = 0; i < 2; i++) {
            if ((two[i] = fork()) == 0) {
                /* A grandchild as well. */
                pid_t grandchild = i == 0 ? fork() : -1;
                if (grandchild == 0) _exit(child(round * 10 + 5));
                int status = child(round * 10 + i);
                int of_grandchild = 0;
                if (grandchild > 0) waitpid(grandchild, &of_grandchild, 0);
                _exit(status || of_grandchild);
            }
        }
        for (int i = 0; i < 2000; i++) { /* the parent goes on meanwhile */
            size_t at = rand_r(&seed) % (pages / 2);
            holds(base + at * PAGE, at, version[at]);
            version[at]++;
            fill(base + at * PAGE, at, version[at]);
        }
        expect(two[0], "first child");
        expect(two[1], "second child");
        pid_t pid = vfork();
        if (pid == 0) {
            execl("/proc/self/exe", arguments[0], "execed", (char *)NULL);
            _exit(9);
        }
        expect(pid, "vfork and exec");
        char *spawned[] = {arguments[0], "execed", NULL};
        need(posix_spawn(&pid, "/proc/self/exe", NULL, NULL, spawned, environ) == 0, "posix_spawn");
        expect(pid, "posix_spawn");
        if ((pid = fork()) == 0) {
            execl("/proc/self/exe", arguments[0], "execed", (char *)NULL);
            _exit(9);
        }
        expect(pid, "fork and exec");
        need(system("true") == 0, "system");
        if ((pid = fork()) == 0) for (;;) child(3);
        usleep(20000);
        kill(pid, SIGKILL);
        int status;
        waitpid(pid, &status, 0);
        need(WIFSIGNALED(status), "killed child");
    }
    stop = 1;
    pthread_join(thread, NULL);
    number_written();
    for (size_t i = 0; i < pages; i++) holds(base + i * PAGE, i, version[i]);
    return verdict("forks");
}
