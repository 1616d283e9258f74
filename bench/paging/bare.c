/* The cost of a fault on a missing page before any pager does anything: userfaultfd raises SIGBUS
 * in the faulting thread, whose handler maps one page and returns. Single pages, in an order
 * without streams, touched as in `pagewise bench faults`; p50 and p99 in nanoseconds, compared
 * with the kernel's own faults.
 *
 *   gcc -O2 bench/paging/bare.c -o bare && ./bare
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { PAGE = 4096, PAGES = 4096 };
enum way { KERNEL, ZEROPAGE, COPY };

static int descriptor;
static enum way way;
static char *zeros;

static void on_fault(int number, siginfo_t *info, void *context) {
    (void)number, (void)context;
    uint64_t page = (uint64_t)info->si_addr & ~(uint64_t)(PAGE - 1);
    struct uffdio_copy copy = {.dst = page, .src = (uint64_t)zeros, .len = PAGE};
    struct uffdio_zeropage zero = {.range = {page, PAGE}};
    int failed = way == COPY ? ioctl(descriptor, UFFDIO_COPY, &copy) : ioctl(descriptor, UFFDIO_ZEROPAGE, &zero);
    if (failed) _exit(4);
}

static long now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000l + time.tv_nsec;
}

static int ascending(const void *a, const void *b) {
    long x = *(const long *)a, y = *(const long *)b;
    return (x > y) - (x < y);
}

static char *memory(int flags) {
    char *place = mmap(NULL, (size_t)PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
    if (place == MAP_FAILED) exit(3);
    madvise(place, (size_t)PAGES * PAGE, MADV_NOHUGEPAGE);
    return place;
}

static void measure(const char *name, enum way how, int write) {
    way = how;
    volatile char *place = memory(0);
    if (how != KERNEL) {
        struct uffdio_register range = {.range = {(uint64_t)place, (uint64_t)PAGES * PAGE},
                                        .mode = UFFDIO_REGISTER_MODE_MISSING | UFFDIO_REGISTER_MODE_WP};
        if (ioctl(descriptor, UFFDIO_REGISTER, &range)) exit(3);
    }
    static long times[PAGES];
    for (int i = 0; i < PAGES; i++) times[i] = 1;
    for (long i = 0, page = 0; i < PAGES; i++) {
        page = (page + 1000003) % PAGES;
        long began = now();
        if (write) place[page * PAGE] = 1;
        else (void)place[page * PAGE];
        times[i] = now() - began;
    }
    qsort(times, PAGES, sizeof *times, ascending);
    printf("%-25s first %-5s %6ld / %ld\n", name, write ? "write" : "read", times[PAGES / 2], times[PAGES * 99 / 100]);
    munmap((void *)place, (size_t)PAGES * PAGE);
}

int main(void) {
    zeros = memory(MAP_POPULATE);
    descriptor = (int)syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY);
    struct uffdio_api api = {.api = UFFD_API, .features = UFFD_FEATURE_SIGBUS};
    if (descriptor < 0 || ioctl(descriptor, UFFDIO_API, &api)) {
        perror("userfaultfd");
        return 1;
    }
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigfillset(&action.sa_mask);
    sigaction(SIGBUS, &action, NULL);
    for (int round = 0; round < 3; round++) {
        measure("kernel", KERNEL, 0);
        measure("kernel", KERNEL, 1);
        measure("SIGBUS + UFFDIO_ZEROPAGE", ZEROPAGE, 0);
        measure("SIGBUS + UFFDIO_ZEROPAGE", ZEROPAGE, 1);
        measure("SIGBUS + UFFDIO_COPY", COPY, 0);
        measure("SIGBUS + UFFDIO_COPY", COPY, 1);
    }
    return 0;
}
