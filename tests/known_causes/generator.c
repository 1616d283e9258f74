/*
 * A program whose page faults have causes known by construction.
 *
 * Build: cc -O1 -static -o generator generator.c     (static: fewer faults of the loader)
 * Run:   generator [FOLDER]     FOLDER holds its scratch file, default /tmp
 *
 * Each phase makes pages fault for one reason. The number of faults is the one that the phase was
 * built to cause; where the kernel decides (how many pages one file fault maps, whether reclaim
 * took a page), it is the kernel's own count of this process's faults around exactly those touches.
 * Prints its truth as one JSON object: faults by cause, phases that this machine cannot run, and
 * the faults before main, which the loader causes.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef MADV_PAGEOUT
#define MADV_PAGEOUT 21
#endif

enum cause {
    FIRST_TOUCH, AFTER_MUNMAP, AFTER_BRK, AFTER_DONTNEED, AFTER_FREE, COPY_ON_WRITE,
    WRITE_AFTER_READ, FILE_MINOR, FILE_MAJOR, FILE_COPY, SHARED, SWAP_IN, STACK_GROWTH, HUGE_PAGE,
    WRITE_PROTECT, CAUSES
};

static const char *const names[CAUSES] = {
    "first_touch", "refault_after_munmap", "refault_after_brk", "refault_after_dontneed",
    "refault_after_free", "copy_on_write", "write_after_read", "file_minor", "file_major",
    "file_copy", "shared", "swap_in", "stack_growth", "huge_page",
    "write_protect",
};

static long truth[CAUSES];
static char skipped[1024];
static size_t page;

/* Pages of a phase, and how often churn phases go round. */
enum { PAGES = 20000, ROUND_PAGES = 2000, ROUNDS = 10, HUGE_PAGES = 48, STACK_PAGES = 1500 };
#define HUGE_SIZE ((size_t)2 << 20)

static void die(const char *what) {
    fprintf(stderr, "generator: %s: %s\n", what, strerror(errno));
    exit(1);
}

static void skip(const char *cause, const char *why) {
    size_t used = strlen(skipped);
    snprintf(skipped + used, sizeof skipped - used, "%s\"%s: %s\"", used ? ", " : "", cause, why);
}

static long faults(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_minflt + usage.ru_majflt;
}

static long major_faults(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_majflt;
}

static void *map(void *at, size_t bytes, int protection, int flags, int file) {
    int fixed = at ? MAP_FIXED_NOREPLACE : 0;
    void *memory = mmap(at, bytes, protection, flags | fixed, file, 0);
    if (memory == MAP_FAILED)
        die("mmap");
    return memory;
}

