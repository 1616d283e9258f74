/* System calls whose buffers are missing pages: nothing is lost and nothing is repeated. */
#include "check.h"
#include <fcntl.h>
#include <linux/futex.h>
#include <spawn.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>

static char *base;
static size_t pages;
static size_t turn;

/* Pages that are on disk by now: asked for (the pager honours MADV_PAGEOUT at once). */
static char *cold(size_t count) {
    size_t at = turn;
    turn = (turn + count + 3) % (pages - 512);
    madvise(base + at * PAGE, count * PAGE, 21);
    return base + at * PAGE;
}

/* The same for pages that are in use already. */
static void chill(void *at, size_t count) { madvise(at, count * PAGE, 21); }

static size_t number(char *at) { return (at - base) / PAGE; }

/* Starts `true` with all that the kernel is told in missing pages. */
static void start_from(char *page) {
    static char *words[2], *environment[1];
    strcpy(page, "/bin/true");
    strcpy(page + PAGE, "true");
    words[0] = page + PAGE;
    for (int way = 0; way < 2; way++) {
        chill(page, 2);
        pid_t pid = -1;
        if (way) need(posix_spawn(&pid, page, NULL, NULL, words, environment) == 0, "posix_spawn from missing pages");
        else if ((pid = fork()) == 0) {
            chill(page, 2);
            execve(page, words, environment);
            _exit(9);
        }
        int status = -1;
        need(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0, way ? "spawned" : "fork and exec from missing pages");
    }
}

