/* Signals: the program's own handlers of SIGBUS and SIGSEGV, longjmp out of them, blocked signals,
 * timers that interrupt faults, and handlers that fault themselves. */
#include "check.h"
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/time.h>

static char *base;
static size_t pages;
static sigjmp_buf place;
static volatile char *volatile nowhere = (char *)8;
static atomic_int bus, segv, ticks;

static void on_bus(int number, siginfo_t *info, void *context) {
    (void)number; (void)info; (void)context;
    bus++;
    siglongjmp(place, 1);
}

static void on_segv(int number) {
    (void)number;
    segv++;
    siglongjmp(place, 1);
}

static void on_tick(int number) {
    (void)number;
    static unsigned seed = 3;
    ticks++;
    size_t i = rand_r(&seed) % pages; /* faults inside a handler */
    holds(base + i * PAGE, i, 1);
}

static sigjmp_buf out;
static atomic_int jumping;
static void on_alarm_jump(int number) {
    (void)number;
    if (jumping) siglongjmp(out, 1); /* out of whatever was interrupted */
}

static void *blocked(void *argument) {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, NULL);
    unsigned seed = (size_t)argument;
    for (int i = 0; i < 8000; i++) {
        size_t at = rand_r(&seed) % pages;
        holds(base + at * PAGE, at, 1);
    }
    return NULL;
}

int main(int count, char **arguments) {
    size_t mib = count > 1 ? atol(arguments[1]) : 256;
    const char *folder = count > 2 ? arguments[2] : "/var/tmp";
    pages = mib * 256;
    base = map(pages * PAGE);
    for (size_t i = 0; i < pages; i++) fill(base + i * PAGE, i, 1);

    struct sigaction action = {.sa_sigaction = on_bus, .sa_flags = SA_SIGINFO}, former;
    need(sigaction(SIGBUS, &action, NULL) == 0, "sigaction SIGBUS");
    need(sigaction(SIGBUS, NULL, &former) == 0 && former.sa_sigaction == on_bus, "the program sees its own handler");
    struct sigaction other = {.sa_handler = on_segv};
    need(sigaction(SIGSEGV, &other, NULL) == 0, "sigaction SIGSEGV");

    /* A real SIGBUS: behind the end of a file. */
    char path[400];
    snprintf(path, sizeof path, "%s/pagewise-handlers.%d", folder, getpid());
    int file = open(path, O_RDWR | O_CREAT, 0600);
    unlink(path);
    char *hole = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, file, 0);
    for (int i = 0; i < 100; i++) {
        if (sigsetjmp(place, 1) == 0) { (void)*(volatile char *)hole; need(0, "no SIGBUS behind the end of a file"); }
        size_t at = (i * 7919) % pages;
        holds(base + at * PAGE, at, 1);
        if (sigsetjmp(place, 1) == 0) { *nowhere = 1; need(0, "no SIGSEGV"); }
        char *closed = base + at * PAGE;
        mprotect(closed, PAGE, PROT_NONE);
        if (sigsetjmp(place, 1) == 0) { (void)*(volatile char *)closed; need(0, "no SIGSEGV at a closed page"); }
        mprotect(closed, PAGE, PROT_READ | PROT_WRITE);
    }
    need(bus == 100 && segv == 200, "each signal arrived once");

    /* Timers interrupt faults, and their handler faults. */
    signal(SIGALRM, on_tick);
    struct itimerval soon = {{0, 0}, {0, 300}}, never = {{0, 0}, {0, 0}};
    unsigned seed = 5;
    for (int i = 0; i < 8000; i++) {
        if (i % 16 == 0) setitimer(ITIMER_REAL, &soon, NULL);
        size_t at = rand_r(&seed) % pages;
        holds(base + at * PAGE, at, 1);
    }
    setitimer(ITIMER_REAL, &never, NULL);
    need(ticks > 0, "the timer ticked");

    /* A handler that leaves by longjmp, in the middle of faults. */
    signal(SIGALRM, on_alarm_jump);
    volatile int jumps = 0;
    while (jumps < 200) {
        if (sigsetjmp(out, 1)) { jumping = 0; jumps++; continue; }
        jumping = 1;
        setitimer(ITIMER_REAL, &soon, NULL);
        for (int i = 0; i < 1000; i++) {
            size_t at = rand_r(&seed) % pages;
            (void)*(volatile char *)(base + at * PAGE);
        }
        jumping = 0;
    }
    setitimer(ITIMER_REAL, &never, NULL);

    pthread_t threads[4];
    for (size_t i = 0; i < 4; i++) pthread_create(&threads[i], NULL, blocked, (void *)(i + 1));
    for (size_t i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    sigset_t mask;
    sigfillset(&mask);
    sigprocmask(SIG_BLOCK, &mask, NULL);
    for (size_t i = 0; i < pages; i++) holds(base + i * PAGE, i, 1);
    return verdict("handlers");
}
