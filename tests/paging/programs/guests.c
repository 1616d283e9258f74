/* Code that is loaded later, and a small signal stack of the program's own: neither may disturb the
 * pager, nor be disturbed by it. The library is this program again, built with -DGUEST. Arguments:
 * MiB, path of the library. */
#include "check.h"
#ifdef GUEST
static char *mine;
static size_t mine_pages;
void guest_make(size_t pages) {
    mine_pages = pages;
    mine = map(pages * PAGE);
    for (size_t i = 0; i < pages; i++) fill(mine + i * PAGE, i, 9);
}
long guest_check(void) {
    long before = wrong;
    for (size_t i = 0; i < mine_pages; i++) holds(mine + i * PAGE, i, 9);
    return wrong - before;
}
void guest_drop(void) { munmap(mine, mine_pages * PAGE); }
#else
#include <dlfcn.h>
#include <signal.h>
#define SMALL 8192 /* what SIGSTKSZ was for decades */

static char *base;
static size_t pages;

/* Faults on pages while this thread has a small alternate stack, with marks all round it. */
static void *small_stack(void *argument) {
    static char area[8][3 * SMALL] __attribute__((aligned(64)));
    char *own = area[(size_t)argument];
    memset(own, 0x5a, 3 * SMALL);
    stack_t stack = {.ss_sp = own + SMALL, .ss_size = SMALL}, seen;
    need(sigaltstack(&stack, NULL) == 0, "sigaltstack");
    need(sigaltstack(NULL, &seen) == 0 && seen.ss_sp == stack.ss_sp && seen.ss_size == SMALL, "the program's own stack");
    unsigned seed = (size_t)argument + 3;
    for (int i = 0; i < 3000; i++) {
        size_t at = rand_r(&seed) % pages;
        holds(base + at * PAGE, at, 1);
    }
    int hurt = 0;
    for (int i = 0; i < SMALL; i++) hurt += own[i] != 0x5a || own[2 * SMALL + i] != 0x5a;
    need(hurt == 0, "the memory around a small alternate stack is as it was");
    stack.ss_flags = SS_DISABLE;
    sigaltstack(&stack, NULL);
    return NULL;
}

int main(int count, char **arguments) {
    size_t mib = count > 1 ? atol(arguments[1]) : 96;
    pages = mib * 256;
    base = map(pages * PAGE);
    for (size_t i = 0; i < pages; i++) fill(base + i * PAGE, i, 1);
    static const int ways[] = {RTLD_NOW | RTLD_LOCAL, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND};
    for (int way = 0; way < 2; way++) {
        void *guest = dlopen(arguments[2], ways[way]);
        need(guest != NULL, "dlopen");
        if (!guest) { fprintf(stderr, "%s\n", dlerror()); return 1; }
        void (*make)(size_t) = (void (*)(size_t))dlsym(guest, "guest_make");
        long (*check)(void) = (long (*)(void))dlsym(guest, "guest_check");
        void (*drop)(void) = (void (*)(void))dlsym(guest, "guest_drop");
        make(pages / 2);
        for (size_t i = 0; i < pages; i++) holds(base + i * PAGE, i, 1);
        need(check() == 0, "the guest's pages");
        drop();
        need(dlclose(guest) == 0, "dlclose");
        make = NULL;
    }
    pthread_t threads[8];
    for (size_t i = 0; i < 8; i++) pthread_create(&threads[i], NULL, small_stack, (void *)i);
    for (size_t i = 0; i < 8; i++) pthread_join(threads[i], NULL);
    return verdict("guests");
}
#endif
