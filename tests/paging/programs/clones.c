/* Managed memory to which libc and the kernel write while a process is being created: an untouched
 * or evicted stack of the child, the words for its id, the arguments of clone3. The caller itself
 * may run on such a stack, as coroutines do. A hang is a failure: the time limit ends it.
 * Arguments: MiB; one more if the caller's stack may be managed as well. */
#include "check.h"
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <ucontext.h>

static char *base;
static size_t pages;

static void expect(pid_t pid, const char *what) {
    int status = -1;
    need(pid > 0 && waitpid(pid, &status, 0) == pid, what);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 7) return;
    fprintf(stderr, "the child ended with status %#x\n", status);
    need(0, what);
}

static int see_all(void) {
    long before = wrong;
    for (size_t i = 0; i < pages; i += 5) holds(base + i * PAGE, i, i + 1);
    return wrong == before ? 7 : 1;
}

static int child(void *argument) {
    (void)argument;
    return see_all();
}

/* Everything that holds contents is written again, so that what a test needs is away. */
static void push_out(void) {
    for (size_t i = 0; i < pages; i++) fill(base + i * PAGE, i, i + 1);
}

static void on_new_stacks(void) {
    size_t bytes = 128 << 20;
    char *untouched = map(bytes);
    expect(clone(child, untouched + bytes, SIGCHLD, NULL), "clone on an untouched stack");
    push_out();
    char *used = map(bytes);
    memset(used, 1, bytes);
    push_out();
    expect(clone(child, used + bytes / 2, SIGCHLD, NULL), "clone on a stack that is away");
    munmap(untouched, bytes);
    munmap(used, bytes);
}

/* Returns while its pages leave: the pager's last work for it is done on the same stack. */
static int child_in_a_hurry(void *argument) {
    size_t turn = (size_t)argument;
    for (size_t i = turn % 3; i < pages; i += 3) fill(base + i * PAGE, i, i + 1);
    return 7;
}

static void ends_on_managed_stacks(int count) {
    size_t bytes = 64 << 20;
    char *stack = map(bytes);
    for (int turn = 0; turn < count; turn++) {
        char *top = stack + bytes - (turn % 16 << 20);
        expect(clone(child_in_a_hurry, top, SIGCHLD, (void *)(size_t)turn, NULL), "child that returns while pages leave");
    }
    munmap(stack, bytes);
}

/* The last thread ends by a call of its own: so does the process. */
static void ends_by_itself(void) {
    pid_t pid = fork();
    if (pid == 0) syscall(SYS_exit, see_all());
    expect(pid, "child that ends its only thread");
}

static void *rests(void *milliseconds) {
    usleep((long)milliseconds * 1000);
    syscall(SYS_exit, 7);
    return NULL;
}

/* The first thread ends by itself, then another: one that has ended but whose number stays is none. */
static void ends_after_the_first(void) {
    pid_t pid = fork();
    if (pid == 0) {
        pthread_t other;
        pthread_create(&other, NULL, rests, (void *)200L);
        syscall(SYS_exit, see_all());
    }
    expect(pid, "child whose first thread ends before the last");
}

static void *ends_all(void *milliseconds) {
    usleep((long)milliseconds * 1000);
    _exit(see_all());
}

/* Returns the last one. */
static int take_descriptors(void) {
    int last = -1;
    for (int copy; (copy = dup(0)) >= 0;) last = copy;
    return last;
}

/* One descriptor is left: enough to list the threads, not to look at each. None is taken for ended. */
static void ends_without_descriptors(void) {
    pid_t pid = fork();
    if (pid == 0) {
        pthread_t other;
        pthread_create(&other, NULL, ends_all, (void *)200L);
        close(take_descriptors());
        syscall(SYS_exit, 3);
    }
    expect(pid, "child whose first thread ends when descriptors are short");
}

