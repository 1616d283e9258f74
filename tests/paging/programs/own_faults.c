/* A program with a userfaultfd of its own, on a part of memory that was paged before: it gets its
 * faults, and earlier contents remain. In addition, memory that the kernel may drop
 * (MAP_DROPPABLE). Argument: MiB. */
#include "check.h"
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif
#ifndef MAP_DROPPABLE
#define MAP_DROPPABLE 0x08
#endif

static int faults_from;
static atomic_int served;
static char *base;

/* Fills each missing page with what its number says, version 77. */
static void *serve(void *argument) {
    static char page[PAGE] __attribute__((aligned(PAGE)));
    struct pollfd wait = {faults_from, POLLIN, 0};
    while (poll(&wait, 1, -1) > 0) {
        struct uffd_msg message;
        if (read(faults_from, &message, sizeof message) != sizeof message) continue;
        if (message.event != UFFD_EVENT_PAGEFAULT) continue;
        char *at = (char *)(message.arg.pagefault.address & ~(PAGE - 1ul));
        fill(page, (at - base) / PAGE, 77);
        struct uffdio_copy copy = {.dst = (size_t)at, .src = (size_t)page, .len = PAGE};
        served++; /* before the copy wakes who counts it */
        need(ioctl(faults_from, UFFDIO_COPY, &copy) == 0 || errno == EEXIST, "UFFDIO_COPY");
    }
    return argument;
}

static int registered(char *at, size_t bytes) {
    struct uffdio_register wanted = {.range = {(size_t)at, bytes}, .mode = UFFDIO_REGISTER_MODE_MISSING};
    return syscall(SYS_ioctl, faults_from, UFFDIO_REGISTER, &wanted) ? -1 : ioctl(faults_from, UFFDIO_REGISTER, &wanted);
}

static void droppable(void) {
    char *at = mmap(NULL, 64 << 20, PROT_READ | PROT_WRITE, MAP_ANONYMOUS | MAP_DROPPABLE, -1, 0);
    if (at == MAP_FAILED) {
        puts("own_faults: SKIP MAP_DROPPABLE: this kernel has none");
        return;
    }
    for (size_t i = 0; i < 16 * 256; i++) fill(at + i * PAGE, i, 5);
    for (size_t i = 0; i < 16 * 256; i++) {
        uint64_t first = *(uint64_t *)(at + i * PAGE);
        if (first) holds(at + i * PAGE, i, 5); /* or the kernel has dropped it */
    }
    munmap(at, 64 << 20);
}

int main(int count, char **arguments) {
    size_t pages = (count > 1 ? atol(arguments[1]) : 80) * 256;
    size_t end = pages - 1024; /* the last 4 MiB are never touched */
    base = map(pages * PAGE);
    for (size_t i = 0; i < end; i++) fill(base + i * PAGE, i, i + 1);

    faults_from = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY);
    struct uffdio_api api = {.api = UFFD_API};
    if (faults_from < 0 || ioctl(faults_from, UFFDIO_API, &api)) {
        puts("own_faults: SKIP: this user may have no userfaultfd");
        return 0;
    }
    /* Unaligned, empty and unmapped ranges are the kernel's to refuse. */
    need(registered(base + 1, PAGE) == -1 && errno == EINVAL, "a range that is none");
    need(registered(base, 0) == -1 && errno == EINVAL, "an empty range");
    errno = 0;
    need(registered(base, end * PAGE) == -1 && errno == ENOMEM, "more than the budget");

    /* 1024 pages that were touched, most of them away, and 512 that were not. */
    size_t from = end - 1024, to = end + 512;
    for (size_t i = 0; i < end - 2048; i++) holds(base + i * PAGE, i, i + 1);
    need(registered(base + from * PAGE, (to - from) * PAGE) == 0, "UFFDIO_REGISTER");
    pthread_t thread;
    pthread_create(&thread, NULL, serve, NULL);
    for (size_t i = from; i < end; i++) holds(base + i * PAGE, i, i + 1);
    need(served == 0, "what was written needs no fault");
    for (size_t i = end; i < to; i++) holds(base + i * PAGE, i, 77);
    need(served == (int)(to - end), "each page that was not is a fault of the program's");
    /* It is the program's from now on: what it drops is missing again. */
    need(madvise(base + from * PAGE, 8 * PAGE, MADV_DONTNEED) == 0, "MADV_DONTNEED");
    for (size_t i = from; i < from + 8; i++) holds(base + i * PAGE, i, 77);
    need(served == (int)(to - end) + 8, "dropped pages fault");
    /* And the rest is paged as before, those behind it too. */
    for (size_t i = to; i < pages; i++) fill(base + i * PAGE, i, i + 1);
    for (int round = 0; round < 2; round++)
        for (size_t i = 0; i < pages; i++)
            if (i < from || i >= to) holds(base + i * PAGE, i, i + 1);
    for (size_t i = from + 8; i < end; i++) holds(base + i * PAGE, i, i + 1);
    need(munmap(base + from * PAGE, (to - from) * PAGE) == 0, "munmap");
    droppable();
    return verdict("own_faults");
}
