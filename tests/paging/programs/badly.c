/* Bad pointers: where Linux answers EFAULT, a paged program must get the same answer, and survive.
 * Argument: MiB. */
#include "check.h"
#include <signal.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/socket.h>

extern char **environ;
static char *base;
static size_t pages;

static void refused(long answer, const char *what) {
    need(answer == -1 && errno == EFAULT, what);
    errno = 0;
}

int main(int count, char **arguments) {
    pages = (count > 1 ? atol(arguments[1]) : 80) * 256;
    base = map(pages * PAGE);
    for (size_t i = 0; i < pages; i++) fill(base + i * PAGE, i, i + 1);
    /* A fork first: from then on exec gives up the slots that it shares. */
    pid_t pid = fork();
    if (pid == 0) _exit(0);
    waitpid(pid, NULL, 0);
    void *closed = mmap(NULL, 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    void *gone = map(PAGE);
    munmap(gone, PAGE);
    /* Inside managed memory, and not to be read. */
    mprotect(base + 64 * PAGE, PAGE, PROT_NONE);
    void *bad[] = {(void *)8, (void *)-1, (void *)0x8000000000000000, closed, gone, base + 64 * PAGE};
    char *empty[] = {NULL};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char *words[] = {"true", bad[i], NULL};
        refused(execve(bad[i], empty, environ), "path of execve");
        refused(execve("/bin/true", words, environ), "argument of execve");
        refused(execve("/bin/true", bad[i], environ), "arguments of execve");
        refused(execve("/bin/true", empty, bad[i]), "environment of execve");
        refused(syscall(SYS_clone3, bad[i], 88), "arguments of clone3");
        refused(readv(0, bad[i], 2), "list of readv");
        refused(writev(1, bad[i], 2), "list of writev");
        refused(sendmsg(0, bad[i], 0) == -1 && errno == ENOTSOCK ? (errno = EFAULT, -1) : -1, "message");
        struct iovec part = {base, 16};
        errno = 0;
        refused(process_vm_readv(getpid(), &part, 1, bad[i], 1, 0), "list of process_vm_readv");
    }
    /* What would end behind the last page that can be read. */
    char *edge = base + 64 * PAGE - 100;
    memset(edge, 'x', 100);
    refused(execve(edge, empty, environ), "path that runs into what cannot be read");
    mprotect(base + 64 * PAGE, PAGE, PROT_READ | PROT_WRITE);
    fill(base + 63 * PAGE, 63, 64);
    for (size_t i = 0; i < pages; i++) holds(base + i * PAGE, i, i + 1);
    /* And what is right still runs, with its arguments in memory that is away. */
    char **given = (char **)(base + 10 * PAGE), *word = base + 20 * PAGE;
    strcpy(word, "/bin/true");
    given[0] = word, given[1] = NULL;
    for (size_t i = 100; i < pages; i++) fill(base + i * PAGE, i, i + 2);
    if ((pid = fork()) == 0) {
        execve(word, given, environ);
        _exit(9);
    }
    int status = -1;
    need(waitpid(pid, &status, 0) == pid && status == 0, "exec with arguments that are away");
    return verdict("badly");
}
