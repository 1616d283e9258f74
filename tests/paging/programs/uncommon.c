/* What few programs ask of the kernel, on memory of which much is away: registrations that it writes to by
 * itself, processes that share memory, protection that stays, pipes, modes of a process. Prints what each answers
 * and what the memory holds afterwards, which must be the same without a pager. Usage: uncommon MIB FOLDER [CASE] */
#include "check.h"
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <linux/rseq.h>
#include <linux/sched.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>
#include <sys/uio.h>

enum { POPULATE_READ = 22, POPULATE_WRITE, COLLAPSE = 25, GUARD_INSTALL = 102, GUARD_REMOVE };
enum { MSEAL = 462, MEMFD_SECRET = 447 };

static long pages;
static const char *only, *folder;

static uint64_t sum(const unsigned char *from, long count) {
    uint64_t all = 0;
    for (long i = 0; i < count * WORDS; i++) all = all * 1099511628211ull + ((const uint64_t *)from)[i];
    return all;
}
static void told(const char *what, long answer) {
    printf("%-44s %ld %s\n", what, answer, answer < 0 ? strerror(errno) : "");
    checks++;
}
static void tell(const char *what, long answer, const unsigned char *from, long count) {
    int error = errno;
    printf("%-44s %ld %-28s %016lx\n", what, answer, answer < 0 ? strerror(error) : "", sum(from, count));
    checks++;
}
/* New memory of so many pages. */
static unsigned char *memory(long count) {
    unsigned char *at = map(count * PAGE);
    for (long i = 0; i < count; i++) fill(at + i * PAGE, i, 7);
    return at;
}
/* Everything else leaves: this takes more than there is. */
static void press(void) {
    unsigned char *at = map(pages * PAGE);
    for (long i = 0; i < pages; i++) fill(at + i * PAGE, i, 9);
    munmap(at, pages * PAGE);
}
static int is(const char *name) { return !only || !strcmp(only, name); }
static int child_status(pid_t child) {
    int status = -1;
    while (waitpid(child, &status, __WALL) < 0 && errno == EINTR) continue;
    return status;
}

/* Whether a touch raises SIGSEGV. */
static sigjmp_buf back;
static void on_segv(int number) { siglongjmp(back, number); }
static int raises(volatile unsigned char *at) {
    signal(SIGSEGV, on_segv);
    int raised = sigsetjmp(back, 1);
    if (!raised) (void)*at;
    signal(SIGSEGV, SIG_DFL);
    return raised;
}

/* Guards stay where they are, whatever is touched beside them. */
static void guards(void) {
    unsigned char *at = map(pages * PAGE);
    for (long i = 0; i < pages; i += 64) at[i * PAGE] = 1;
    if (madvise(at + 100 * PAGE, 200 * PAGE, GUARD_INSTALL)) return told("guards", -1);
    for (long i = 0; i < 100; i++) at[i * PAGE] = 2;
    for (long i = 399; i >= 300; i--) at[i * PAGE] = 2;
    int count = 0;
    for (long i = 100; i < 300; i++) count += raises(at + i * PAGE) == SIGSEGV;
    told("guards beside first touches", count);
    for (long i = 0; i < pages; i++)
        if (i < 100 || i >= 300) fill(at + i * PAGE, i, 5);
    press();
    for (long i = 0; i < 100; i++) holds(at + i * PAGE, i, 5);
    for (count = 0, errno = 0; count < 200 && raises(at + (100 + count) * PAGE); count++) continue;
    told("guards beside pages that come back", count);
    told("populated over guards", madvise(at + 90 * PAGE, 20 * PAGE, POPULATE_WRITE));
    told("read ahead over guards", madvise(at, pages * PAGE, MADV_WILLNEED));
    told("written from within a guard", write(1, at + 150 * PAGE, 1));
    told("dropped over guards", madvise(at + 50 * PAGE, 100 * PAGE, MADV_DONTNEED));
    told("  a guard", raises(at + 120 * PAGE));
    pid_t child = fork();
    if (!child) {
        for (count = 0; count < 200 && raises(at + (100 + count) * PAGE); count++) continue;
        _exit(count);
    }
    told("guards in a child", child_status(child));
    unsigned char *moved = mremap(at + 200 * PAGE, 100 * PAGE, 100 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, memory(100));
    told("guards that moved", raises(moved + 50 * PAGE));
    told("guards removed", madvise(at + 100 * PAGE, 50 * PAGE, GUARD_REMOVE));
    tell("  memory", 0, at, 150);
    tell("  behind", 0, at + 300 * PAGE, pages - 300);
    munmap(at, pages * PAGE);
}

