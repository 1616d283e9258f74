/* System calls with all that they point to in pages that are away: each must answer as without a pager. Prints
 * a line per call, to be compared with a plain run. Usage: every_call MIB FOLDER */
#include "check.h"
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <mqueue.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/sendfile.h>
#include <sys/shm.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/times.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/utsname.h>
#include <sys/xattr.h>

enum { SLOTS = 24 };
static char *memory, *slot[SLOTS];
static size_t bytes;
static int inlined;

static long raw(long n, long a, long b, long c, long d, long e, long f) {
    register long r10 asm("r10") = d, r8 asm("r8") = e, r9 asm("r9") = f;
    long answer;
    if (!inlined) return answer = syscall(n, a, b, c, d, e, f), answer == -1 ? -errno : answer;
    asm volatile("syscall" : "=a"(answer) : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9) : "rcx", "r11", "memory");
    return answer;
}
#define S(n, ...) s_(n, ##__VA_ARGS__, 0, 0, 0, 0, 0, 0)
#define s_(n, a, b, c, d, e, f, ...) raw(SYS_##n, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))

/* Everything leaves: asked for, and pressed out. */
static void away(void) {
    for (int i = 0; i < SLOTS; i++) madvise(slot[i] - PAGE, 3 * PAGE, MADV_PAGEOUT);
}
static void tell(const char *name, long answer) {
    checks++;
    printf("%s %s %ld\n", inlined ? "past" : "libc", name, answer > 0 && answer > 4096 ? 1 : answer);
    if (answer == -EFAULT) { wrong++; fprintf(stderr, "WRONG: %s answers EFAULT\n", name); }
}
/* The call after all has left; what it answers, or a part of what it wrote. */
#define TRY(name, call) do { away(); tell(name, (call)); } while (0)
#define SAY(name, value) tell(name, (value))
#define OK(call) ((call) >= 0 ? 0 : -errno)
#define AT(i, type) ((type *)slot[i])
#define TEXT(i, text) strcpy(slot[i], text)

