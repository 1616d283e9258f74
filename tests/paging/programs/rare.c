/* Calls that are rare, or come past libc's functions, and children in circumstances that are: all pages
 * stay, every child ends, and what fails does so as on Linux. Arguments: MiB, folder. */
#include "check.h"
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>

extern char **environ;
static char *base;
static size_t pages;

static void push_out(void) {
    for (size_t i = 0; i < pages; i++) fill(base + i * PAGE, i, i + 1);
}

static int see_all(void) {
    long before = wrong;
    for (size_t i = 0; i < pages; i++) holds(base + i * PAGE, i, i + 1);
    return wrong == before ? 7 : 1;
}

static void expect(pid_t pid, const char *what) {
    int status = -1;
    need(pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 7, what);
}

static void refused(long answer, int number, const char *what) { need(answer == -1 && errno == number, what); }

static void create(char *path, const char *folder, const char *text, size_t bytes) {
    snprintf(path, 4200, "%s/rare.%d.%zu", folder, getpid(), bytes);
    int file = open(path, O_CREAT | O_WRONLY | O_TRUNC, 0700);
    need(write(file, text, bytes) == (ssize_t)bytes, "a program");
    close(file);
}

/* The kernel refuses the new program late; what shares pages with others goes on with all of them. */
static void failing_execs(const char *folder) {
    char script[4200], part[4200];
    create(script, folder, "#!/nonexistent/interpreter\n", 27);
    create(part, folder, "\177ELF\2\1\1", 7);
    char *large = malloc(200000);
    memset(large, 'x', 199999);
    large[199999] = 0;
    for (int generation = 0; generation < 2; generation++) {
        pid_t pid = fork();
        if (pid == 0) {
            refused(execl(script, script, NULL), ENOENT, "exec of a script without its interpreter");
            see_all();
            refused(execl(part, part, NULL), ENOEXEC, "exec of a part of a program");
            see_all();
            refused(execl("/bin/true", large, NULL), E2BIG, "exec with an argument too long");
            if (generation == 0 && fork() == 0) _exit(0);
            _exit(see_all());
        }
        expect(pid, "child whose execs fail");
    }
    refused(execl("/bin/true", large, NULL), E2BIG, "exec with an argument too long");
    see_all();
    unlink(script);
    unlink(part);
    free(large);
}

/* By syscall(2), as libraries close everything that libc has no function for. */
static void closing(void) {
    need(syscall(SYS_close_range, 3, ~0U, 0) == 0, "close_range");
    see_all();
    for (int fd = 3; fd < 70000; fd++) syscall(SYS_close, fd);
    see_all();
    pid_t pid = fork();
    if (pid == 0) {
        for (int fd = 3; fd < 70000; fd++) syscall(SYS_dup2, 0, fd);
        _exit(see_all());
    }
    expect(pid, "child that fills its table of descriptors");
}

static int body(void *folder) {
    if (folder && (chroot(folder) || chdir("/"))) return 2;
    return see_all();
}

static void children(const char *folder) {
    static char stack[1 << 20] __attribute__((aligned(64)));
    int files = SIGCHLD | CLONE_FS | CLONE_FILES;
    for (int i = 0; i < 2; i++) expect(clone(body, stack + (1 << 20), files, NULL), "child that shares descriptors");
    push_out();
    if (geteuid() == 0) expect(clone(body, stack + (1 << 20), SIGCHLD, (void *)folder), "child without /proc");
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    struct rlimit low = {3, limit.rlim_max};
    setrlimit(RLIMIT_NOFILE, &low);
    pid_t pid = fork();
    if (pid == 0) {
        getrlimit(RLIMIT_NOFILE, &limit);
        _exit(limit.rlim_cur == 3 ? see_all() : 3);
    }
    expect(pid, "child that may open nothing");
    setrlimit(RLIMIT_NOFILE, &limit);
    if ((pid = fork()) == 0) {
        struct rlimit none = {0, 0};
        setrlimit(RLIMIT_DATA, &none);
        pid_t inner = fork();
        if (inner == 0) _exit(see_all());
        expect(inner, "child that may map nothing");
        _exit(see_all());
    }
    expect(pid, "process that may map nothing");
}

static pthread_mutex_t *robust;

static void *holder(void *unused) {
    (void)unused;
    pthread_mutex_lock(robust);
    madvise((void *)((uintptr_t)robust & -PAGE), PAGE, MADV_PAGEOUT);
    return NULL;
}

/* A thread ends with a robust mutex in a page that is away. */
static void robust_mutexes(void) {
    for (int protocol = 0; protocol < 2; protocol++) {
        robust = (void *)(base + (size_t)(40 + protocol) * PAGE + 64);
        pthread_mutexattr_t kind;
        pthread_mutexattr_init(&kind);
        pthread_mutexattr_setrobust(&kind, PTHREAD_MUTEX_ROBUST);
        pthread_mutexattr_setprotocol(&kind, protocol ? PTHREAD_PRIO_INHERIT : PTHREAD_PRIO_NONE);
        pthread_mutex_init(robust, &kind);
        pthread_t thread;
        pthread_create(&thread, NULL, holder, NULL);
        pthread_join(thread, NULL);
        struct timespec limit;
        clock_gettime(CLOCK_REALTIME, &limit);
        limit.tv_sec += LONGEST_WAIT_S;
        need(pthread_mutex_timedlock(robust, &limit) == EOWNERDEAD, "a robust mutex of a thread that has ended");
        pthread_mutex_consistent(robust);
        pthread_mutex_unlock(robust);
        fill(base + (size_t)(40 + protocol) * PAGE, 40 + protocol, 41 + protocol);
    }
}

