/* What a program may request from the kernel for its memory: protection in stripes, locked ranges,
 * lazily freed and dropped ones, copies for children, populated mappings. Arguments: MiB. */
#include "check.h"
#include <sys/resource.h>
#include <sys/syscall.h>

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

static char *base;
static size_t pages;

static void all(const char *what) {
    long before = wrong;
    for (size_t i = 0; i < pages; i++) holds(base + i * PAGE, i, 1);
    if (wrong != before) fprintf(stderr, "WRONG after %s\n", what);
}

static long peak_kib(void) {
    struct rusage use;
    getrusage(RUSAGE_SELF, &use);
    return use.ru_maxrss;
}

int main(int count, char **arguments) {
    size_t mib = count > 1 ? atol(arguments[1]) : 96;
    pages = mib * 256;
    base = map(pages * PAGE);
    for (size_t i = 0; i < pages; i++) fill(base + i * PAGE, i, 1);

    /* Every other run of pages is read-only: the kernel sees many mappings, and nothing may be read
     * or written across their borders at once. */
    for (size_t step = 1; step <= 64; step *= 4) {
        size_t most = step == 1 ? 8000 : pages;
        for (size_t i = 0; i < most; i += 2 * step) need(mprotect(base + i * PAGE, step * PAGE, PROT_READ) == 0, "mprotect");
        all("stripes");
        for (size_t i = step; i + step <= most; i += 2 * step) fill(base + i * PAGE, i, 1);
        all("stripes written");
        need(mprotect(base, pages * PAGE, PROT_READ | PROT_WRITE) == 0, "mprotect back");
    }

    /* Reserved without access, opened bit by bit, as malloc's arenas are. */
    char *arena = mmap(NULL, pages * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    need(arena != MAP_FAILED, "reserve");
    for (size_t i = 0; i < pages; i += 33) {
        size_t some = i + 33 < pages ? 33 : pages - i;
        need(mprotect(arena + i * PAGE, some * PAGE, PROT_READ | PROT_WRITE) == 0, "open");
        for (size_t k = i; k < i + some; k++) fill(arena + k * PAGE, k, 2);
    }
    for (size_t i = 0; i < pages; i++) holds(arena + i * PAGE, i, 2);

    /* Given back in every way; what is read next is zero. */
    static const int ways[] = {MADV_DONTNEED, MADV_FREE, 24 /* MADV_DONTNEED_LOCKED */};
    for (int way = 0; way < 3; way++) {
        for (size_t i = way; i < pages; i += 5)
            if (madvise(arena + i * PAGE, PAGE, ways[way]) == 0) {
                if (ways[way] == MADV_FREE) continue; /* old or zero: the kernel's choice */
                holds(arena + i * PAGE, i, 0);
                fill(arena + i * PAGE, i, 2);
            }
    }
    for (size_t i = 0; i < pages; i++)
        if (i % 5 != 1) holds(arena + i * PAGE, i, 2);
    /* By the system call itself. */
    need(syscall(SYS_madvise, arena, 64 * PAGE, MADV_DONTNEED) == 0, "madvise by syscall");
    for (int i = 0; i < 64; i++) holds(arena + i * PAGE, i, 0);
    for (int i = 0; i < 64; i++) fill(arena + i * PAGE, i, 2);
    madvise(arena, 64 * PAGE, MADV_PAGEOUT);
    need(syscall(SYS_munmap, arena, 64 * PAGE) == 0, "munmap by syscall");
    need((char *)syscall(SYS_mmap, arena, 64 * PAGE, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == arena, "mmap by syscall");
    for (int i = 0; i < 64; i++) holds(arena + i * PAGE, i, 0);
    /* Guarded (Linux 6.13): dropped, and not to be touched until that is taken back. */
    madvise(arena + 64 * PAGE, 64 * PAGE, MADV_PAGEOUT);
    if (madvise(arena + 64 * PAGE, 64 * PAGE, 102 /* MADV_GUARD_INSTALL */) == 0) {
        for (size_t i = 128; i < 512; i++) if (i % 5 != 1) holds(arena + i * PAGE, i, 2);
        need(madvise(arena + 64 * PAGE, 64 * PAGE, 103 /* MADV_GUARD_REMOVE */) == 0, "guard removed");
        for (int i = 64; i < 128; i++) holds(arena + i * PAGE, i, 0);
    } else puts("advice: SKIP MADV_GUARD_INSTALL: this kernel has none");
    munmap(arena, pages * PAGE);

    /* Locked: stays through pressure, and leaves again. */
    if (mlock(base, 512 * PAGE) == 0) {
        all("mlock");
        unsigned char there[512];
        need(mincore(base, 512 * PAGE, there) == 0, "mincore");
        int resident = 0;
        for (int i = 0; i < 512; i++) resident += there[i] & 1;
        need(resident == 512, "locked pages are resident");
        need(munlock(base, 512 * PAGE) == 0, "munlock");
    } else puts("advice: SKIP mlock: not allowed here");

    /* Not for children; empty for children. */
    need(madvise(base + 1024 * PAGE, 64 * PAGE, MADV_WIPEONFORK) == 0, "WIPEONFORK");
    need(madvise(base + 2048 * PAGE, 64 * PAGE, MADV_DONTFORK) == 0, "DONTFORK");
    pid_t child = fork();
    if (child == 0) {
        for (int i = 1024; i < 1088; i++) holds(base + i * PAGE, i, 0);
        for (int i = 1088; i < 2048; i++) holds(base + i * PAGE, i, 1);
        unsigned char there[1];
        need(mincore(base + 2048 * PAGE, PAGE, there) == -1 && errno == ENOMEM, "not in the child");
        _exit(wrong != 0);
    }
    int status = -1;
    need(waitpid(child, &status, 0) == child && status == 0, "the child saw what it should");
    madvise(base + 1024 * PAGE, 64 * PAGE, MADV_KEEPONFORK);
    madvise(base + 2048 * PAGE, 64 * PAGE, MADV_DOFORK);

    /* Populated: the budget holds all the same. */
    long before = peak_kib();
    char *full = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    need(full != MAP_FAILED, "MAP_POPULATE");
    need(peak_kib() - before < 16 << 10, "MAP_POPULATE keeps the budget");
    for (size_t i = 0; i < pages; i += 7) holds(full + i * PAGE, i, 0);
    munmap(full, pages * PAGE);

    /* Moves that fail leave everything as it was. */
    need(mremap(base, pages * PAGE, pages * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, base + PAGE) == MAP_FAILED,
         "a move onto itself");
    need(mremap(base, pages * PAGE, (size_t)1 << 50, MREMAP_MAYMOVE) == MAP_FAILED, "a move too large");
    need(munmap(base + 1, PAGE) == -1 && errno == EINVAL, "munmap of no page");
    need(mmap(base, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == MAP_FAILED, "in use");
    all("failed moves");
    char *moved = mremap(base, pages * PAGE, pages * PAGE, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, NULL);
    if (moved != MAP_FAILED) {
        for (size_t i = 0; i < pages; i += 3) holds(base + i * PAGE, i, 0);
        base = moved;
        all("DONTUNMAP");
    } else puts("advice: SKIP MREMAP_DONTUNMAP: this kernel has none");
    return verdict("advice");
}