static void files(const char *folder) {
    char path[4200], other[4300], link[4300], sub[4300];
    snprintf(path, sizeof path, "%s/every", folder), snprintf(other, sizeof other, "%s/every-other", folder);
    snprintf(link, sizeof link, "%s/every-link", folder), snprintf(sub, sizeof sub, "%s/every-folder", folder);
    unlink(path), unlink(other), unlink(link), rmdir(sub);
    TEXT(0, path), TEXT(1, other), TEXT(2, link), TEXT(3, sub), TEXT(4, "user.every"), TEXT(5, "value");
    TRY("open", OK(S(open, slot[0], O_CREAT | O_RDWR, 0600)));
    int fd = open(path, O_RDWR);
    memset(slot[6], 7, PAGE);
    TRY("write", S(write, fd, slot[6], PAGE));
    TRY("pwrite64", S(pwrite64, fd, slot[6], PAGE, PAGE));
    *AT(7, struct iovec) = (struct iovec){slot[6], 100};
    TRY("writev", S(writev, fd, slot[7], 1));
    TRY("pwritev", S(pwritev, fd, slot[7], 1, 50));
    TRY("pwritev2", S(pwritev2, fd, slot[7], 1, 50, 0, 0));
    lseek(fd, 0, SEEK_SET);
    TRY("read", S(read, fd, slot[8], PAGE));
    SAY("read, a byte", slot[8][9]);
    TRY("pread64", S(pread64, fd, slot[8], PAGE, 0));
    TRY("preadv", S(preadv, fd, slot[7], 1, 0));
    TRY("preadv2", S(preadv2, fd, slot[7], 1, 0, 0, 0));
    TRY("readv", S(readv, fd, slot[7], 1));
    TRY("stat", S(stat, slot[0], slot[9]));
    SAY("stat, size", AT(9, struct stat)->st_size);
    TRY("fstat", S(fstat, fd, slot[9]));
    TRY("lstat", S(lstat, slot[0], slot[9]));
    TRY("newfstatat", S(newfstatat, AT_FDCWD, slot[0], slot[9], 0));
    TRY("statx", S(statx, AT_FDCWD, slot[0], 0, 0x7ff, slot[9]));
    TRY("statfs", S(statfs, slot[0], slot[9]));
    TRY("fstatfs", S(fstatfs, fd, slot[9]));
    TRY("access", S(access, slot[0], R_OK));
    TRY("faccessat", S(faccessat, AT_FDCWD, slot[0], R_OK));
    TRY("link", S(link, slot[0], slot[1]));
    TRY("rename", S(rename, slot[1], slot[2]));
    TRY("renameat2", S(renameat2, AT_FDCWD, slot[2], AT_FDCWD, slot[1], 0));
    TRY("unlink", S(unlink, slot[1]));
    TRY("symlink", S(symlink, slot[0], slot[2]));
    TRY("readlink", OK(S(readlink, slot[2], slot[9], 200)));
    TRY("readlinkat", OK(S(readlinkat, AT_FDCWD, slot[2], slot[9], 200)));
    TRY("unlinkat", S(unlinkat, AT_FDCWD, slot[2], 0));
    TRY("mkdir", S(mkdir, slot[3], 0700));
    TRY("rmdir", S(rmdir, slot[3]));
    TRY("chmod", S(chmod, slot[0], 0600));
    TRY("truncate", S(truncate, slot[0], 9000));
    memset(slot[9], 0, 64);
    TRY("utimensat", S(utimensat, AT_FDCWD, slot[0], slot[9], 0));
    TRY("setxattr", S(setxattr, slot[0], slot[4], slot[5], 5, 0) == -EFAULT ? -EFAULT : 0);
    TRY("getxattr", S(getxattr, slot[0], slot[4], slot[10], 50) == -EFAULT ? -EFAULT : 0);
    TRY("listxattr", S(listxattr, slot[0], slot[10], 500) == -EFAULT ? -EFAULT : 0);
    TRY("getcwd", OK(S(getcwd, slot[10], 4000)));
    TRY("chdir", (TEXT(11, "."), away(), S(chdir, slot[11])));
    int where = open("/", O_RDONLY | O_DIRECTORY);
    TRY("getdents64", S(getdents64, where, slot[10], 3000) > 0);
    struct flock lock = {.l_type = F_WRLCK};
    *AT(11, struct flock) = lock;
    TRY("fcntl F_GETLK", S(fcntl, fd, F_GETLK, slot[11]));
    TRY("ioctl FIONREAD", S(ioctl, fd, 0x541B, slot[12]));
    *AT(13, off_t) = 0;
    int sink = open("/dev/null", O_WRONLY);
    TRY("sendfile", S(sendfile, sink, fd, slot[13], 4096));
    SAY("sendfile, offset", *AT(13, off_t));
    *AT(13, off_t) = 0, *AT(14, off_t) = 0;
    int copy = open(other, O_CREAT | O_RDWR, 0600);
    TRY("copy_file_range", S(copy_file_range, fd, slot[13], copy, slot[14], 2000, 0));
    int watch = inotify_init();
    TRY("inotify_add_watch", OK(S(inotify_add_watch, watch, slot[0], IN_ATTRIB)));
    chmod(path, 0644);
    TRY("read inotify", S(read, watch, slot[15], 500));
    *AT(16, struct timespec) = (struct timespec){0, 1};
    close(fd), close(copy), close(sink), close(where), close(watch), unlink(path), unlink(other);
}

