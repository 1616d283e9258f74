/* io_uring on missing pages: buffers passed with each request, and registered ones that the kernel
 * keeps while memory is short. Uses only system calls. If the pager refuses io_uring ("refused" as
 * third argument), every way to a ring and to kernel AIO must be closed. Arguments: MiB, folder. */
#include "check.h"
#include <fcntl.h>
#include <linux/io_uring.h>
#include <sys/syscall.h>
#include <sys/uio.h>

static struct {
    int fd;
    unsigned *submit_tail, *submit_mask, *array, *done_head, *done_tail, *done_mask;
    struct io_uring_sqe *requests;
    struct io_uring_cqe *answers;
} ring;

/* As liburing does: past libc, so that no library can be in between. */
static long direct(long number, long a, void *b) {
    long answer;
    __asm__ volatile("syscall" : "=a"(answer) : "a"(number), "D"(a), "S"(b), "d"(0L) : "rcx", "r11", "memory");
    return answer;
}

static int open_ring(void) {
    struct io_uring_params about = {0};
    ring.fd = direct(SYS_io_uring_setup, 64, &about);
    if (ring.fd < 0) {
        errno = -ring.fd;
        return 0;
    }
    char *submit = mmap(NULL, about.sq_off.array + about.sq_entries * 4, PROT_READ | PROT_WRITE, MAP_SHARED, ring.fd, IORING_OFF_SQ_RING);
    char *done = mmap(NULL, about.cq_off.cqes + about.cq_entries * sizeof(struct io_uring_cqe), PROT_READ | PROT_WRITE, MAP_SHARED, ring.fd, IORING_OFF_CQ_RING);
    ring.requests = mmap(NULL, about.sq_entries * sizeof *ring.requests, PROT_READ | PROT_WRITE, MAP_SHARED, ring.fd, IORING_OFF_SQES);
    ring.submit_tail = (unsigned *)(submit + about.sq_off.tail);
    ring.submit_mask = (unsigned *)(submit + about.sq_off.ring_mask);
    ring.array = (unsigned *)(submit + about.sq_off.array);
    ring.done_head = (unsigned *)(done + about.cq_off.head);
    ring.done_tail = (unsigned *)(done + about.cq_off.tail);
    ring.done_mask = (unsigned *)(done + about.cq_off.ring_mask);
    ring.answers = (struct io_uring_cqe *)(done + about.cq_off.cqes);
    return 1;
}

static void put(int operation, int file, void *at, unsigned bytes, uint64_t offset, int buffer) {
    unsigned tail = *ring.submit_tail, place = tail & *ring.submit_mask;
    ring.requests[place] = (struct io_uring_sqe){.opcode = operation, .fd = file, .addr = (uint64_t)at, .len = bytes,
                                                 .off = offset, .buf_index = buffer, .user_data = bytes};
    ring.array[place] = place;
    __atomic_store_n(ring.submit_tail, tail + 1, __ATOMIC_RELEASE);
}

static void finish(unsigned count, const char *what) {
    unsigned submitted = 0;
    for (unsigned found = 0; found < count;) {
        int took = syscall(SYS_io_uring_enter, ring.fd, count - submitted, 1, IORING_ENTER_GETEVENTS, NULL, 0);
        if (took < 0 && errno == EINTR) continue;
        need(took >= 0, "io_uring_enter");
        if (took < 0) return;
        submitted += took;
        unsigned head = *ring.done_head;
        for (; head != __atomic_load_n(ring.done_tail, __ATOMIC_ACQUIRE); head++, found++) {
            struct io_uring_cqe *answer = &ring.answers[head & *ring.done_mask];
            errno = answer->res < 0 ? -answer->res : 0;
            need(answer->res == (int)answer->user_data, what);
        }
        __atomic_store_n(ring.done_head, head, __ATOMIC_RELEASE);
    }
}

static char *base;
static size_t pages;
static atomic_int stop;

/* Keeps memory short: everything else is touched, round and round. */
static void *press(void *unused) {
    (void)unused;
    for (size_t i = 4096; !stop; i = i + 1 < pages ? i + 1 : 4096) holds(base + i * PAGE, i, 1);
    return NULL;
}

