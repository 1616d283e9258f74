// Runs a command as in a container without added rights: user 54321, no capability, and the system
// calls refused (EPERM) that the default filters of container engines refuse: perf_event_open, bpf,
// userfaultfd, io_uring, reading another process's memory, NUMA placement; netlink, too, as its
// accounting is out of reach in a network namespace.
#include <errno.h>
#include <grp.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define USER 54321
#define REFUSE(number)                                                                             \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),                                             \
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM)

int main(int count, char **words) {
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        REFUSE(SYS_perf_event_open),
        REFUSE(SYS_bpf),
        REFUSE(SYS_userfaultfd),
        REFUSE(SYS_io_uring_setup),
        REFUSE(SYS_process_vm_readv),
        REFUSE(SYS_kcmp),
        REFUSE(SYS_move_pages),
        REFUSE(SYS_mbind),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_NETLINK, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = sizeof filter / sizeof *filter, .filter = filter};
    if (count < 2)
        return 2;
    if (setgroups(0, NULL) || setgid(USER) || setuid(USER) ||
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) {
        perror("as_in_a_container");
        return 1;
    }
    execvp(words[1], words + 1);
    perror(words[1]);
    return 127;
}