static void waits(void) {
    int ends[2];
    TRY("pipe2", S(pipe2, slot[0], 0));
    ends[0] = AT(0, int)[0], ends[1] = AT(0, int)[1];
    TEXT(1, "words");
    TRY("write pipe", S(write, ends[1], slot[1], 5));
    *AT(2, struct pollfd) = (struct pollfd){ends[0], POLLIN, 0};
    TRY("poll", S(poll, slot[2], 1, 1000));
    *AT(3, struct timespec) = (struct timespec){1, 0}, *AT(4, unsigned long) = 0;
    TRY("ppoll", S(ppoll, slot[2], 1, slot[3], slot[4], 8));
    fd_set *set = AT(5, fd_set);
    FD_ZERO(set);
    FD_SET(ends[0], set);
    *AT(6, struct timeval) = (struct timeval){1, 0};
    TRY("select", S(select, ends[0] + 1, slot[5], 0, 0, slot[6]));
    TRY("pselect6", S(pselect6, ends[0] + 1, slot[5], 0, 0, slot[3], 0));
    AT(12, unsigned long)[0] = (unsigned long)slot[4], AT(12, unsigned long)[1] = 8;
    TRY("pselect6 with a mask", S(pselect6, ends[0] + 1, slot[5], 0, 0, slot[3], slot[12]));
    int ring = epoll_create1(0);
    *AT(7, struct epoll_event) = (struct epoll_event){EPOLLIN, {.u64 = 4711}};
    TRY("epoll_ctl", S(epoll_ctl, ring, EPOLL_CTL_ADD, ends[0], slot[7]));
    TRY("epoll_wait", S(epoll_wait, ring, slot[8], 10, 1000));
    SAY("epoll_wait, data", AT(8, struct epoll_event)->data.u64 == 4711);
    TRY("epoll_pwait", S(epoll_pwait, ring, slot[8], 10, 1000, slot[4], 8));
    TRY("epoll_pwait2", S(epoll_pwait2, ring, slot[8], 10, slot[3], slot[4], 8));
    TRY("read pipe", S(read, ends[0], slot[9], 100));
    int counter = eventfd(3, 0);
    TRY("read eventfd", S(read, counter, slot[9], 8));
    SAY("read eventfd, value", *AT(9, long));
    int timer = timerfd_create(CLOCK_MONOTONIC, 0);
    *AT(10, struct itimerspec) = (struct itimerspec){{0, 0}, {0, 1}};
    TRY("timerfd_settime", S(timerfd_settime, timer, 0, slot[10], slot[11]));
    TRY("read timerfd", S(read, timer, slot[9], 8));
    TRY("timerfd_gettime", S(timerfd_gettime, timer, slot[11]));
    *AT(13, int) = 5;
    *AT(3, struct timespec) = (struct timespec){0, 1000};
    TRY("futex wait", S(futex, slot[13], 128, 4, slot[3], 0, 0));
    TRY("futex wait, in time", S(futex, slot[13], 128, 5, slot[3], 0, 0));
    TRY("nanosleep", S(nanosleep, slot[3], slot[14]));
    TRY("clock_nanosleep", S(clock_nanosleep, CLOCK_MONOTONIC, 0, slot[3], slot[14]));
    for (int kind = 0; kind < 2; kind++) {
        pid_t child = fork();
        if (!child) _exit(7);
        *AT(15, int) = 0;
        if (kind) TRY("wait4", S(wait4, child, slot[15], 0, slot[16]) == child);
        else TRY("waitid", S(waitid, P_PID, child, slot[16], WEXITED, slot[17]));
        SAY(kind ? "wait4, status" : "waitid, status", kind ? *AT(15, int) : AT(16, siginfo_t)->si_status);
    }
    close(ends[0]), close(ends[1]), close(ring), close(counter), close(timer);
}

