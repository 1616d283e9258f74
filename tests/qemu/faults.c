/*
 * Page faults of one kind at a time, to measure what tracing costs (tests/qemu/probe_effect).
 *
 *   faults KIND ROUNDS MIB [FILE]
 *
 * KIND: anon   first writes to anonymous memory
 *       irq    the same under a timer of 100 µs, so that interrupts strike inside faults
 *       zero   first reads, then writes to what was read
 *       cow    writes to memory shared with a child, by both
 *       shm    first writes to shared memory
 *       swap   writes and reads of memory that was just paged out
 *       thp    first writes to memory that may have huge pages
 *       file   reads of a mapped file, then writes to private pages of it
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <signal.h>
#include <unistd.h>

enum { PAGE = 4096, HUGE = 2 << 20 };
static volatile char sink;

static char *map(size_t bytes, int protection, int flags, int file) {
    char *at = mmap(NULL, bytes, protection, flags, file, 0);
    if (at == MAP_FAILED) {
        perror("faults: mmap");
        exit(1);
    }
    return at;
}

static char *anonymous(size_t bytes) {
    char *at = map(bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    madvise(at, bytes, MADV_NOHUGEPAGE);
    return at;
}

static void write_to(char *at, size_t bytes, size_t step) {
    for (size_t place = 0; place < bytes; place += step) at[place] = 1;
}

static void read_from(const char *at, size_t bytes) {
    for (size_t place = 0; place < bytes; place += PAGE) sink = at[place];
}

static void tick(int signal) { (void)signal; }

static void anon(size_t bytes) {
    char *at = anonymous(bytes);
    write_to(at, bytes, PAGE);
    munmap(at, bytes);
}

static void zero(size_t bytes) {
    char *at = anonymous(bytes);
    read_from(at, bytes);
    write_to(at, bytes, PAGE);
    munmap(at, bytes);
}

static void cow(size_t bytes) {
    char *at = anonymous(bytes);
    write_to(at, bytes, PAGE);
    pid_t child = fork();
    if (child == 0) {
        write_to(at, bytes, 2 * PAGE);
        _exit(0);
    }
    waitpid(child, NULL, 0);
    write_to(at, bytes, PAGE);
    munmap(at, bytes);
}

static void shm(size_t bytes) {
    int file = memfd_create("faults", 0);
    if (file < 0 || ftruncate(file, (off_t)bytes) != 0) exit(1);
    char *at = map(bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file);
    write_to(at, bytes, PAGE);
    munmap(at, bytes);
    close(file);
}

static void swap(size_t bytes) {
    char *at = anonymous(bytes);
    write_to(at, bytes, PAGE);
    for (int round = 0; round < 2; round++) {
        madvise(at, bytes, 21 /* MADV_PAGEOUT */);
        if (round == 0) write_to(at, bytes, PAGE);
        else read_from(at, bytes);
    }
    munmap(at, bytes);
}

static void thp(size_t bytes) {
    char *whole = map(bytes + HUGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    char *at = (char *)(((size_t)whole + HUGE - 1) & ~((size_t)HUGE - 1));
    madvise(at, bytes, MADV_HUGEPAGE);
    write_to(at, bytes, PAGE);
    munmap(whole, bytes + HUGE);
}

static void file(size_t bytes, const char *name) {
    int fd = open(name, O_RDONLY);
    struct stat found;
    if (fd < 0 || fstat(fd, &found) != 0) {
        perror(name);
        exit(1);
    }
    if ((size_t)found.st_size < bytes) bytes = (size_t)found.st_size & ~((size_t)PAGE - 1);
    char *at = map(bytes, PROT_READ, MAP_PRIVATE, fd);
    madvise(at, bytes, MADV_RANDOM);
    read_from(at, bytes);
    munmap(at, bytes);
    at = map(bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd);
    write_to(at, bytes, PAGE);
    munmap(at, bytes);
    close(fd);
}

int main(int count, char **words) {
    if (count < 4) return 2;
    const char *kind = words[1];
    size_t bytes = (size_t)atoi(words[3]) << 20;
    if (strcmp(kind, "irq") == 0) {
        struct itimerval often = {{0, 100}, {0, 100}};
        signal(SIGALRM, tick);
        setitimer(ITIMER_REAL, &often, NULL);
    }
    for (int round = atoi(words[2]); round > 0; round--) {
        if (strcmp(kind, "anon") == 0 || strcmp(kind, "irq") == 0) anon(bytes);
        else if (strcmp(kind, "zero") == 0) zero(bytes);
        else if (strcmp(kind, "cow") == 0) cow(bytes);
        else if (strcmp(kind, "shm") == 0) shm(bytes);
        else if (strcmp(kind, "swap") == 0) swap(bytes);
        else if (strcmp(kind, "thp") == 0) thp(bytes);
        else if (strcmp(kind, "file") == 0 && count > 4) file(bytes, words[4]);
        else return 2;
    }
    return 0;
}
