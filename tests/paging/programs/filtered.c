/* A program whose own filter refuses ioctl (EPERM): a missing page cannot come back by SIGBUS, which must end
 * it with the reason. Usage: filtered MIB */
#include "check.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

int main(int count, char **v) {
    (void)count;
    size_t pages = atol(v[1]) * 256;
    char *memory = map(pages * PAGE);
    for (size_t i = 0; i < pages; i++) fill(memory + i * PAGE, i, 1);
    struct sock_filter filter[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
                                   BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ioctl, 0, 1),
                                   BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    struct sock_fprog filters = {4, filter};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    need(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filters) == 0, "a filter");
    for (size_t i = 0; i < pages; i++) holds(memory + i * PAGE, i, 1);
    return verdict("filtered");
}