/* No descriptor is left before the child needs the first page, or before it exists. */
static void forks_without_descriptors(void) {
    pid_t pid = fork();
    if (pid == 0) {
        take_descriptors();
        _exit(see_all());
    }
    expect(pid, "child without descriptors");
    pid = fork();
    if (pid == 0) {
        int last = take_descriptors();
        pid_t inner = fork();
        if (inner == 0) _exit(see_all());
        for (; last > 2; last--) close(last);
        expect(inner, "child of a process without descriptors");
        _exit(see_all());
    }
    expect(pid, "process without descriptors that forks");
}

static void words(void) {
    size_t bytes = 64 << 20;
    char *room = map(bytes);
    for (size_t i = 0; i < bytes / PAGE; i++) fill(room + i * PAGE, i, 9);
    push_out();
    int flags = SIGCHLD | CLONE_PARENT_SETTID | CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID;
    int *parent = (int *)(room + 100 * PAGE), *number = (int *)(room + 5000 * PAGE);
    pid_t pid = syscall(SYS_clone, flags, NULL, parent, number, NULL);
    if (pid == 0) {
        /* The kernel wrote four bytes; what lies beside them is what it was. */
        char copy[PAGE];
        memcpy(copy, number, PAGE);
        fill(room + 5001 * PAGE, 5000, 9);
        int kept = !memcmp(copy + 4, room + 5001 * PAGE + 4, PAGE - 4) && *number == getpid();
        _exit(kept ? see_all() : 2);
    }
    need(*parent == pid, "number of the child in the parent");
    expect(pid, "numbers in memory that is away");
    push_out();
    int *handle = (int *)(room + 200 * PAGE);
    *handle = -1;
    push_out();
    pid = clone(child, room + bytes, SIGCHLD | CLONE_PIDFD, NULL, handle);
    need(*handle >= 0 && close(*handle) == 0, "descriptor of the child");
    expect(pid, "descriptor in memory that is away");
    struct clone_args *given = (struct clone_args *)(room + 300 * PAGE);
    memset(given, 0, sizeof *given);
    given->flags = CLONE_PARENT_SETTID | CLONE_PIDFD;
    given->exit_signal = SIGCHLD;
    given->parent_tid = (uintptr_t)(room + 400 * PAGE);
    given->pidfd = (uintptr_t)(room + 500 * PAGE);
    push_out();
    pid = syscall(SYS_clone3, given, sizeof *given);
    if (pid == 0) _exit(see_all());
    need(*(int *)(room + 400 * PAGE) == pid, "number by clone3");
    close(*(int *)(room + 500 * PAGE));
    expect(pid, "arguments of clone3 that are away");
    munmap(room, bytes);
}

static ucontext_t back, there;

/* On a stack that is managed, which is touched ever deeper by the calls themselves. */
static void coroutine(void) {
    pid_t pid = fork();
    if (pid == 0) _exit(see_all());
    expect(pid, "fork on a coroutine's stack");
    for (int i = 0; i < 50; i++) {
        char *piece = map(4 << 20);
        fill(piece, 1, 3);
        need(madvise(piece, 1 << 20, MADV_DONTNEED) == 0, "madvise on a coroutine's stack");
        holds(piece, 1, 0);
        need(munmap(piece, 4 << 20) == 0, "munmap on a coroutine's stack");
    }
    swapcontext(&there, &back);
}

static void on_own_stacks(void) {
    size_t bytes = 64 << 20;
    char *room = map(bytes);
    memset(room, 1, bytes);
    for (int turn = 1; turn <= 6; turn++) {
        push_out();
        getcontext(&there);
        there.uc_stack.ss_sp = room;
        there.uc_stack.ss_size = bytes / 8 * turn + turn * 1000 / 16 * 16;
        there.uc_link = &back;
        makecontext(&there, coroutine, 0);
        swapcontext(&back, &there);
    }
    munmap(room, bytes);
}

int main(int count, char **arguments) {
    pages = (count > 1 ? atol(arguments[1]) : 80) * 256;
    base = map(pages * PAGE);
    push_out();
    on_new_stacks();
    ends_on_managed_stacks(20);
    words();
    for (int i = 0; i < 20; i++) ends_by_itself();
    ends_after_the_first();
    ends_without_descriptors();
    forks_without_descriptors();
    if (count > 2) on_own_stacks();
    see_all();
    return verdict("clones");
}