static atomic_int ticks;

static void on_tick(int number) {
    (void)number;
    static unsigned seed = 3;
    for (int i = 0; i < 5; i++) {
        size_t at = rand_r(&seed) % pages;
        holds(base + at * PAGE, at, at + 1);
    }
    ticks++;
}

static void on_bus(int number) { (void)number; }

/* Everything is blocked while the handler runs, on a stack that leaves. SIGBUS is never really blocked. */
static void signals(void) {
    char *area = map(64 << 20);
    memset(area, 1, 64 << 20);
    stack_t stack = {.ss_sp = area + (5 << 20), .ss_size = 65536};
    need(sigaltstack(&stack, NULL) == 0, "sigaltstack");
    struct sigaction action = {.sa_handler = on_tick, .sa_flags = SA_ONSTACK};
    sigfillset(&action.sa_mask);
    sigaction(SIGALRM, &action, NULL);
    struct itimerval often = {{0, 50000}, {0, 50000}}, never = {{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &often, NULL);
    for (int i = 0; i < 3; i++) {
        see_all();
        madvise(stack.ss_sp, stack.ss_size, MADV_PAGEOUT);
    }
    setitimer(ITIMER_REAL, &never, NULL);
    need(ticks > 0, "the timer ticked");
    struct { void *handler; unsigned long flags; void *restorer; unsigned long mask; } own = {on_bus, 0, NULL, 0}, seen;
    need(syscall(SYS_rt_sigaction, SIGBUS, &own, NULL, 8) == 0, "rt_sigaction");
    need(syscall(SYS_rt_sigaction, SIGBUS, NULL, &seen, 8) == 0 && seen.handler == on_bus, "it is known");
    unsigned long all = -1, none = 0;
    need(syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, NULL, 8) == 0, "rt_sigprocmask");
    see_all();
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &none, NULL, 8);
    need(sysv_signal(SIGBUS, SIG_DFL) == on_bus, "sysv_signal");
    see_all();
    stack.ss_flags = SS_DISABLE;
    sigaltstack(&stack, NULL);
    munmap(area, 64 << 20);
}

static void *spins(void *until) {
    while (now() < *(double *)until) for (volatile int i = 0; i < 100000; i++) continue;
    return NULL;
}

/* The kernel writes to stacks of threads, and to those that run, without a touch of theirs. */
static void stacks(void) {
    char *area = map(64 << 20);
    memset(area, 1, 64 << 20);
    double until = now() + 0.5;
    pthread_t threads[4];
    signal(SIGUSR1, on_bus);
    for (int i = 0; i < 4; i++) {
        pthread_attr_t own;
        pthread_attr_init(&own);
        pthread_attr_setstack(&own, area + ((size_t)i << 23), 1 << 20);
        need(pthread_create(&threads[i], &own, spins, &until) == 0, "a thread on a given stack");
    }
    while (now() + 0.1 < until) {
        madvise(area, 64 << 20, MADV_PAGEOUT);
        for (int i = 0; i < 4; i++) pthread_kill(threads[i], SIGUSR1);
        usleep(20000);
    }
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    munmap(area, 64 << 20);
}

static void *is_signalled(void *unused) {
    (void)unused;
    double until = now() + 0.3;
    while (now() < until) {
        madvise(base, pages * PAGE, MADV_PAGEOUT);
        pthread_kill(pthread_self(), SIGUSR1);
    }
    return NULL;
}

/* A stack with more contents than the budget has room for: the kernel writes to it all the same. */
static void large_stack(void) {
    size_t bytes = 40 << 20;
    char *area = map(bytes);
    memset(area, 1, bytes);
    signal(SIGUSR1, on_bus);
    pthread_attr_t own;
    pthread_attr_init(&own);
    pthread_attr_setstack(&own, area, bytes);
    madvise(area, bytes, MADV_PAGEOUT);
    pthread_t thread;
    need(pthread_create(&thread, &own, is_signalled, NULL) == 0, "a thread on a large stack");
    madvise(area, bytes, MADV_PAGEOUT);
    pthread_join(thread, NULL);
    munmap(area, bytes);
}

static void mappings(void) {
    refused(madvise(base, -PAGE, MADV_PAGEOUT), EINVAL, "madvise beyond the end of all addresses");
    need(mremap(base, PAGE, PAGE, 64) == MAP_FAILED && errno == EINVAL, "mremap with an unknown flag");
    int segment = shmget(IPC_PRIVATE, 64 * PAGE, IPC_CREAT | 0600);
    char *place = base + 1000 * PAGE;
    need(shmat(segment, place, SHM_REMAP) == place, "shmat over managed memory");
    shmctl(segment, IPC_RMID, NULL);
    for (int i = 0; i < 64; i++) holds(place + i * PAGE, 1000 + i, 0);
    push_out();
    pid_t pid = fork();
    if (pid == 0) {
        fill(place, 1000, 5);
        _exit(7);
    }
    expect(pid, "child that shares a segment");
    holds(place, 1000, 5);
    fill(place, 1000, 1001);
}

int main(int count, char **arguments) {
    const char *folder = count > 2 ? arguments[2] : ".";
    pages = (count > 1 ? atol(arguments[1]) : 64) * 256;
    base = map(pages * PAGE);
    push_out();
    mappings();
    robust_mutexes();
    signals();
    stacks();
    large_stack();
    failing_execs(folder);
    children(folder);
    closing();
    see_all();
    return verdict("rare");
}
