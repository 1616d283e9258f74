// Random sequences of memory calls from several threads and their children, half of them by an
// instruction of this program's own instead of libc's functions. Each page has a known word; what is read
// and what the calls answer goes into a sum, which is the same in any run with the same seed.
// Usage: calls SEED SEQUENCES THREADS MIB; prints the sum; status 1 if a page holds anything else.
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE 4096ul
enum { CALLS = 8, MOST = 96 };

static _Atomic long wrong;
static size_t pages;
static long sequences;

typedef struct {
    uint64_t random, coins, sum, stamp;
    char *arena;
    uint64_t *held; // the word of each page; 1: that or zeros, by MADV_FREE
    uint64_t *maybe;
    char *spare, *stack;
    int depth;
} Worker;

static uint64_t draw(Worker *w) {
    w->random ^= w->random << 13;
    w->random ^= w->random >> 7;
    w->random ^= w->random << 17;
    return w->random * 0x2545F4914F6CDD1Dull;
}
static uint64_t below(Worker *w, uint64_t most) { return (draw(w) >> 11) % most; }
static void add(Worker *w, uint64_t value) { w->sum = (w->sum ^ value) * 0x100000001b3ull; }

static long bypass(long number, long a, long b, long c, long d, long e, long f) {
    register long r10 asm("r10") = d, r8 asm("r8") = e, r9 asm("r9") = f;
    long answer;
    asm volatile("syscall" : "=a"(answer) : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                 : "rcx", "r11", "memory");
    return answer;
}
// By libc's function, or past it.
static long call(Worker *w, long number, long a, long b, long c, long d, long e, long f) {
    w->coins = w->coins << 1 | w->coins >> 63;
    if (w->coins & 1) return bypass(number, a, b, c, d, e, f);
    long answer;
    switch (number) {
    case SYS_mmap: answer = (long)mmap((void *)a, b, c, d, e, f); break;
    case SYS_munmap: answer = munmap((void *)a, b); break;
    case SYS_mremap: answer = (long)mremap((void *)a, b, c, d, (void *)e); break;
    case SYS_madvise: answer = madvise((void *)a, b, c); break;
    case SYS_mprotect: answer = mprotect((void *)a, b, c); break;
    default: answer = syscall(number, a, b, c, d, e, f);
    }
    return answer == -1 ? -errno : answer;
}

static uint64_t *at(Worker *w, size_t page) { return (uint64_t *)(w->arena + page * PAGE); }

static void look(Worker *w, size_t page) {
    uint64_t first = at(w, page)[0], last = at(w, page)[511], want = w->held[page];
    int freed = w->maybe[page] && first == 0 && last == 0;
    if ((first != want || last != want) && !freed) {
        if (wrong++ < 5) fprintf(stderr, "WRONG: page %zu holds %lx %lx, not %lx (stamp %lu, depth %d)\n", page, first, last, want, w->stamp, w->depth);
    }
    add(w, w->maybe[page] ? 7 : first);
}
static void put(Worker *w, size_t page) {
    uint64_t value = (++w->stamp << 20 | page) * 0x9E3779B97F4A7C15ull | 1;
    at(w, page)[0] = at(w, page)[511] = w->held[page] = value;
    w->maybe[page] = 0;
}
static void all(Worker *w, size_t first, size_t count, uint64_t value) {
    for (size_t i = first; i < first + count; i++) w->held[i] = value, w->maybe[i] = 0;
}
static void expect(Worker *w, long got, long want) {
    if (got != want && wrong++ < 5) fprintf(stderr, "WRONG: a call answered %ld, not %ld (stamp %lu)\n", got, want, w->stamp);
}
// While a part of the arena is unmapped, no other thread may map something at a place of the kernel's choice.
static pthread_mutex_t holes = PTHREAD_MUTEX_INITIALIZER;
static void close_holes(Worker *w) { if (!w->depth) pthread_mutex_lock(&holes); }
static void open_holes(Worker *w) { if (!w->depth) pthread_mutex_unlock(&holes); }
static void map(Worker *w, size_t first, size_t count) {
    long place = (long)at(w, first);
    expect(w, call(w, SYS_mmap, place, count * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0), place);
    all(w, first, count, 0);
}
static void step(Worker *w);

static int child_of(Worker *w) {
    w->depth++;
    long before = wrong;
    for (int i = 0; i < 12; i++) look(w, below(w, pages));
    for (int i = 0; i < 4; i++) step(w);
    for (int i = 0; i < 12; i++) look(w, below(w, pages));
    return wrong != before;
}
static void collect(Worker *w, long child) {
    int status = -1;
    if (child <= 0 || waitpid(child, &status, __WALL) != child) status = -2;
    expect(w, status, 0);
}
static int cloned(void *worker) { _exit(child_of(worker)); }
static void fork_some(Worker *w) {
    uint64_t how = below(w, 6);
    struct { uint64_t flags, rest[7]; } arguments = {0, {0, 0, 0, SIGCHLD}};
    long child;
    switch (how) {
    case 0: child = fork(); break;
    case 1: child = bypass(SYS_fork, 0, 0, 0, 0, 0, 0); break;
    case 2: child = bypass(SYS_clone, SIGCHLD, 0, 0, 0, 0, 0); break;
    case 3: child = bypass(SYS_clone3, (long)&arguments, 64, 0, 0, 0, 0); break;
    case 4: child = clone(cloned, w->stack + 256 * 1024, SIGCHLD, w); break;
    default: child = syscall(SYS_fork);
    }
    if (child == 0) bypass(SYS_exit_group, child_of(w), 0, 0, 0, 0, 0);
    // What the child has drawn, this process has not.
    collect(w, child);
}