static void sockets(void) {
    int pair[2];
    TRY("socketpair", S(socketpair, AF_UNIX, SOCK_DGRAM, 0, slot[0]));
    pair[0] = AT(0, int)[0], pair[1] = AT(0, int)[1];
    TEXT(1, "a message"), TEXT(9, "another");
    TRY("sendto", S(sendto, pair[0], slot[1], 9, 0, 0, 0));
    TRY("recvfrom", S(recvfrom, pair[1], slot[2], 100, 0, 0, 0));
    SAY("recvfrom, text", !strncmp(slot[2], "a message", 9));
    memset(slot[3], 0, sizeof(struct msghdr));
    AT(3, struct msghdr)->msg_iov = AT(4, struct iovec), AT(3, struct msghdr)->msg_iovlen = 2;
    AT(4, struct iovec)[0] = (struct iovec){slot[1], 9}, AT(4, struct iovec)[1] = (struct iovec){slot[9], 7};
    TRY("sendmsg", S(sendmsg, pair[0], slot[3], 0));
    memset(slot[1], 0, 16), memset(slot[9], 0, 16);
    TRY("recvmsg", S(recvmsg, pair[1], slot[3], 0));
    SAY("recvmsg, text", !strncmp(slot[1], "a message", 9) && !strncmp(slot[9], "another", 7));
    memset(slot[5], 0, sizeof(struct mmsghdr));
    AT(5, struct mmsghdr)->msg_hdr = *AT(3, struct msghdr);
    TRY("sendmmsg", S(sendmmsg, pair[0], slot[5], 1, 0));
    *AT(16, struct timespec) = (struct timespec){1, 0};
    TRY("recvmmsg", S(recvmmsg, pair[1], slot[5], 1, 0, slot[16]));
    close(pair[0]), close(pair[1]);
    int server = socket(AF_UNIX, SOCK_STREAM, 0), client = socket(AF_UNIX, SOCK_STREAM, 0);
    struct sockaddr_un *name = AT(6, struct sockaddr_un);
    memset(name, 0, sizeof *name), name->sun_family = AF_UNIX;
    snprintf(name->sun_path + 1, 50, "pagewise-every-%d-%d", getpid(), inlined);
    TRY("bind", S(bind, server, slot[6], sizeof *name));
    listen(server, 5);
    TRY("connect", S(connect, client, slot[6], sizeof *name));
    *AT(7, int) = sizeof *name;
    long peer;
    TRY("accept4", (peer = S(accept4, server, slot[8], slot[7], 0)) < 0 ? peer : 0);
    *AT(7, int) = sizeof *name;
    TRY("getsockname", S(getsockname, server, slot[8], slot[7]));
    *AT(7, int) = sizeof *name;
    TRY("getpeername", S(getpeername, client, slot[8], slot[7]));
    *AT(10, int) = 4;
    TRY("getsockopt", S(getsockopt, client, SOL_SOCKET, SO_TYPE, slot[11], slot[10]));
    SAY("getsockopt, value", *AT(11, int));
    *AT(11, int) = 1;
    TRY("setsockopt", S(setsockopt, client, SOL_SOCKET, SO_KEEPALIVE, slot[11], 4));
    close(server), close(client), close(peer);
}

static void states(void) {
    TRY("uname", S(uname, slot[0]));
    SAY("uname, text", !strcmp(AT(0, struct utsname)->sysname, "Linux"));
    TRY("sysinfo", S(sysinfo, slot[0]));
    TRY("times", S(times, slot[0]) > 0);
    TRY("getrusage", S(getrusage, RUSAGE_SELF, slot[0]));
    TRY("getrlimit", S(getrlimit, RLIMIT_NOFILE, slot[0]));
    TRY("prlimit64", S(prlimit64, 0, RLIMIT_NOFILE, 0, slot[1]));
    TRY("setrlimit", S(setrlimit, RLIMIT_NOFILE, slot[0]));
    TRY("clock_gettime", S(clock_gettime, CLOCK_PROCESS_CPUTIME_ID, slot[0]));
    TRY("clock_getres", S(clock_getres, CLOCK_MONOTONIC, slot[0]));
    TRY("gettimeofday", S(gettimeofday, slot[0], slot[1]));
    TRY("time", S(time, slot[0]) > 0);
    TRY("getitimer", S(getitimer, ITIMER_REAL, slot[0]));
    memset(slot[0], 0, 64);
    TRY("setitimer", S(setitimer, ITIMER_REAL, slot[0], slot[1]));
    TRY("getgroups", OK(S(getgroups, 100, slot[0])));
    TRY("getresuid", S(getresuid, slot[0], slot[1], slot[2]));
    TRY("getresgid", S(getresgid, slot[0], slot[1], slot[2]));
    TRY("getcpu", S(getcpu, slot[0], slot[1], 0));
    TRY("getrandom", S(getrandom, slot[0], 3000, 0));
    TRY("sched_getaffinity", S(sched_getaffinity, 0, 128, slot[0]) > 0);
    TRY("sched_setaffinity", S(sched_setaffinity, 0, 128, slot[0]));
    TRY("sched_getparam", S(sched_getparam, 0, slot[0]));
    TRY("sched_rr_get_interval", S(sched_rr_get_interval, 0, slot[0]));
    TEXT(0, "every");
    TRY("prctl PR_SET_NAME", S(prctl, PR_SET_NAME, slot[0]));
    TRY("prctl PR_GET_NAME", S(prctl, PR_GET_NAME, slot[1]));
    SAY("prctl, text", !strcmp(slot[1], "every"));
    AT(0, unsigned)[0] = 0x20080522, AT(0, unsigned)[1] = 0;
    TRY("capget", S(capget, slot[0], slot[1]));
    TEXT(0, "memory");
    int fd;
    TRY("memfd_create", (fd = S(memfd_create, slot[0], 0)) < 0 ? fd : 0);
    close(fd);
    TRY("mincore", S(mincore, memory, 64 * PAGE, slot[0]));
    TRY("get_mempolicy", S(get_mempolicy, slot[0], slot[1], 1024, 0, 0));
    TRY("get_robust_list", S(get_robust_list, 0, slot[0], slot[1]));
    *AT(2, struct iovec) = (struct iovec){slot[3], 50}, *AT(4, struct iovec) = (struct iovec){slot[5], 50};
    TRY("process_vm_readv", S(process_vm_readv, getpid(), slot[2], 1, slot[4], 1, 0));
    TRY("process_vm_writev", S(process_vm_writev, getpid(), slot[2], 1, slot[4], 1, 0));
}

