/* Calls by an instruction of this program's own instead of libc's functions, on memory of which much is away:
 * each must do what it does without a pager. Usage: past_libc MIB */
#include "check.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <threads.h>
#include <ucontext.h>

static long raw(long n, long a, long b, long c, long d, long e, long f) {
    register long r10 asm("r10") = d, r8 asm("r8") = e, r9 asm("r9") = f;
    long answer;
    asm volatile("syscall" : "=a"(answer) : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9) : "rcx", "r11", "memory");
    return answer;
}
#define RAW(n, ...) raw_(n, ##__VA_ARGS__, 0, 0, 0, 0, 0, 0)
#define raw_(n, a, b, c, d, e, f, ...) raw(n, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))

static unsigned char *memory;
static long pages;
static long version = 1;

/* All pages, in order, so that the first ones leave. */
static void fill_all(void) {
    version++;
    for (long i = 0; i < pages; i++) fill(memory + i * PAGE, i, version);
}
static void zeros(long from, long count) {
    for (long i = from; i < from + count; i++) holds(memory + i * PAGE, i, 0), fill(memory + i * PAGE, i, version);
}
static int some_wrong(void) {
    long before = wrong;
    for (long i = 0; i < pages; i += 7) holds(memory + i * PAGE, i, version);
    return wrong != before;
}
static void ended_well(long child, const char *what) {
    int status = -1;
    need(child > 0 && waitpid(child, &status, __WALL) == child && status == 0, what);
}

static atomic_int own_signals, blocked_signals;
static void on_own(int number, siginfo_t *info, void *context) {
    ucontext_t *state = context;
    if (info->si_code == 1 && info->si_syscall == SYS_personality) state->uc_mcontext.gregs[REG_RAX] = 4711, own_signals++;
    (void)number;
}
static void on_usr(int number) {
    blocked_signals += number == SIGUSR1;
    need(RAW(SYS_madvise, memory, 8 * PAGE, MADV_DONTNEED) == 0, "madvise in a handler");
}

static atomic_int begun;
static int threaded(void *argument) {
    (void)argument;
    need(RAW(SYS_madvise, memory + 64 * PAGE, 64 * PAGE, MADV_DONTNEED) == 0, "madvise by a thread of C11");
    return 0;
}
static void *posix_threaded(void *argument) {
    (void)argument;
    need(RAW(SYS_madvise, memory + 128 * PAGE, 64 * PAGE, MADV_DONTNEED) == 0, "madvise by a thread");
    return 0;
}

/* A thread made by hand, with this thread's local storage: it makes calls of its own alone. */
static long stack_thread(long number, long *stack, long flags, int *gone) {
    static unsigned long arguments[8];
    long answer;
    memset(arguments, 0, sizeof arguments);
    arguments[0] = flags, arguments[2] = (long)gone, arguments[5] = (long)stack - 65536, arguments[6] = 65536;
    register long r10 asm("r10") = (long)gone;
    long first = number == SYS_clone3 ? (long)arguments : flags, second = number == SYS_clone3 ? 64 : (long)stack;
    asm volatile("syscall\n test %%rax,%%rax\n jnz 1f\n"
                 "mov %[memory],%%rdi\n mov $262144,%%esi\n mov $4,%%edx\n mov $28,%%eax\n syscall\n" // madvise
                 "movl $1,%[begun]\n xor %%edi,%%edi\n mov $60,%%eax\n syscall\n"
                 "1:\n"
                 : "=a"(answer), [begun] "=m"(begun)
                 : "a"(number), "D"(first), "S"(second), "d"(0), "r"(r10), [memory] "b"(memory + 256 * PAGE)
                 : "rcx", "r11", "memory");
    return answer;
}

/* vfork, and the child becomes another program, all by instructions in one function that saves nothing on
 * the stack. */