// One call on a part of the arena, or a fork.
static void step(Worker *w) {
    size_t count = 1 + below(w, below(w, 4) ? 16 : 200), first = below(w, pages - count);
    long place = (long)at(w, first), bytes = count * PAGE;
    w->coins = draw(w);
    uint64_t what = below(w, w->depth ? 60 : 1000);
    if (what > 62) what %= 60;
    if (what < 12) {
        for (size_t i = first; i < first + count; i++) put(w, i);
    } else if (what < 22) {
        for (size_t i = first; i < first + count; i++) look(w, i);
    } else if (what < 32) {
        expect(w, call(w, SYS_madvise, place, bytes, MADV_DONTNEED, 0, 0, 0), 0);
        all(w, first, count, 0);
    } else if (what < 35) {
        expect(w, call(w, SYS_madvise, place, bytes, MADV_FREE, 0, 0, 0), 0);
        for (size_t i = first; i < first + count; i++) w->maybe[i] = 1;
    } else if (what < 40) {
        map(w, first, count);
    } else if (what < 44) {
        close_holes(w);
        expect(w, call(w, SYS_munmap, place, bytes, 0, 0, 0, 0), 0);
        map(w, first, count);
        open_holes(w);
    } else if (what < 49) {
        // To another place of the arena, and zeros where it was. A range of several mappings may not move
        // (EFAULT), and how many there are is not the same in each run.
        size_t to = below(w, pages - count);
        if (to + count <= first || first + count <= to) {
            long target = (long)at(w, to);
            close_holes(w);
            long moved = call(w, SYS_mremap, place, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, target, 0);
            if (moved == -EFAULT) mmap((void *)target, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0), memcpy((void *)target, (void *)place, bytes);
            expect(w, moved == -EFAULT ? target : moved, target);
            memcpy(w->held + to, w->held + first, count * 8);
            memcpy(w->maybe + to, w->maybe + first, count * 8);
            map(w, first, count);
            open_holes(w);
        }
    } else if (what < 52) {
        // Away, grown, and back.
        close_holes(w);
        long there = call(w, SYS_mremap, place, bytes, bytes + 5 * PAGE, MREMAP_MAYMOVE, 0, 0);
        if (there != -EFAULT && there < 0 && there > -4096) {
            expect(w, there, place);
        } else if (there != -EFAULT && there != place) {
            expect(w, ((uint64_t *)(there + bytes))[0], 0);
            expect(w, call(w, SYS_mremap, there, bytes + 5 * PAGE, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, place, 0), place);
        }
        open_holes(w);
    } else if (what < 56) {
        expect(w, call(w, SYS_mprotect, place, bytes, PROT_READ, 0, 0, 0), 0);
        look(w, first);
        expect(w, call(w, SYS_mprotect, place, bytes, PROT_READ | PROT_WRITE, 0, 0, 0), 0);
        put(w, first);
    } else if (what < 58) {
        expect(w, call(w, SYS_madvise, place, bytes, MADV_PAGEOUT, 0, 0, 0), 0);
    } else if (what < 59) {
        expect(w, call(w, SYS_madvise, place, bytes, MADV_WILLNEED, 0, 0, 0), 0);
    } else if (what >= 60 && w->depth == 0) {
        fork_some(w);
    } else {
        // An own mapping, used and given back.
        close_holes(w);
        long own = call(w, SYS_mmap, 0, 2 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        uint64_t *word = (uint64_t *)own;
        word[0] = word[1000] = w->stamp;
        expect(w, word[0] + word[1000] + word[5], 2 * w->stamp);
        expect(w, call(w, SYS_munmap, own, 2 << 20, 0, 0, 0, 0), 0);
        open_holes(w);
    }
}

static void *work(void *given) {
    Worker *w = given;
    w->arena = mmap(0, pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    w->stack = mmap(0, 256 * 1024, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    w->held = calloc(pages, 8);
    w->maybe = calloc(pages, 8);
    for (size_t i = 0; i < pages; i++) put(w, i);
    for (long i = 0; i < sequences; i++) {
        for (int k = 0; k < CALLS; k++) step(w);
        if (i % 1000 == 999) map(w, 0, pages);
    }
    for (size_t i = 0; i < pages; i++) look(w, i);
    return 0;
}

int main(int count, char **v) {
    if (count < 5) return fprintf(stderr, "usage: calls SEED SEQUENCES THREADS MIB\n"), 2;
    int threads = atoi(v[3]);
    sequences = atol(v[2]) / threads;
    pages = atol(v[4]) * 256 / threads;
    pthread_t running[MOST];
    Worker *all_of = calloc(threads, sizeof(Worker));
    for (int i = 0; i < threads; i++) {
        all_of[i].random = (strtoull(v[1], 0, 10) * MOST + i + 1) * 0x9E3779B97F4A7C15ull;
        pthread_create(&running[i], 0, work, &all_of[i]);
    }
    uint64_t sum = 0;
    for (int i = 0; i < threads; i++) pthread_join(running[i], 0), sum += all_of[i].sum * (i + 1);
    printf("%ld sequences, %ld checks wrong, sum %016lx\n", sequences * threads, (long)wrong, sum);
    return wrong != 0;
}