static void on_signal(int number) { (void)number; }
static void signals_and_queues(void) {
    memset(slot[0], 0, 32);
    AT(0, unsigned long)[0] = (unsigned long)on_signal, AT(0, unsigned long)[1] = 0x04000000;
    struct sigaction set = {.sa_handler = on_signal};
    sigaction(SIGUSR2, &set, 0);
    TRY("rt_sigaction, old", S(rt_sigaction, SIGUSR2, 0, slot[1], 8));
    SAY("rt_sigaction, handler", AT(1, unsigned long)[0] == (unsigned long)on_signal);
    TRY("rt_sigaction, both", S(rt_sigaction, SIGUSR2, slot[1], slot[2], 8));
    SAY("rt_sigaction, former", AT(2, unsigned long)[0] == (unsigned long)on_signal);
    *AT(3, unsigned long) = 1ul << (SIGUSR2 - 1);
    TRY("rt_sigprocmask", S(rt_sigprocmask, SIG_BLOCK, slot[3], slot[4], 8));
    SAY("rt_sigprocmask, former", *AT(4, unsigned long));
    raise(SIGUSR2);
    TRY("rt_sigpending", S(rt_sigpending, slot[5], 8));
    SAY("rt_sigpending, set", *AT(5, unsigned long) == 1ul << (SIGUSR2 - 1));
    *AT(6, struct timespec) = (struct timespec){1, 0};
    TRY("rt_sigtimedwait", S(rt_sigtimedwait, slot[3], slot[7], slot[6], 8));
    SAY("rt_sigtimedwait, signal", AT(7, siginfo_t)->si_signo);
    raise(SIGUSR2);
    int fd;
    TRY("signalfd4", (fd = S(signalfd4, -1, slot[3], 8, 0)) < 0 ? fd : 0);
    TRY("read signalfd", S(read, fd, slot[8], 128));
    SAY("read signalfd, signal", *AT(8, int));
    close(fd);
    memset(slot[9], 0, 128), AT(9, int)[0] = SIGUSR2, AT(9, int)[2] = -1;
    TRY("rt_sigqueueinfo", S(rt_sigqueueinfo, getpid(), SIGUSR2, slot[9]));
    TRY("rt_sigtimedwait again", S(rt_sigtimedwait, slot[3], slot[7], slot[6], 8));
    TRY("rt_sigprocmask, back", S(rt_sigprocmask, SIG_SETMASK, slot[4], 0, 8));
    TRY("sigaltstack, old", S(sigaltstack, 0, slot[10]));

    memset(slot[11], 0, sizeof(struct sigevent)), AT(11, struct sigevent)->sigev_notify = SIGEV_NONE;
    TRY("timer_create", S(timer_create, CLOCK_MONOTONIC, slot[11], slot[12]));
    long timer = *AT(12, int);
    *AT(13, struct itimerspec) = (struct itimerspec){{0, 0}, {100, 0}};
    TRY("timer_settime", S(timer_settime, timer, 0, slot[13], slot[14]));
    TRY("timer_gettime", S(timer_gettime, timer, slot[14]));
    SAY("timer_gettime, armed", AT(14, struct itimerspec)->it_value.tv_sec > 50);
    S(timer_delete, timer);

    int queue = msgget(IPC_PRIVATE, 0600);
    AT(15, long)[0] = 5, strcpy(slot[15] + 8, "hello");
    TRY("msgsnd", S(msgsnd, queue, slot[15], 5, 0));
    TRY("msgrcv", S(msgrcv, queue, slot[16], 100, 0, 0));
    SAY("msgrcv, text", !strncmp(slot[16] + 8, "hello", 5));
    TRY("msgctl", S(msgctl, queue, IPC_STAT, slot[17]));
    msgctl(queue, IPC_RMID, 0);
    int semaphores = semget(IPC_PRIVATE, 1, 0600);
    *AT(18, struct sembuf) = (struct sembuf){0, 1, 0};
    TRY("semop", S(semop, semaphores, slot[18], 1));
    TRY("semtimedop", S(semtimedop, semaphores, slot[18], 1, slot[6]));
    TRY("semctl", S(semctl, semaphores, 0, IPC_STAT, slot[17]));
    semctl(semaphores, 0, IPC_RMID);
    int shared = shmget(IPC_PRIVATE, PAGE, 0600);
    TRY("shmctl", S(shmctl, shared, IPC_STAT, slot[17]));
    shmctl(shared, IPC_RMID, 0);
    char name[64];
    snprintf(name, sizeof name, "pagewise-every-%d", getpid());
    TEXT(19, name);
    memset(slot[20], 0, sizeof(struct mq_attr)), AT(20, struct mq_attr)->mq_maxmsg = 2, AT(20, struct mq_attr)->mq_msgsize = 64;
    long letters;
    TRY("mq_open", (letters = S(mq_open, slot[19], O_CREAT | O_RDWR, 0600, slot[20])) < 0 ? letters : 0);
    TEXT(21, "letter");
    TRY("mq_timedsend", S(mq_timedsend, letters, slot[21], 6, 3, 0));
    memset(slot[21], 0, 8), *AT(22, unsigned) = 0;
    TRY("mq_timedreceive", S(mq_timedreceive, letters, slot[21], 64, slot[22], 0));
    SAY("mq_timedreceive, priority", *AT(22, unsigned));
    TRY("mq_getsetattr", S(mq_getsetattr, letters, 0, slot[20]));
    TRY("mq_unlink", S(mq_unlink, slot[19]));
    close(letters);
    static char *nothing[] = {0};
    char **list = AT(20, char *);
    TEXT(19, "/bin/true"), list[0] = slot[19], list[1] = 0;
    pid_t child = fork();
    if (!child) { away(); S(execve, slot[19], slot[20], nothing); _exit(9); }
    int status = 0;
    waitpid(child, &status, 0);
    SAY("execve", status);
}

int main(int count, char **v) {
    (void)count;
    bytes = atol(v[1]) << 20;
    memory = malloc(bytes);
    for (size_t i = 0; i < bytes; i += PAGE) memory[i] = 1;
    char *base = (char *)(((size_t)memory + 2 * PAGE) & -(size_t)PAGE);
    for (int i = 0; i < SLOTS; i++) slot[i] = base + (size_t)(i * 4 + 1) * 16 * PAGE;
    for (inlined = 0; inlined < 2; inlined++) files(v[2]), waits(), sockets(), states(), signals_and_queues();
    return verdict("every_call");
}