/* Advice of later kernels. */
static void advice(void) {
    unsigned char *at = memory(pages);
    press();
    told("POPULATE_READ", madvise(at, 300 * PAGE, POPULATE_READ));
    told("POPULATE_WRITE", madvise(at + 300 * PAGE, 300 * PAGE, POPULATE_WRITE));
    told("COLD", madvise(at, 300 * PAGE, MADV_COLD));
    told("COLLAPSE", madvise(at, 1024 * PAGE, COLLAPSE) == 0 || errno == EINVAL || errno == EAGAIN ? 0 : -1);
    told("populated, read-only", mprotect(at, 64 * PAGE, PROT_READ) ?: madvise(at, 64 * PAGE, POPULATE_WRITE));
    told("populated, to be read", madvise(at, 64 * PAGE, POPULATE_READ));
    mprotect(at, 64 * PAGE, 3);
    told("DONTFORK", madvise(at, 50 * PAGE, MADV_DONTFORK));
    told("WIPEONFORK", madvise(at + 50 * PAGE, 50 * PAGE, MADV_WIPEONFORK));
    press();
    pid_t child = fork();
    if (!child) {
        int wiped = 0;
        for (long i = 50; i < 100; i++) wiped += at[i * PAGE + 9] == 0 && at[i * PAGE + 4000] == 0;
        _exit(wiped == 50 ? (int)(sum(at + 100 * PAGE, pages - 100) & 63) : 99);
    }
    told("a child without it", child_status(child));
    tell("  memory", 0, at, pages);
    int self = syscall(SYS_pidfd_open, getpid(), 0);
    struct iovec parts[3] = {{at, 64 * PAGE}, {at + 200 * PAGE, 64 * PAGE}, {at + 400 * PAGE, 64 * PAGE}};
    told("process_madvise PAGEOUT", syscall(SYS_process_madvise, self, parts, 3, MADV_PAGEOUT, 0));
    told("process_madvise COLD", syscall(SYS_process_madvise, self, parts, 3, MADV_COLD, 0));
    told("process_madvise WILLNEED", syscall(SYS_process_madvise, self, parts, 3, MADV_WILLNEED, 0));
    close(self);
    tell("  memory", 0, at, pages);
    munmap(at, pages * PAGE);
}

