/* Calls that fail halfway, answer in a way of their own, or have the kernel touch memory by itself, on memory of
 * which much is away. Prints what each answers and what the memory holds afterwards, which must be the same
 * without a pager. Usage: edges MIB [CASE] */
#include "check.h"
#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <stddef.h>
#include <sys/ipc.h>
#include <sys/prctl.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>

static long pages;
static const char *only;

/* What `count` pages hold, as one number. */
static uint64_t sum(const unsigned char *from, long count) {
    uint64_t all = 0;
    for (long i = 0; i < count * WORDS; i++) all = all * 1099511628211ull + ((const uint64_t *)from)[i];
    return all;
}
static void told(const char *what, long answer) {
    printf("%-44s %ld %s\n", what, answer, answer < 0 ? strerror(errno) : "");
}
static void tell(const char *what, long answer, const unsigned char *from, long count) {
    int error = errno;
    printf("%-44s %ld %-28s %016lx\n", what, answer, answer < 0 ? strerror(error) : "", sum(from, count));
}
/* New memory of so many pages, of which most have left. */
static unsigned char *memory(long count) {
    unsigned char *at = map(count * PAGE);
    for (long i = 0; i < count; i++) fill(at + i * PAGE, i, 7);
    return at;
}
/* Fills other memory, so that everything else leaves. */
static void press(void) {
    unsigned char *at = map(pages * PAGE);
    for (long i = 0; i < pages; i++) fill(at + i * PAGE, i, 9);
    munmap(at, pages * PAGE);
}
static int is(const char *name) { return !only || !strcmp(only, name); }
static long ok(const void *answer) { return answer == MAP_FAILED ? -1 : 0; }

static unsigned char statics[24 << 20];

/* `madvise` over a hole: what is mapped is dropped, and the answer is ENOMEM. */
static void holes(int advice, const char *name) {
    unsigned char *at = memory(pages);
    munmap(at + 100 * PAGE, 10 * PAGE);
    press();
    long answer = madvise(at + 50 * PAGE, 200 * PAGE, advice);
    int error = errno;
    madvise(at, pages * PAGE, 103); // MADV_GUARD_REMOVE
    if (advice == MADV_FREE) memset(at + 50 * PAGE, 1, 50 * PAGE), memset(at + 110 * PAGE, 1, 140 * PAGE);
    errno = error;
    tell(name, answer, at, 100);
    tell("  behind the hole", 0, at + 110 * PAGE, pages - 110);
    munmap(at, pages * PAGE);
}

/* The same, with memory in between that refuses the advice. */
static void refusing(int advice, const char *name, const char *folder) {
    char path[300];
    snprintf(path, sizeof path, "%s/edges.file", folder);
    int file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    need(file >= 0 && ftruncate(file, 8 * PAGE) == 0, "a file");
    unsigned char *at = memory(pages);
    need(ok(mmap(at + 100 * PAGE, 8 * PAGE, 3, MAP_PRIVATE | MAP_FIXED, file, 0)) == 0, "its mapping");
    memset(at + 100 * PAGE, 3, 8 * PAGE);
    press();
    long answer = madvise(at + 50 * PAGE, 200 * PAGE, advice);
    if (advice == MADV_FREE) memset(at + 50 * PAGE, 1, 50 * PAGE);
    tell(name, answer, at, 100);
    tell("  what is in between", 0, at + 100 * PAGE, 8);
    tell("  behind it", 0, at + 108 * PAGE, pages - 108);
    munmap(at, pages * PAGE);
    close(file);
    unlink(path);
}

static void locked(int advice, const char *name) {
    unsigned char *at = memory(pages);
    need(mlock(at + 100 * PAGE, 10 * PAGE) == 0, "mlock");
    press();
    long answer = madvise(at + 50 * PAGE, 200 * PAGE, advice);
    if (advice == MADV_FREE) memset(at + 50 * PAGE, 1, 50 * PAGE);
    tell(name, answer, at, pages);
    munlock(at, pages * PAGE);
    munmap(at, pages * PAGE);
}

static void breaks(void) {
    for (long i = 0; i < (long)sizeof statics / PAGE; i++) fill(statics + i * PAGE, i, 5);
    unsigned char *heap = sbrk(8 << 20);
    for (long i = 0; i < (8 << 20) / PAGE; i++) fill(heap + i * PAGE, i, 6);
    press();
    long before = syscall(SYS_brk, 0);
    told("brk(1)", syscall(SYS_brk, 1) == before ? 0 : 1);
    told("sbrk far below", ok(sbrk(-(1l << 40))));
    told("the end is where it was", syscall(SYS_brk, 0) == before ? 0 : 1);
    tell("  static memory", 0, statics, sizeof statics / PAGE);
    tell("  the heap", 0, heap, (8 << 20) / PAGE);
}