int main(int count, char **arguments) {
    size_t mib = count > 1 ? atol(arguments[1]) : 256;
    const char *folder = count > 2 ? arguments[2] : "/var/tmp";
    pages = mib * 256;
    base = map(pages * PAGE);
    for (size_t i = 0; i < pages; i++) fill(base + i * PAGE, i, 1);

    char path[400];
    snprintf(path, sizeof path, "%s/pagewise-syscalls.%d", folder, getpid());
    int file = open(path, O_RDWR | O_CREAT, 0600);
    unlink(path);
    char *page = cold(8);
    need(write(file, page, 8 * PAGE) == 8 * PAGE, "write from missing pages");
    char *into = cold(8);
    need(pread(file, into, 8 * PAGE, 0) == 8 * PAGE, "pread into missing pages");
    for (int i = 0; i < 8; i++) {
        holds(into + i * PAGE, number(page) + i, 1);
        fill(into + i * PAGE, number(into) + i, 1);
    }
    page = cold(8);
    char *other = cold(8);
    struct iovec parts[2] = {{page, 4 * PAGE}, {other, 4 * PAGE}};
    for (int flags = 0; flags < 2; flags++) {
        chill(page, 8);
        chill(other, 8);
        if (flags) need(pwritev2(file, parts, 2, 0, 0) == 8 * PAGE, "pwritev2");
        else need(pwritev(file, parts, 2, 0) == 8 * PAGE, "pwritev");
        into = cold(8);
        struct iovec back[2] = {{into, 3 * PAGE}, {into + 3 * PAGE, 5 * PAGE}};
        if (flags) need(preadv2(file, back, 2, 0, 0) == 8 * PAGE, "preadv2");
        else need(preadv(file, back, 2, 0) == 8 * PAGE, "preadv");
        for (int i = 0; i < 8; i++) {
            holds(into + i * PAGE, i < 4 ? number(page) + i : number(other) + i - 4, 1);
            fill(into + i * PAGE, number(into) + i, 1);
        }
    }

    snprintf(path, sizeof path, "%s/pagewise-direct.%d", folder, getpid());
    int direct = open(path, O_RDWR | O_CREAT | O_DIRECT, 0600);
    if (direct >= 0) {
        unlink(path);
        page = cold(64);
        need(pwrite(direct, page, 64 * PAGE, 0) == 64 * PAGE, "O_DIRECT write");
        into = cold(64);
        need(pread(direct, into, 64 * PAGE, 0) == 64 * PAGE, "O_DIRECT read");
        for (int i = 0; i < 64; i++) {
            holds(into + i * PAGE, number(page) + i, 1);
            fill(into + i * PAGE, number(into) + i, 1);
        }
    } else puts("syscalls: SKIP O_DIRECT: this file system has none");

    int ends[2];
    need(pipe(ends) == 0, "pipe");
    page = cold(4);
    need(write(ends[1], page, 4 * PAGE) == 4 * PAGE, "write to a pipe");
    into = cold(4);
    need(read(ends[0], into, 4 * PAGE) == 4 * PAGE, "read from a pipe");
    for (int i = 0; i < 4; i++) { holds(into + i * PAGE, number(page) + i, 1); fill(into + i * PAGE, number(into) + i, 1); }

    int pair[2];
    need(socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) == 0, "socketpair");
    for (int i = 0; i < 20; i++) {
        page = cold(2);
        into = cold(2);
        need(send(pair[0], page, 2 * PAGE, 0) == 2 * PAGE, "send");
        need(send(pair[0], "next", 4, 0) == 4, "send");
        need(recv(pair[1], into, 2 * PAGE, 0) == 2 * PAGE, "recv: a datagram is there once");
        char next[8] = "";
        need(recv(pair[1], next, 8, 0) == 4 && !memcmp(next, "next", 4), "the next datagram");
        holds(into, number(page), 1);
        holds(into + PAGE, number(page) + 1, 1);
        fill(into, number(into), 1);
        fill(into + PAGE, number(into) + 1, 1);
        struct iovec part = {cold(1), PAGE};
        struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
        need(sendmsg(pair[0], &message, 0) == PAGE, "sendmsg");
        size_t sent = number(part.iov_base);
        part.iov_base = cold(1);
        need(recvmsg(pair[1], &message, 0) == PAGE, "recvmsg");
        holds(part.iov_base, sent, 1);
        fill(part.iov_base, number(part.iov_base), 1);

        struct mmsghdr several[12] = {0};
        struct iovec pieces[12];
        for (int j = 0; j < 12; j++) {
            several[j].msg_hdr.msg_iov = &pieces[j];
            several[j].msg_hdr.msg_iovlen = 1;
        }
        size_t numbers[12];
        for (int j = 0; j < 3; j++) {
            pieces[j] = (struct iovec){cold(1), PAGE};
            numbers[j] = number(pieces[j].iov_base);
        }
        need(sendmmsg(pair[0], several, 3, 0) == 3, "sendmmsg");
        for (int j = 0; j < 12; j++) pieces[j] = (struct iovec){cold(1), PAGE};
        need(recvmmsg(pair[1], several, 12, MSG_DONTWAIT, NULL) == 3, "recvmmsg: each datagram is there once");
        for (int j = 0; j < 3; j++) {
            need(several[j].msg_len == PAGE, "a length of recvmmsg");
            holds(pieces[j].iov_base, numbers[j], 1);
            fill(pieces[j].iov_base, number(pieces[j].iov_base), 1);
        }
    }

    page = cold(1);
    need(getrandom(page, 256, 0) == 256, "getrandom");
    fill(page, number(page), 1);
    page = cold(1);
    strcpy(page, "/proc/self/status");
    chill(page, 1);
    struct stat status;
    need(stat(page, &status) == 0, "stat of a path in a missing page");
    chill(page, 1);
    int opened = open(page, O_RDONLY);
    need(opened >= 0, "open of a path in a missing page");
    close(opened);
    fill(page, number(page), 1);
    page = cold(1);
    need(fstat(file, (struct stat *)page) == 0, "fstat into a missing page");
    fill(page, number(page), 1);
    page = cold(1);
    *(uint32_t *)page = 77;
    chill(page, 1);
    need(syscall(SYS_futex, page, FUTEX_WAIT, 78, NULL, NULL, 0) == -1 && errno == EAGAIN, "futex on a missing page");
    fill(page, number(page), 1);
    page = cold(2);
    start_from(page);
    fill(page, number(page), 1);
    fill(page + PAGE, number(page) + 1, 1);
    page = cold(3);
    char stack[3 * PAGE];
    struct iovec local = {stack, sizeof stack}, remote = {page, sizeof stack};
    need(process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == sizeof stack, "process_vm_readv");
    for (int i = 0; i < 3; i++) holds(stack + i * PAGE, number(page) + i, 1);
    page = cold(3);
    remote.iov_base = page;
    for (int i = 0; i < 3; i++) fill(stack + i * PAGE, number(page) + i, 1);
    need(process_vm_writev(getpid(), &local, 1, &remote, 1, 0) == sizeof stack, "process_vm_writev");
    for (int i = 0; i < 3; i++) holds(page + i * PAGE, number(page) + i, 1);
    page = cold(16);
    need(madvise(page, 16 * PAGE, 22) == 0 || errno == EINVAL, "MADV_POPULATE_READ");
    for (int i = 0; i < 16; i++) holds(page + i * PAGE, number(page) + i, 1);
    page = cold(4);
    need(mlock(page, 4 * PAGE) == 0 || errno == EPERM || errno == ENOMEM, "mlock");
    chill(page, 4);
    for (int i = 0; i < 4; i++) holds(page + i * PAGE, number(page) + i, 1);
    munlock(page, 4 * PAGE);
    for (size_t i = 0; i < pages; i++) holds(base + i * PAGE, i, 1);
    return verdict("syscalls");
}