/* Sealed: refused, and all is as it was. */
static void seals(void) {
    unsigned char *at = memory(pages), *reader;
    if (syscall(MSEAL, at + 100 * PAGE, 200 * PAGE, 0)) return told("mseal", -1);
    press();
    told("munmap of sealed memory", munmap(at + 50 * PAGE, 100 * PAGE));
    told("mmap over it", mmap(at + 250 * PAGE, 100 * PAGE, 3, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED ? -1 : 0);
    told("mprotect", mprotect(at + 50 * PAGE, 100 * PAGE, PROT_READ));
    told("mremap", mremap(at + 100 * PAGE, 50 * PAGE, 50 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, at + 400 * PAGE) == MAP_FAILED ? -1 : 0);
    told("mremap over it", mremap(at + 400 * PAGE, 50 * PAGE, 50 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, at + 100 * PAGE) == MAP_FAILED ? -1 : 0);
    mprotect(at + 50 * PAGE, 50 * PAGE, 3);
    for (long i = 400; i < 450; i++) if (raises(at + i * PAGE)) return told("  what was to move is gone", i);
    tell("  memory", 0, at, pages);
    told("dropped, sealed to be written", madvise(at + 100 * PAGE, 50 * PAGE, MADV_DONTNEED));
    tell("  memory", 0, at, pages);
    reader = memory(400);
    mprotect(reader, 400 * PAGE, PROT_READ);
    syscall(MSEAL, reader, 400 * PAGE, 0);
    press();
    told("dropped, sealed to be read", madvise(reader, 50 * PAGE, MADV_DONTNEED));
    press();
    tell("  memory", 0, reader, 400);
    pid_t child = fork();
    if (!child) press(), _exit((sum(at, pages) + sum(reader, 400)) & 63);
    told("sealed memory in a child", child_status(child));
}

/* What the kernel reads and writes by itself. */
static int thread_of(void *argument) {
    unsigned char *at = argument;
    int *word = (int *)(at + 60 * PAGE);
    syscall(SYS_set_tid_address, word);
    press();
    syscall(SYS_exit, 0);
    return 0;
}
static void *plain_thread_of(void *argument) {
    syscall(SYS_set_tid_address, (int *)argument);
    press();
    syscall(SYS_exit, 0);
    return NULL;
}
/* struct robust_list_head of this thread's own, with one lock in a page that is away. */
static void *robust_of(void *argument) {
    unsigned char *at = argument;
    struct robust_list_head *head = (void *)(at + 80 * PAGE);
    struct robust_list *entry = (void *)(at + 90 * PAGE);
    head->list.next = entry, head->futex_offset = 64, head->list_op_pending = NULL;
    entry->next = &head->list;
    *(int *)((char *)entry + 64) = gettid();
    syscall(SYS_set_robust_list, head, sizeof *head);
    press();
    syscall(SYS_exit, 0);
    return NULL;
}
static void waits_for(const char *what, volatile int *word, int value) {
    struct timespec most = {LONGEST_WAIT_S, 0};
    long answer = 0;
    while (*word == value && !answer) answer = syscall(SYS_futex, word, FUTEX_WAIT, value, &most, NULL, 0);
    printf("%-44s %d %s\n", what, *word == value, answer && errno == ETIMEDOUT ? "never woken" : "");
}
static void registered(void) {
    unsigned char *at = memory(pages);
    unsigned char *stack = mmap(NULL, 1 << 16, 3, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    int flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM;
    volatile int *word = (int *)(at + 60 * PAGE);
    *word = 5;
    clone(thread_of, stack + (1 << 16), flags, at);
    waits_for("set_tid_address of a thread by hand", word, 5);
    word = (int *)(at + 61 * PAGE);
    *word = 5;
    pthread_t thread;
    pthread_create(&thread, NULL, plain_thread_of, (void *)word);
    waits_for("set_tid_address of a thread", word, 5);
    pthread_create(&thread, NULL, robust_of, at);
    word = (int *)(at + 90 * PAGE + 64);
    for (double until = now() + LONGEST_WAIT_S; now() < until && !(*word & FUTEX_OWNER_DIED);) usleep(1000);
    told("a robust list by hand", (*word & FUTEX_OWNER_DIED) != 0);
    fill(at + 60 * PAGE, 60, 7), fill(at + 61 * PAGE, 61, 7), fill(at + 80 * PAGE, 80, 7), fill(at + 90 * PAGE, 90, 7);
    tell("  memory", 0, at, pages);
    munmap(at, pages * PAGE);
}

/* A structure for restartable sequences of the thread's own: the kernel writes the processor's number there. */
static void on_nothing(int number) { (void)number; }
static void *sequences_of(void *argument) {
    unsigned char *at = argument;
    struct rseq *own = (void *)(at + 70 * PAGE);
    memset(own, 0, PAGE);
    own->cpu_id = -1;
    if (syscall(SYS_rseq, own, 32, 0, 0x53053053)) return told("rseq", -1), NULL;
    for (int i = 0; i < 20; i++) {
        press();
        madvise(at + 64 * PAGE, 16 * PAGE, MADV_PAGEOUT);
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(i % sysconf(_SC_NPROCESSORS_ONLN), &one);
        sched_setaffinity(0, sizeof one, &one);
        pthread_kill(pthread_self(), SIGUSR1);
        if ((int)own->cpu_id != sched_getcpu()) return told("the processor's number", own->cpu_id), NULL;
    }
    told("rseq", syscall(SYS_rseq, own, 32, 1 /* unregister */, 0x53053053));
    return NULL;
}
static void sequences(void) {
    unsigned char *at = memory(pages);
    signal(SIGUSR1, on_nothing);
    pthread_t thread;
    pthread_create(&thread, NULL, sequences_of, at);
    pthread_join(thread, NULL);
    fill(at + 70 * PAGE, 70, 7);
    tell("  memory", 0, at, pages);
    munmap(at, pages * PAGE);
}

/* A process that shares this memory and is no thread. */
static unsigned char *shared;
static volatile uint64_t shared_sum; /* of what it read */
static int sharer(void *thirds) {
    for (long i = 0; i < pages; i++) holds(shared + i * PAGE, i, thirds && i % 3 == 0 ? 8 : 7);
    uint64_t now = shared_sum = sum(shared, pages);
    for (long i = 0; i < pages; i += 3) fill(shared + i * PAGE, i, 8);
    syscall(SYS_exit, (int)(now & 63));
    return 0;
}
static void relatives(void) {
    shared = memory(pages);
    press();
    unsigned char *stack = mmap(NULL, 1 << 18, 3, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    for (int more = 0; more < 2; more++) {
        pid_t child = clone(sharer, stack + (1 << 18), CLONE_VM | (more ? CLONE_FILES | CLONE_FS | CLONE_SIGHAND : 0) | SIGCHLD, more ? &only : NULL);
        int status = child < 0 ? -1 : child_status(child);
        told(more ? "CLONE_VM and handlers, no thread" : "CLONE_VM, no thread", status);
        printf("%-44s %016lx\n", "  what it read", shared_sum);
        tell("  memory", 0, shared, pages);
        press();
    }
    munmap(shared, pages * PAGE);
}

/* A process with this memory and with descriptors of its own has the first pages leave that may not be written:
 * what it opens for that is not open here, where such pages have to leave as well. */
enum { FEW = 512 };
static int pages_out(void *at) {
    need(madvise(at, FEW * PAGE, MADV_PAGEOUT) == 0, "a relative pages out");
    syscall(SYS_exit, 7);
    return 0;
}
static void relative(void) {
    unsigned char *few = memory(FEW);
    unsigned char *stack = mmap(NULL, 1 << 18, 3, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    mprotect(few, FEW * PAGE, PROT_READ);
    pid_t child = clone(pages_out, stack + (1 << 18), CLONE_VM | SIGCHLD, few);
    told("a relative that pages out", child < 0 ? -1 : child_status(child));
    unsigned char *at = memory(pages);
    mprotect(at, pages * PAGE, PROT_READ);
    unsigned char *more = memory(pages);
    long resident = status_kib("VmHWM:"), most = pages * PAGE / 1024 * 3 / 4;
    tell("  memory", 0, at, pages);
    tell("  more", 0, more, pages);
    if (resident > most) fprintf(stderr, "%ld KiB are resident\n", resident);
    need(resident <= most, "pages leave after a relative has paged out");
    munmap(at, pages * PAGE), munmap(more, pages * PAGE), munmap(few, FEW * PAGE);
}

/* From outside: a child writes to this process's memory, and the other way round. */
static void outside(void) {
    unsigned char *at = memory(pages), *own = memory(64);
    int ends[2], ready[2];
    need(pipe(ends) == 0 && pipe(ready) == 0, "pipes");
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
    press();
    pid_t parent = getpid(), child = fork();
    if (!child) {
        unsigned char *buffer = memory(64);
        struct iovec here = {buffer, 64 * PAGE}, there = {at + 100 * PAGE, 64 * PAGE};
        for (long i = 0; i < 64; i++) fill(buffer + i * PAGE, i, 3);
        press();
        long wrote = process_vm_writev(parent, &here, 1, &there, 1, 0);
        there.iov_base = at + 300 * PAGE;
        long got = process_vm_readv(parent, &here, 1, &there, 1, 0);
        int good = wrote == 64 * PAGE && got == 64 * PAGE && sum(buffer, 64) == sum(at + 300 * PAGE, 64);
        _exit(good ? 7 : 1);
    }
    told("process_vm_writev from a child", child_status(child));
    tell("  memory", 0, at, pages);
    if (!(child = fork())) {
        press();
        need(write(ready[1], "x", 1) == 1 && read(ends[0], own, 1) == 1, "a pipe");
        _exit(own[5 * PAGE] == 77 ? 7 : 1);
    }
    char byte;
    need(read(ready[0], &byte, 1) == 1, "the child is ready");
    memset(at, 77, 64 * PAGE);
    struct iovec here = {at, 60 * PAGE}, there = {own + 2 * PAGE, 60 * PAGE};
    told("process_vm_writev to a child", process_vm_writev(child, &here, 1, &there, 1, 0));
    need(write(ends[1], "x", 1) == 1, "a pipe");
    told("  which saw it", child_status(child));
    munmap(at, pages * PAGE), munmap(own, 64 * PAGE);
}

/* Bytes pass through pipes while their pages leave. */
static void pipes(void) {
    unsigned char *at = memory(pages), *got = memory(64);
    int one[2], two[2];
    char path[300];
    snprintf(path, sizeof path, "%s/uncommon.file", folder);
    int file = open(path, O_CREAT | O_RDWR | O_TRUNC, 0600);
    need(pipe(one) == 0 && pipe(two) == 0 && file >= 0, "pipes");
    struct iovec parts[2] = {{at + 20 * PAGE, 3 * PAGE}, {at + 50 * PAGE, 3 * PAGE}};
    press();
    told("vmsplice", vmsplice(one[1], parts, 2, SPLICE_F_GIFT));
    press();
    told("tee", tee(one[0], two[1], 6 * PAGE, 0));
    told("splice to a file", splice(one[0], NULL, file, &(loff_t){0}, 6 * PAGE, 0));
    press();
    told("read", read(two[0], got, 6 * PAGE));
    tell("  what came", 0, got, 6);
    told("pread", pread(file, got + 10 * PAGE, 6 * PAGE, 0));
    tell("  what came", 0, got + 10 * PAGE, 6);
    parts[0].iov_base = at + 80 * PAGE;
    told("written", pwrite(file, at + 200 * PAGE, 16 * PAGE, 0));
    press();
    told("sendfile", sendfile(one[1], file, &(off_t){0}, 16 * PAGE));
    press();
    told("vmsplice to memory", vmsplice(one[0], parts, 1, 0));
    told("  the rest", read(one[0], got + 20 * PAGE, 16 * PAGE));
    press();
    tell("  what came", 0, got, 64);
    tell("  memory", 0, at, pages);
    close(file), close(one[0]), close(one[1]), close(two[0]), close(two[1]), unlink(path);
    munmap(at, pages * PAGE), munmap(got, 64 * PAGE);
}

/* Other kinds of memory beside it. */
static void kinds(void) {
    unsigned char *at = memory(pages);
    int secret = syscall(MEMFD_SECRET, 0);
    unsigned char *hidden = MAP_FAILED;
    if (secret >= 0 && ftruncate(secret, 64 * PAGE) == 0) hidden = mmap(NULL, 64 * PAGE, 3, MAP_SHARED, secret, 0);
    if (hidden != MAP_FAILED) for (long i = 0; i < 64; i++) fill(hidden + i * PAGE, i, 3);
    press();
    if (hidden != MAP_FAILED) {
        tell("secret memory", 0, hidden, 64);
        told("  not for the kernel", write(open("/dev/null", O_WRONLY), hidden, PAGE));
    }
    told("remap_file_pages of private memory", remap_file_pages(at, 4 * PAGE, 0, 2, 0));
    unsigned char *grows = mmap(NULL, 16 * PAGE, 3, MAP_PRIVATE | MAP_ANONYMOUS | MAP_GROWSDOWN, -1, 0);
    told("MAP_GROWSDOWN", grows == MAP_FAILED ? -1 : 0);
    for (long i = 1; i < 16; i++) fill(grows + i * PAGE, i, 3);
    told("mprotect downwards", mprotect(grows + 8 * PAGE, PAGE, PROT_READ | PROT_GROWSDOWN));
    told("  of plain memory", mprotect(at + 8 * PAGE, PAGE, PROT_READ | PROT_GROWSDOWN));
    press();
    tell("  what grew", 0, grows + PAGE, 15);
    for (int command = MEMBARRIER_CMD_GLOBAL; command <= MEMBARRIER_CMD_PRIVATE_EXPEDITED; command *= 2)
        told("membarrier", syscall(SYS_membarrier, command, 0, 0));
    told("membarrier registered", syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) ?: syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0));
    tell("  memory", 0, at, pages);
    munmap(at, pages * PAGE);
}

/* How the kernel sees the process. */
static void modes(void) {
    unsigned char *at = memory(pages);
    told("no new privileges", prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
    told("not to be dumped", prctl(PR_SET_DUMPABLE, 0, 0, 0, 0));
    press();
    for (int generation = 0; generation < 2; generation++) {
        pid_t child = fork();
        if (child) { told("children that may not be looked at", child_status(child)); continue; }
        press();
        for (long i = 0; i < pages; i += 2) fill(at + i * PAGE, i, 4);
        child = fork();
        if (!child) press(), _exit((int)(sum(at, pages) & 63));
        int status = child_status(child);
        press();
        _exit(status ? WEXITSTATUS(status) : (int)(sum(at, pages) & 63));
    }
    tell("  memory", 0, at, pages);
    prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
    unsigned before = personality(-1);
    told("READ_IMPLIES_EXEC", personality(before | READ_IMPLIES_EXEC) < 0);
    unsigned char *code = memory(pages);
    press();
    tell("  memory", 0, code, pages);
    personality(before);
    told("MDWE", prctl(65 /* PR_SET_MDWE */, 1, 0, 0, 0));
    press();
    tell("  memory", 0, code, pages);
    pid_t child = fork();
    if (!child) press(), _exit((int)(sum(code, pages) & 63));
    told("  in a child", child_status(child));
    munmap(code, pages * PAGE), munmap(at, pages * PAGE);
}

/* Forks by one thread of several, and another program at once. */
static void *forker(void *argument) {
    unsigned char *at = argument;
    long bad = 0;
    for (int i = 0; i < 6; i++) {
        pid_t child = fork();
        if (!child) {
            if (i % 2) execl("/bin/sh", "sh", "-c", "exit 3", NULL);
            _exit((int)(sum(at, pages) & 63) == 0 ? 3 : 3 + (sum(at, pages) != sum(at, pages)));
        }
        bad += child_status(child) != 3 << 8;
        press();
    }
    return (void *)bad;
}
static void programs(void) {
    unsigned char *at = memory(pages);
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, forker, at);
    for (int i = 0; i < 2; i++) {
        void *bad;
        pthread_join(threads[i], &bad);
        told("forks and execs by a thread", (long)bad);
    }
    tell("  memory", 0, at, pages);
    munmap(at, pages * PAGE);
}

/* Strict mode: read, write, the return from a signal, and the end of the thread are all that is left. */
static void strict(void) {
    unsigned char *at = memory(pages);
    int ends[2];
    need(pipe(ends) == 0, "a pipe");
    press();
    pid_t child = fork();
    if (!child) {
        prctl(PR_SET_SECCOMP, 1, 0, 0, 0);
        for (int round = 0; round < 2; round++)
            for (long i = 0; i < pages; i++) at[i * PAGE]++;
        if (write(ends[1], at + 9 * PAGE, 1)) syscall(SYS_exit, at[100 * PAGE] != (unsigned char)(at[100 * PAGE] + 256));
    }
    int status = child_status(child);
    need(status == 0, "a child in strict mode ends as it wants");
    told("strict mode", status);
    munmap(at, pages * PAGE);
}

int main(int count, char **v) {
    pages = atol(v[1]) * 256;
    folder = v[2];
    only = count > 3 ? v[3] : NULL;
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (is("guards")) guards();
    if (is("advice")) advice();
    if (is("seals")) seals();
    if (is("registered")) registered();
    if (is("sequences")) sequences();
    if (is("relatives")) relatives();
    if (is("pipes")) pipes();
    if (is("kinds")) kinds();
    if (is("programs")) programs();
    if (is("modes")) modes();
    // From outside only by descriptor.
    if (only && is("outside")) outside();
    if (only && is("relative")) relative();
    if (only && is("strict")) strict();
    return verdict("uncommon");
}