static char *anonymous(void *at, size_t pages) {
    return map(at, pages * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
}

static void write_each(volatile char *memory, size_t pages) {
    for (size_t i = 0; i < pages; i++)
        memory[i * page] = 1;
}

static void read_each(volatile const char *memory, size_t pages, size_t stride) {
    for (size_t i = 0; i < pages; i += stride)
        (void)memory[i * page];
}

static void first_touch(void) {
    write_each(anonymous(NULL, PAGES), PAGES);
    truth[FIRST_TOUCH] += PAGES;
}

static void after_munmap(void) {
    char *memory = anonymous(NULL, ROUND_PAGES);
    write_each(memory, ROUND_PAGES);
    for (int i = 0; i < ROUNDS; i++) {
        if (munmap(memory, ROUND_PAGES * page))
            die("munmap");
        write_each(anonymous(memory, ROUND_PAGES), ROUND_PAGES);
    }
    truth[FIRST_TOUCH] += ROUND_PAGES;
    truth[AFTER_MUNMAP] += ROUND_PAGES * ROUNDS;
}

static void after_brk(void) {
    uintptr_t end = (uintptr_t)sbrk(0);
    if (end % page && sbrk((intptr_t)(page - end % page)) == (void *)-1)
        die("sbrk");
    intptr_t bytes = (intptr_t)(ROUND_PAGES * page);
    for (int i = 0; i <= ROUNDS; i++) {
        char *memory = sbrk(bytes);
        if (memory == (void *)-1)
            die("sbrk");
        write_each(memory, ROUND_PAGES);
        if (i < ROUNDS && sbrk(-bytes) == (void *)-1)
            die("sbrk");
    }
    truth[FIRST_TOUCH] += ROUND_PAGES;
    truth[AFTER_BRK] += ROUND_PAGES * ROUNDS;
}

static void after_dontneed(void) {
    char *memory = anonymous(NULL, ROUND_PAGES);
    write_each(memory, ROUND_PAGES);
    for (int i = 0; i < ROUNDS; i++) {
        if (madvise(memory, ROUND_PAGES * page, MADV_DONTNEED))
            die("madvise");
        write_each(memory, ROUND_PAGES);
    }
    truth[FIRST_TOUCH] += ROUND_PAGES;
    truth[AFTER_DONTNEED] += ROUND_PAGES * ROUNDS;
}

/* Freed pages fault again only once reclaim took them: MADV_PAGEOUT drops them at once. */
static void after_free(void) {
    char *memory = anonymous(NULL, ROUND_PAGES);
    write_each(memory, ROUND_PAGES);
    truth[FIRST_TOUCH] += ROUND_PAGES;
    for (int i = 0; i < ROUNDS; i++) {
        if (madvise(memory, ROUND_PAGES * page, MADV_FREE) ||
            madvise(memory, ROUND_PAGES * page, MADV_PAGEOUT)) {
            skip(names[AFTER_FREE], strerror(errno));
            return;
        }
        long before = faults();
        write_each(memory, ROUND_PAGES);
        truth[AFTER_FREE] += faults() - before;
    }
}

/* Both sides write all shared pages: the child first, which copies them. Once it has ended, the parent
 * holds its pages alone, and its writes copy nothing (mm/memory.c, wp_can_reuse_anon_folio). */
static void copy_on_write(void) {
    char *memory = anonymous(NULL, PAGES / 2);
    write_each(memory, PAGES / 2);
    truth[FIRST_TOUCH] += PAGES / 2;
    pid_t child = fork();
    if (child < 0)
        die("fork");
    if (child == 0) {
        write_each(memory, PAGES / 2);
        _exit(0);
    }
    waitpid(child, NULL, 0);
    write_each(memory, PAGES / 2);
    truth[COPY_ON_WRITE] += PAGES / 2;
    truth[WRITE_PROTECT] += PAGES / 2;
}

static void write_after_zero_page(void) {
    char *memory = anonymous(NULL, PAGES);
    read_each(memory, PAGES, 1);
    write_each(memory, PAGES);
    truth[FIRST_TOUCH] += PAGES;
    truth[WRITE_AFTER_READ] += PAGES;
}

enum { FILE_PAGES = 8192 };

static int scratch_file(const char *folder) {
    char path[512];
    snprintf(path, sizeof path, "%s/pagewise-known-causes-XXXXXX", folder);
    int file = mkstemp(path);
    if (file < 0)
        die(path);
    unlink(path);
    static char block[1 << 14];
    for (size_t written = 0; written < FILE_PAGES * page; written += sizeof block)
        if (write(file, block, sizeof block) != (ssize_t)sizeof block)
            die("write");
    return file;
}

/* A read fault maps up to 16 cached pages around it (fault_around_bytes, 64 KiB). */
static void file_minor(int file) {
    for (int i = 0; i < 40; i++) {
        char *memory = map(NULL, FILE_PAGES * page, PROT_READ, MAP_PRIVATE, file);
        long before = faults();
        read_each(memory, FILE_PAGES, 16);
        truth[FILE_MINOR] += faults() - before;
    }
}

static void file_shared(int file) {
    char *memory = map(NULL, FILE_PAGES * page, PROT_READ | PROT_WRITE, MAP_SHARED, file);
    long before = faults();
    write_each(memory, FILE_PAGES);
    truth[FILE_MINOR] += faults() - before;
}

static void file_private_write(int file) {
    char *memory = map(NULL, FILE_PAGES * page, PROT_READ | PROT_WRITE, MAP_PRIVATE, file);
    long before = faults();
    write_each(memory, FILE_PAGES);
    truth[FILE_COPY] += faults() - before;
}

/* A file that nothing else maps: mapped pages are not dropped from the page cache. */
static void file_major(int file) {
    char *memory = map(NULL, FILE_PAGES * page, PROT_READ, MAP_PRIVATE, file);
    if (fsync(file) || posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED) ||
        madvise(memory, FILE_PAGES * page, MADV_RANDOM))
        die("dropping the file from the page cache");
    long before = faults(), major_before = major_faults();
    read_each(memory, FILE_PAGES, 1);
    long major = major_faults() - major_before;
    truth[FILE_MAJOR] += major;
    truth[FILE_MINOR] += faults() - before - major;
    if (major == 0)
        skip(names[FILE_MAJOR], "the scratch file's pages stay in memory");
}

