#!/usr/bin/env bash
# Linux 6.18: a process whose only thread ends by exit(2) (not exit_group(2)) with 20 is waited for with status 0 if io_uring has
# started a worker for it. The worker is a thread of that process and ends after it, with 0, and the last thread's
# status becomes the process's (kernel/exit.c, synchronize_group_exit; signal->quick_threads counts workers).
# 200 of 200 children whose read was done by a worker (IOSQE_ASYNC), none of 200 whose read was done at once. libc's _exit is exit_group;
# clone(3)'s return from its function, and runtimes without libc, use exit.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
uname -sr
cat > ends.c <<'C'
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/io_uring.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
static int child(int flags) {
    static char bytes[4096];
    struct io_uring_params p = {0};
    int ring = syscall(SYS_io_uring_setup, 4, &p), zero = open("/dev/zero", O_RDONLY);
    if (ring < 0 || zero < 0) return 2;
    unsigned size = p.sq_off.array + 4 * p.sq_entries;
    char *submission = mmap(0, size, PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQ_RING);
    struct io_uring_sqe *entry = mmap(0, p.sq_entries * sizeof *entry, PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQES);
    *entry = (struct io_uring_sqe){.opcode = IORING_OP_READ, .flags = flags, .fd = zero, .addr = (unsigned long)bytes, .len = sizeof bytes};
    *(unsigned *)(submission + p.sq_off.array) = 0;
    *(unsigned *)(submission + p.sq_off.tail) = 1;
    if (syscall(SYS_io_uring_enter, ring, 1, 1, IORING_ENTER_GETEVENTS, 0, 0) != 1) return 2;
    syscall(SYS_exit, 20);
    return 3;
}
int main(void) {
    int zero[2] = {0, 0}, other[2] = {0, 0};
    for (int worker = 0; worker < 2; worker++)
        for (int i = 0; i < 200; i++) {
            int status = -1;
            pid_t pid = fork();
            if (pid == 0) _exit(child(worker ? IOSQE_ASYNC : 0));
            waitpid(pid, &status, 0);
            if (WIFEXITED(status) && WEXITSTATUS(status) == 2) return 2;
            zero[worker] += status == 0;
            other[worker] += status != 0 && status != 20 << 8;
        }
    printf("status 0 instead of 20: %d of 200 without a worker, %d of 200 with one\n", zero[0], zero[1]);
    return other[0] || other[1] || zero[0] || zero[1] < 190;
}
C
gcc -O1 ends.c -o ends
status=0
./ends || status=$?
[ "$status" != 2 ] || { echo "this machine refuses io_uring"; exit 2; }
[ "$status" = 0 ] || { echo "changed"; exit 1; }
echo "as found: the worker's status replaces the process's"