static long vfork_exec(const char *path, char **arguments, char **environment) {
    long answer;
    asm volatile("syscall\n test %%rax,%%rax\n jnz 1f\n"
                 "mov %[path],%%rdi\n mov %[arguments],%%rsi\n mov %[environment],%%rdx\n mov $59,%%eax\n syscall\n"
                 "mov $9,%%edi\n mov $60,%%eax\n syscall\n"
                 "1:\n"
                 : "=a"(answer)
                 : "a"((long)SYS_vfork), [path] "b"(path), [arguments] "r"(arguments), [environment] "r"(environment)
                 : "rcx", "r11", "rdi", "rsi", "rdx", "memory");
    return answer;
}

int main(int count, char **v) {
    (void)count;
    pages = atol(v[1]) * 256;
    memory = map(pages * PAGE);
    fill_all();

    errno = 77;
    need(RAW(SYS_madvise, memory + PAGE, 40 * PAGE, MADV_DONTNEED) == 0, "madvise");
    need(RAW(SYS_madvise, memory + 1, PAGE, MADV_DONTNEED) == -EINVAL && errno == 77, "an error, and errno as it was");
    zeros(1, 40);
    struct iovec parts[2] = {{memory + 50 * PAGE, 4 * PAGE}, {memory + 60 * PAGE, 4 * PAGE}};
    long self = RAW(434, getpid(), 0), dropped = RAW(440, self, parts, 2, MADV_DONTNEED, 0);
    if (dropped > 0) need(dropped == 8 * PAGE, "process_madvise"), zeros(50, 4), zeros(60, 4);
    RAW(SYS_close, self);
    some_wrong();

    // Moves: what is away goes along.
    unsigned char *moved = (void *)RAW(SYS_mremap, memory + 300 * PAGE, 100 * PAGE, 200 * PAGE, MREMAP_MAYMOVE);
    for (long i = 0; i < 200; i++) holds(moved + i * PAGE, 300 + i, i < 100 ? version : 0);
    need(RAW(SYS_mremap, moved, 200 * PAGE, 100 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, memory + 300 * PAGE) == (long)(memory + 300 * PAGE), "mremap back");
    some_wrong();

    // Removed and replaced.
    need(RAW(SYS_munmap, memory + 500 * PAGE, 50 * PAGE) == 0, "munmap");
    need(RAW(SYS_mmap, memory + 500 * PAGE, 50 * PAGE, 3, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == (long)(memory + 500 * PAGE), "mmap there");
    zeros(500, 50);
    need(RAW(SYS_mmap, memory + 600 * PAGE, 50 * PAGE, 3, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) > 0, "mmap over it");
    zeros(600, 50);
    need(RAW(SYS_mprotect, memory + 700 * PAGE, 64 * PAGE, PROT_READ) == 0, "mprotect");
    for (long i = 700; i < 764; i++) holds(memory + i * PAGE, i, version);
    need(RAW(SYS_mprotect, memory + 700 * PAGE, 64 * PAGE, PROT_READ | PROT_WRITE) == 0, "mprotect back");

    // The heap's end, beyond what libc knows, and back.
    long end = RAW(SYS_brk, 0), up = RAW(SYS_brk, end + (4 << 20));
    need(up == end + (4 << 20), "brk");
    memset((void *)end, 5, 4 << 20);
    fill_all();
    need(*(char *)(end + (3 << 20)) == 5 && RAW(SYS_brk, end) == end && RAW(SYS_brk, up) == up, "brk back, and up");
    need(*(char *)(end + (3 << 20)) == 0, "a new heap is zero");
    RAW(SYS_brk, end);
    fill_all();

    // Forks of every kind.
    long child = RAW(SYS_fork);
    if (!child) RAW(SYS_exit_group, some_wrong());
    ended_well(child, "fork");
    child = RAW(SYS_clone, SIGCHLD);
    if (!child) fill_all(), RAW(SYS_exit_group, some_wrong());
    ended_well(child, "clone");
    unsigned long arguments[8] = {0, 0, 0, 0, SIGCHLD};
    child = RAW(SYS_clone3, arguments, 64);
    if (!child) RAW(SYS_madvise, memory, 20 * PAGE, MADV_DONTNEED), zeros(0, 20), RAW(SYS_exit_group, some_wrong());
    ended_well(child, "clone3");
    need(RAW(SYS_clone3, memory, 8) == -EINVAL, "clone3 with too few arguments");
    fill_all();
    char *program[] = {"sh", "-c", "exit 0", 0};
    ended_well(vfork_exec("/bin/sh", program, environ), "vfork and exec");
    ended_well(vfork_exec("/bin/sh", program, environ), "vfork and exec again");
    child = fork();
    if (!child) RAW(SYS_execve, "/bin/sh", program, environ), _exit(9);
    ended_well(child, "exec in the child of libc's fork");
    some_wrong();

    // Threads.
    thrd_t thread;
    need(thrd_create(&thread, threaded, 0) == thrd_success && thrd_join(thread, 0) == thrd_success, "C11's threads");
    zeros(64, 64);
    pthread_t other;
    pthread_create(&other, 0, posix_threaded, 0);
    pthread_join(other, 0);
    zeros(128, 64);
    static int gone;
    unsigned char *stack = mmap(0, 65536, 3, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    long flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM | CLONE_CHILD_CLEARTID;
    for (int round = 0; round < 2; round++) {
        gone = 1, begun = 0;
        need(stack_thread(round ? SYS_clone3 : SYS_clone, (long *)(stack + 65536), flags, &gone) > 0, "a thread by hand");
        while (*(volatile int *)&gone) sched_yield();
        need(begun == 1, "it ran");
        zeros(256, 64);
    }
    some_wrong();

    // Signals: masks, handlers and stacks set past libc.
    unsigned long every = ~0ul, former = 1;
    need(RAW(SYS_rt_sigprocmask, SIG_SETMASK, &every, &former, 8) == 0 && former == 0, "all signals blocked");
    need(RAW(SYS_madvise, memory, 16 * PAGE, MADV_DONTNEED) == 0, "madvise with all signals blocked");
    zeros(0, 16);
    signal(SIGUSR1, on_usr);
    RAW(SYS_tgkill, getpid(), gettid(), SIGUSR1);
    need(blocked_signals == 0, "a signal that is blocked");
    need(RAW(SYS_rt_sigprocmask, SIG_SETMASK, &former, 0, 8) == 0 && blocked_signals == 1, "and comes");
    zeros(0, 8);
    stack_t own = {mmap(0, 65536, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 0, 65536}, now = {0};
    need(RAW(SYS_sigaltstack, &own, 0) == 0 && RAW(SYS_sigaltstack, 0, &now) == 0 && now.ss_sp == own.ss_sp, "sigaltstack");
    need(RAW(SYS_sigaltstack, 1, 0) == -EFAULT, "sigaltstack with a bad pointer");

    // The program's own SIGSYS, by its own filter.
    struct sigaction action = {.sa_sigaction = on_own, .sa_flags = SA_SIGINFO}, was;
    need(sigaction(SIGSYS, &action, &was) == 0 && was.sa_handler == SIG_DFL, "sigaction of SIGSYS");
    struct sock_filter filter[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
                                   BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_personality, 0, 1),
                                   BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    struct sock_fprog filters = {4, filter};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    need(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filters) == 0, "a filter");
    need(syscall(SYS_personality, -1) == 4711 && RAW(SYS_personality, -1) == 4711 && own_signals == 2, "the program's own SIGSYS");
    need(RAW(SYS_madvise, memory, 16 * PAGE, MADV_DONTNEED) == 0, "madvise behind a filter");
    zeros(0, 16);

    // Last: by exit, and not by libc's.
    some_wrong();
    int status = verdict("past_libc");
    RAW(SYS_exit_group, status);
}