static void shared_anonymous(void) {
    char *memory = map(NULL, PAGES * page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1);
    long before = faults();
    write_each(memory, PAGES);
    truth[SHARED] += faults() - before;
}

static int has_swap(void) {
    char line[256];
    FILE *swaps = fopen("/proc/swaps", "r");
    int lines = 0;
    while (swaps && fgets(line, sizeof line, swaps))
        lines++;
    if (swaps)
        fclose(swaps);
    return lines > 1;
}

static void swap_in(void) {
    if (!has_swap()) {
        skip(names[SWAP_IN], "no swap is on");
        return;
    }
    char *memory = anonymous(NULL, ROUND_PAGES);
    for (size_t i = 0; i < ROUND_PAGES * page; i += sizeof(uint64_t))
        *(volatile uint64_t *)(memory + i) = i * 0x9e3779b97f4a7c15u;
    truth[FIRST_TOUCH] += ROUND_PAGES;
    if (madvise(memory, ROUND_PAGES * page, MADV_PAGEOUT))
        die("madvise");
    long before = faults();
    write_each(memory, ROUND_PAGES);
    truth[SWAP_IN] += faults() - before;
}

/* Uses one new page of the stack at each level. */
__attribute__((noinline)) static int descend(int levels) {
    volatile char room[4096 - 64];
    room[0] = (char)levels;
    return levels ? descend(levels - 1) + room[0] : room[0];
}

static void stack_growth(void) {
    long before = faults();
    volatile int sink = descend(STACK_PAGES);
    (void)sink;
    truth[STACK_GROWTH] += faults() - before;
}

static int huge_pages_on(void) {
    char mode[64] = "";
    int file = open("/sys/kernel/mm/transparent_hugepage/enabled", O_RDONLY);
    if (file < 0)
        return 0;
    ssize_t length = read(file, mode, sizeof mode - 1);
    close(file);
    return length > 0 && !strstr(mode, "[never]");
}

static void huge_pages(void) {
    if (!huge_pages_on()) {
        skip(names[HUGE_PAGE], "transparent huge pages are off");
        return;
    }
    prctl(PR_SET_THP_DISABLE, 0, 0, 0, 0);
    char *memory = anonymous(NULL, (HUGE_PAGES + 1) * HUGE_SIZE / page);
    memory += HUGE_SIZE - (uintptr_t)memory % HUGE_SIZE;
    if (madvise(memory, HUGE_PAGES * HUGE_SIZE, MADV_HUGEPAGE))
        die("madvise");
    long before = faults();
    write_each(memory, HUGE_PAGES * HUGE_SIZE / page);
    long taken = faults() - before;
    if (taken == HUGE_PAGES) {
        truth[HUGE_PAGE] += taken;
        return;
    }
    /* Some stretches got base pages: (taken - huge) = 512 (HUGE_PAGES - huge). */
    long base = HUGE_SIZE / page;
    long huge = (base * HUGE_PAGES - taken) / (base - 1);
    truth[HUGE_PAGE] += huge;
    truth[FIRST_TOUCH] += taken - huge;
}

int main(int count, char **args) {
    long before_main = faults();
    page = (size_t)sysconf(_SC_PAGESIZE);
    prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
    const char *folder = count > 1 ? args[1] : "/tmp";
    int file = scratch_file(folder);
    first_touch();
    after_munmap();
    after_brk();
    after_dontneed();
    after_free();
    copy_on_write();
    write_after_zero_page();
    file_minor(file);
    file_shared(file);
    file_private_write(file);
    shared_anonymous();
    swap_in();
    stack_growth();
    file_major(scratch_file(folder));
    huge_pages();
    printf("{\"before_main\": %ld, \"skipped\": [%s], \"causes\": {", before_main, skipped);
    for (int i = 0; i < CAUSES; i++)
        printf("%s\"%s\": %ld", i ? ", " : "", names[i], truth[i]);
    printf("}}\n");
    return 0;
}