static void moves(void) {
    long count = pages / 2;
    // Something else is moved over memory that is away.
    unsigned char *target = memory(count);
    unsigned char *shared = mmap(NULL, count * PAGE, 3, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    for (long i = 0; i < count; i++) fill(shared + i * PAGE, i, 3);
    press();
    long answer = ok(mremap(shared, 0, count / 2 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, target));
    tell("a second mapping of shared memory over it", answer, target, count);
    memset(target, 1, PAGE);
    tell("  is the same memory", 0, shared, count);
    press();
    answer = ok(mremap(shared, count * PAGE, count * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, target));
    tell("shared memory moved over it", answer, target, count);
    pid_t child = fork();
    if (!child) {
        press();
        for (long i = 0; i < count; i += 2) memset(target + i * PAGE, 4, PAGE);
        press();
        _exit(0);
    }
    waitpid(child, NULL, 0);
    tell("  a child wrote to it", 0, target, count);
    munmap(target, count * PAGE);

    // Refused, after what was there has been removed.
    target = memory(count);
    unsigned char *from = memory(count);
    munmap(from + 20 * PAGE, PAGE);
    press();
    answer = ok(mremap(from, 40 * PAGE, 50 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, target));
    told("a move from memory with a hole", answer);
    unsigned char seen[16];
    told("  the target is there", mincore(target, 16 * PAGE, seen));
    tell("  the source", 0, from, 20);
    tell("  behind the hole", 0, from + 21 * PAGE, count - 21);
    tell("  behind the target", 0, target + 50 * PAGE, count - 50);
    press();
    tell("  behind the hole, later", 0, from + 21 * PAGE, count - 21);
    if (!mincore(target, 16 * PAGE, seen)) tell("  the target", 0, target, 50);
    munmap(from, count * PAGE), munmap(target, count * PAGE);

    // Of what lies beside other memory, part by part.
    from = memory(count);
    mprotect(from + 30 * PAGE, 10 * PAGE, PROT_READ);
    target = memory(count);
    press();
    answer = ok(mremap(from, 60 * PAGE, 60 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, target));
    told("a move of three mappings", answer);
    if (answer == 0) tell("  the target", 0, target, 60);
    tell("  the rest", 0, from + 60 * PAGE, count - 60);
    if (!mincore(from, 16 * PAGE, seen)) tell("  the source", 0, from, 60);
    munmap(from, count * PAGE), munmap(target, count * PAGE);

    from = memory(count);
    press();
    answer = ok(mremap(from + 10 * PAGE, 30 * PAGE, 30 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, from + 20 * PAGE));
    tell("a move onto itself", answer, from, count);
    answer = ok(mremap(from + 10 * PAGE, 30 * PAGE, 10 * PAGE, 0));
    tell("less of it", answer, from, 20);
    target = mremap(from + 60 * PAGE, 30 * PAGE, 30 * PAGE, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, NULL);
    if (target != MAP_FAILED) tell("moved, and still there", 0, target, 30);
    tell("  what stays", 0, from + 60 * PAGE, count - 60);
    munmap(from, count * PAGE);
}

/* mmap over it that is refused. */
static void maps(void) {
    unsigned char *at = memory(pages), seen[16];
    press();
    int file = open("/proc/self/exe", O_RDONLY);
    told("a mapping that is refused", ok(mmap(at, 64 * PAGE, 3, MAP_SHARED | MAP_FIXED, file, 0)));
    told("  what it would replace", mincore(at, 16 * PAGE, seen));
    told("a mapping of no descriptor", ok(mmap(at, 64 * PAGE, 3, MAP_SHARED | MAP_FIXED, 999, 0)));
    tell("  memory", 0, at, pages);
    told("a mapping that must replace nothing", ok(mmap(at, 64 * PAGE, 3, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0)));
    int segment = shmget(IPC_PRIVATE, 32 * PAGE, 0600);
    told("a segment over it, refused", ok(shmat(segment, at, 0)));
    told("a segment over it", ok(shmat(segment, at, SHM_REMAP)));
    memset(at, 8, 16 * PAGE);
    press();
    tell("  memory", 0, at, pages);
    told("and away", shmdt(at));
    told("  what is there", mincore(at, 16 * PAGE, seen));
    tell("  memory", 0, at + 32 * PAGE, pages - 32);
    shmctl(segment, IPC_RMID, NULL);
    munmap(at, pages * PAGE);
    close(file);
}

/* What the kernel writes when a thread ends. */
static pthread_mutex_t *robust;
static void *owner(void *unused) {
    pthread_mutex_lock(robust);
    press();
    return unused;
}
static int clear(void *word) {
    (void)word;
    unsigned char *at = mmap(NULL, pages * PAGE, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (long i = 0; i < pages; i++) memset(at + i * PAGE, 1, PAGE);
    munmap(at, pages * PAGE);
    syscall(SYS_exit, 0);
    return 0;
}
static void ends(void) {
    unsigned char *at = memory(pages);
    robust = (pthread_mutex_t *)(at + 40 * PAGE);
    pthread_mutexattr_t kind;
    pthread_mutexattr_init(&kind);
    pthread_mutexattr_setrobust(&kind, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(robust, &kind);
    press();
    pthread_t thread;
    pthread_create(&thread, NULL, owner, NULL);
    pthread_join(thread, NULL);
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += LONGEST_WAIT_S;
    printf("%-44s %s\n", "a robust mutex of a thread that ended", strerror(pthread_mutex_timedlock(robust, &until)));
    pthread_mutex_consistent(robust), pthread_mutex_unlock(robust);

    // A thread by hand, whose end clears a word that is away.
    int *word = (int *)(at + 60 * PAGE);
    *word = 1;
    unsigned char *stack = mmap(NULL, 1 << 16, 3, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    int flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM | CLONE_CHILD_CLEARTID;
    press();
    clone(clear, stack + (1 << 16), flags, NULL, NULL, NULL, word);
    struct timespec most = {LONGEST_WAIT_S, 0};
    long answer = syscall(SYS_futex, word, FUTEX_WAIT, 1, &most, NULL, 0);
    int error = errno;
    printf("%-44s %d %s\n", "the word of a thread that ended", *word, answer && error == ETIMEDOUT ? "never woken" : "");
    munmap(at, pages * PAGE);
}

/* Pages that the kernel holds while they leave. */
static void held(void) {
    unsigned char *at = memory(pages), *got = memory(64);
    int ends[2];
    need(pipe(ends) == 0, "a pipe");
    struct iovec part = {at + 20 * PAGE, 8 * PAGE}, part2 = {got, 8 * PAGE};
    press();
    told("vmsplice", vmsplice(ends[1], &part, 1, 0));
    press();
    told("  read", readv(ends[0], &part2, 1));
    tell("  what came", 0, got, 64);
    part.iov_base = at + 40 * PAGE, part2.iov_base = got + 10 * PAGE;
    press();
    told("process_vm_writev", process_vm_writev(getpid(), &part2, 1, &part, 1, 0));
    press();
    told("process_vm_readv", process_vm_readv(getpid(), &part2, 1, &part, 1, 0));
    tell("  memory", 0, at, pages);
    munmap(at, pages * PAGE), munmap(got, 64 * PAGE);
}

/* Pages that are alike become one, by the kernel. */
static void alike(void) {
    prctl(67 /* PR_SET_MEMORY_MERGE */, 1, 0, 0, 0);
    unsigned char *at = memory(pages);
    madvise(at, pages * PAGE, MADV_MERGEABLE);
    for (long round = 0; round < 40; round++) {
        for (long i = 0; i < pages; i++)
            if (i % 64 < 40) memset(at + i * PAGE, 1 + i / 64 % 3, PAGE);
        for (long i = 0; i < 300; i++) holds(at + (i * 64 + 50) % pages * PAGE, (i * 64 + 50) % pages, 7);
        usleep(50000);
        for (long i = 0; i < pages; i++)
            if (i % 64 < 40) at[i * PAGE + round] = i + round;
        for (long i = 0; i < pages; i++)
            if (i % 64 < 40) need(at[i * PAGE + round] == (unsigned char)(i + round), "what was written to a page that was merged");
    }
    tell("merged by the kernel", 0, at, pages);
    munmap(at, pages * PAGE);
}

/* More places than there are numbers for: a move is refused, or takes everything along. */
static void numbers(void) {
    unsigned char *at = memory(pages);
    press();
    long refused = 0;
    for (unsigned long gib = 1; gib < 100000; gib++) {
        unsigned char *far = mmap((void *)(gib << 30), 1 << 20, 3, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
        if (far == MAP_FAILED) { refused++; continue; }
        *far = 1;
        munmap(far, 1 << 20);
    }
    need(refused < 30000, "places");
    unsigned char *target = (unsigned char *)(110000ul << 30);
    for (int fixed = 1; fixed >= 0; fixed--) {
        void *to = fixed ? target : NULL;
        unsigned char *moved = mremap(at, pages * PAGE, 2 * pages * PAGE, MREMAP_MAYMOVE | (fixed ? MREMAP_FIXED : 0), to);
        need(moved != MAP_FAILED || errno == ENOMEM, "moved, or refused");
        if (moved != MAP_FAILED) at = moved, fixed = 0;
    }
    for (long i = 0; i < pages; i++) holds(at + i * PAGE, i, 7);
}

int main(int count, char **v) {
    pages = atol(v[1]) * 256;
    only = count > 3 ? v[3] : NULL;
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (is("holes")) {
        holes(MADV_DONTNEED, "dropped over a hole");
        holes(MADV_FREE, "freed over a hole");
        holes(102, "guarded over a hole");
    }
    if (is("refusing")) {
        refusing(MADV_DONTNEED, "dropped over a file", v[2]);
        refusing(MADV_FREE, "freed over a file", v[2]);
    }
    if (is("locked")) {
        locked(MADV_DONTNEED, "dropped over locked memory");
        locked(24, "dropped, locked memory too");
        locked(MADV_FREE, "freed over locked memory");
    }
    if (is("breaks")) breaks();
    if (is("moves")) moves();
    if (is("maps")) maps();
    if (is("ends")) ends();
    if (is("held")) held();
    if (only && is("alike")) alike();
    if (only && is("numbers")) numbers();
    return verdict("edges");
}