int main(int count, char **arguments) {
    size_t mib = count > 1 ? atol(arguments[1]) : 96;
    const char *folder = count > 2 ? arguments[2] : "/var/tmp";
    pages = mib * 256;
    base = map(pages * PAGE);
    for (size_t i = 0; i < pages; i++) fill(base + i * PAGE, i, 1);
    if (count > 3 && !strcmp(arguments[3], "refused")) {
        void *context = NULL;
        need(!open_ring() && errno == ENOSYS, "io_uring is refused");
        need(syscall(SYS_io_uring_setup, 64, &ring) == -1 && errno == ENOSYS, "io_uring by syscall(2) is refused");
        need(direct(SYS_io_setup, 8, &context) == -ENOSYS, "kernel AIO is refused");
        pid_t child = fork();
        if (child == 0) _exit(open_ring());
        int status;
        need(waitpid(child, &status, 0) == child && status == 0, "a child is refused as well");
        for (size_t i = 0; i < pages; i++) holds(base + i * PAGE, i, 1);
        return verdict("ring refused");
    }
    if (!open_ring()) {
        printf("ring: SKIP io_uring: %s\n", strerror(errno));
        return 0;
    }
    char path[400];
    snprintf(path, sizeof path, "%s/pagewise-ring.%d", folder, getpid());
    int file = open(path, O_RDWR | O_CREAT | O_DIRECT, 0600);
    if (file < 0) file = open(path, O_RDWR | O_CREAT, 0600);
    unlink(path);
    pthread_t thread;
    pthread_create(&thread, NULL, press, NULL);
    for (unsigned round = 0; round < 12; round++) {
        /* Written from missing pages, read back into others. */
        char *from = base + round * 64 * PAGE, *to = base + (1024 + round * 64) * PAGE;
        madvise(from, 64 * PAGE, MADV_PAGEOUT);
        madvise(to, 64 * PAGE, MADV_PAGEOUT);
        for (int i = 0; i < 16; i++) put(IORING_OP_WRITE, file, from + i * 4 * PAGE, 4 * PAGE, i * 4 * PAGE, 0);
        finish(16, "io_uring write");
        for (int i = 0; i < 16; i++) put(IORING_OP_READ, file, to + i * 4 * PAGE, 4 * PAGE, i * 4 * PAGE, 0);
        finish(16, "io_uring read");
        for (int i = 0; i < 64; i++) {
            holds(to + i * PAGE, round * 64 + i, 1);
            fill(to + i * PAGE, 1024 + round * 64 + i, 1);
        }
    }
    /* Registered: pinned for as long as the ring has them. */
    char *kept = base + 2048 * PAGE;
    struct iovec buffers[1] = {{kept, 256 * PAGE}};
    madvise(kept, 256 * PAGE, MADV_PAGEOUT);
    if (syscall(SYS_io_uring_register, ring.fd, IORING_REGISTER_BUFFERS, buffers, 1) == 0) {
        for (unsigned round = 0; round < 200; round++) {
            unsigned place = round * 37 % 200;
            fill(kept + place * PAGE, 2048 + place, 1);
            put(IORING_OP_WRITE_FIXED, file, kept + place * PAGE, 8 * PAGE, 0, 0);
            finish(1, "io_uring write, registered");
            madvise(kept, 256 * PAGE, MADV_PAGEOUT);
            unsigned target = round * 53 % 200;
            put(IORING_OP_READ_FIXED, file, kept + target * PAGE, 8 * PAGE, 0, 0);
            finish(1, "io_uring read, registered");
            for (unsigned i = 0; i < 8; i++) holds(kept + (target + i) * PAGE, 2048 + place + i, 1);
            for (unsigned i = 0; i < 8; i++) fill(kept + (target + i) * PAGE, 2048 + target + i, 1);
        }
        need(syscall(SYS_io_uring_register, ring.fd, IORING_UNREGISTER_BUFFERS, NULL, 0) == 0, "unregister");
    } else printf("ring: SKIP registered buffers: %s\n", strerror(errno));
    stop = 1;
    pthread_join(thread, NULL);
    for (size_t i = 0; i < pages; i++) holds(base + i * PAGE, i, 1);
    return verdict("ring");
}
