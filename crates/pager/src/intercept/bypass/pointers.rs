//! Which arguments of which system call are pointers, and to how much. Written by `crates/pager/pointers`
//! from the types of a kernel, Linux 6.18.44: 340 calls.

use super::pointer::Kind::{Bytes, Message, Messages, Parts};
use super::pointer::{ONE, Pointer, from, to};

/// Calls without any pointer among their arguments, by number.
#[rustfmt::skip]
pub(super) const WITHOUT: &[u16] = &[
    3 /* close */, 8 /* lseek */, 10 /* mprotect */, 12 /* brk */, 15 /* rt_sigreturn */,
    24 /* sched_yield */, 26 /* msync */, 28 /* madvise */, 29 /* shmget */, 32 /* dup */, 33 /* dup2 */,
    34 /* pause */, 37 /* alarm */, 39 /* getpid */, 41 /* socket */, 48 /* shutdown */, 50 /* listen */,
    57 /* fork */, 58 /* vfork */, 60 /* exit */, 62 /* kill */, 64 /* semget */, 68 /* msgget */,
    73 /* flock */, 74 /* fsync */, 75 /* fdatasync */, 77 /* ftruncate */, 81 /* fchdir */, 91 /* fchmod */,
    93 /* fchown */, 95 /* umask */, 102 /* getuid */, 104 /* getgid */, 105 /* setuid */, 106 /* setgid */,
    107 /* geteuid */, 108 /* getegid */, 109 /* setpgid */, 110 /* getppid */, 111 /* getpgrp */,
    112 /* setsid */, 113 /* setreuid */, 114 /* setregid */, 117 /* setresuid */, 119 /* setresgid */,
    121 /* getpgid */, 122 /* setfsuid */, 123 /* setfsgid */, 124 /* getsid */, 135 /* personality */,
    140 /* getpriority */, 141 /* setpriority */, 145 /* sched_getscheduler */,
    146 /* sched_get_priority_max */, 147 /* sched_get_priority_min */, 149 /* mlock */, 150 /* munlock */,
    151 /* mlockall */, 152 /* munlockall */, 153 /* vhangup */, 162 /* sync */, 172 /* iopl */,
    173 /* ioperm */, 186 /* gettid */, 187 /* readahead */, 200 /* tkill */, 207 /* io_destroy */,
    213 /* epoll_create */, 216 /* remap_file_pages */, 219 /* restart_syscall */, 221 /* fadvise64 */,
    225 /* timer_getoverrun */, 226 /* timer_delete */, 231 /* exit_group */, 234 /* tgkill */,
    251 /* ioprio_set */, 252 /* ioprio_get */, 253 /* inotify_init */, 255 /* inotify_rm_watch */,
    272 /* unshare */, 276 /* tee */, 277 /* sync_file_range */, 283 /* timerfd_create */, 284 /* eventfd */,
    285 /* fallocate */, 290 /* eventfd2 */, 291 /* epoll_create1 */, 292 /* dup3 */, 294 /* inotify_init1 */,
    300 /* fanotify_init */, 306 /* syncfs */, 308 /* setns */, 312 /* kcmp */, 323 /* userfaultfd */,
    324 /* membarrier */, 325 /* mlock2 */, 329 /* pkey_mprotect */, 330 /* pkey_alloc */,
    331 /* pkey_free */, 432 /* fsmount */, 434 /* pidfd_open */, 436 /* close_range */,
    438 /* pidfd_getfd */, 444 /* landlock_create_ruleset */, 445 /* landlock_add_rule */,
    446 /* landlock_restrict_self */, 447 /* memfd_secret */, 448 /* process_mrelease */,
    450 /* set_mempolicy_home_node */,
];

/// The others, by number. An argument of the kernel's type `unsigned long` may be a pointer as well.
#[rustfmt::skip]
pub(super) const WITH: &[(u16, &[Pointer])] = &[
    (0, &[to(1, Bytes, 1, 2)]), // read
    (1, &[from(1, Bytes, 1, 2)]), // write
    (2, &[from(0, Bytes, 4096, ONE)]), // open
    (4, &[from(0, Bytes, 4096, ONE), to(1, Bytes, 144, ONE)]), // newstat
    (5, &[to(1, Bytes, 144, ONE)]), // newfstat
    (6, &[from(0, Bytes, 4096, ONE), to(1, Bytes, 144, ONE)]), // newlstat
    (7, &[to(0, Bytes, 8, 1)]), // poll
    (9, &[]), // mmap
    (11, &[]), // munmap
    (13, &[from(1, Bytes, 32, ONE), to(2, Bytes, 32, ONE)]), // rt_sigaction
    (14, &[to(1, Bytes, 8, ONE), to(2, Bytes, 8, ONE)]), // rt_sigprocmask
    (16, &[]), // ioctl
    (17, &[to(1, Bytes, 1, 2)]), // pread64
    (18, &[from(1, Bytes, 1, 2)]), // pwrite64
    (19, &[from(1, Parts, 16, 2)]), // readv
    (20, &[from(1, Parts, 16, 2)]), // writev
    (21, &[from(0, Bytes, 4096, ONE)]), // access
    (22, &[to(0, Bytes, 4, ONE)]), // pipe
    (23, &[to(1, Bytes, 128, ONE), to(2, Bytes, 128, ONE), to(3, Bytes, 128, ONE), to(4, Bytes, 16, ONE)]), // select
    (25, &[]), // mremap
    (27, &[to(2, Bytes, 4096, ONE)]), // mincore
    (30, &[to(1, Bytes, 4096, ONE)]), // shmat
    (31, &[to(2, Bytes, 88, ONE)]), // shmctl
    (35, &[to(0, Bytes, 16, ONE), to(1, Bytes, 16, ONE)]), // nanosleep
    (36, &[to(1, Bytes, 32, ONE)]), // getitimer
    (38, &[to(1, Bytes, 32, ONE), to(2, Bytes, 32, ONE)]), // setitimer
    (40, &[to(2, Bytes, 8, 3)]), // sendfile64
    (42, &[to(1, Bytes, 128, ONE)]), // connect
    (43, &[to(1, Bytes, 128, ONE), to(2, Bytes, 4, ONE)]), // accept
    (44, &[to(1, Bytes, 1, 2), to(4, Bytes, 128, ONE)]), // sendto
    (45, &[to(1, Bytes, 1, 2), to(4, Bytes, 128, ONE), to(5, Bytes, 4, ONE)]), // recvfrom
    (46, &[to(1, Message, 56, ONE)]), // sendmsg
    (47, &[to(1, Message, 56, ONE)]), // recvmsg
    (49, &[to(1, Bytes, 128, ONE)]), // bind
    (51, &[to(1, Bytes, 128, ONE), to(2, Bytes, 4, ONE)]), // getsockname
    (52, &[to(1, Bytes, 128, ONE), to(2, Bytes, 4, ONE)]), // getpeername
    (53, &[to(3, Bytes, 4, ONE)]), // socketpair
    (54, &[to(3, Bytes, 1, 4)]), // setsockopt
    (55, &[to(3, Bytes, 4096, ONE), to(4, Bytes, 4, ONE)]), // getsockopt
    (56, &[to(2, Bytes, 4, ONE), to(3, Bytes, 4, ONE)]), // clone
    (59, &[from(0, Bytes, 4096, ONE), from(1, Bytes, 4096, ONE), from(2, Bytes, 4096, ONE)]), // execve
    (61, &[to(1, Bytes, 4, ONE), to(3, Bytes, 144, ONE)]), // wait4
    (63, &[to(0, Bytes, 390, ONE)]), // newuname
    (65, &[to(1, Bytes, 6, 2)]), // semop
    (66, &[]), // semctl
    (67, &[to(0, Bytes, 4096, ONE)]), // shmdt
    (69, &[to(1, Bytes, 1, 2)]), // msgsnd
    (70, &[to(1, Bytes, 1, 2)]), // msgrcv
    (71, &[to(2, Bytes, 104, ONE)]), // msgctl
    (72, &[]), // fcntl
    (76, &[from(0, Bytes, 1, 1)]), // truncate
    (78, &[to(1, Bytes, 1, 2)]), // getdents
    (79, &[to(0, Bytes, 1, 1)]), // getcwd
    (80, &[from(0, Bytes, 4096, ONE)]), // chdir
    (82, &[from(0, Bytes, 4096, ONE), from(1, Bytes, 4096, ONE)]), // rename
    (83, &[from(0, Bytes, 4096, ONE)]), // mkdir
    (84, &[from(0, Bytes, 4096, ONE)]), // rmdir
    (85, &[from(0, Bytes, 4096, ONE)]), // creat
    (86, &[from(0, Bytes, 4096, ONE), from(1, Bytes, 4096, ONE)]), // link
    (87, &[from(0, Bytes, 4096, ONE)]), // unlink
    (88, &[from(0, Bytes, 4096, ONE), from(1, Bytes, 4096, ONE)]), // symlink
    (89, &[from(0, Bytes, 4096, ONE), to(1, Bytes, 1, 2)]), // readlink
    (90, &[from(0, Bytes, 4096, ONE)]), // chmod
    (92, &[from(0, Bytes, 4096, ONE)]), // chown
    (94, &[from(0, Bytes, 4096, ONE)]), // lchown
    (96, &[to(0, Bytes, 16, ONE), to(1, Bytes, 8, ONE)]), // gettimeofday
    (97, &[to(1, Bytes, 16, ONE)]), // getrlimit
    (98, &[to(1, Bytes, 144, ONE)]), // getrusage
    (99, &[to(0, Bytes, 112, ONE)]), // sysinfo
    (100, &[to(0, Bytes, 32, ONE)]), // times
    (101, &[]), // ptrace
    (103, &[to(1, Bytes, 1, 2)]), // syslog
    (115, &[to(1, Bytes, 4, 0)]), // getgroups
    (116, &[to(1, Bytes, 4, 0)]), // setgroups
    (118, &[to(0, Bytes, 4, ONE), to(1, Bytes, 4, ONE), to(2, Bytes, 4, ONE)]), // getresuid
    (120, &[to(0, Bytes, 4, ONE), to(1, Bytes, 4, ONE), to(2, Bytes, 4, ONE)]), // getresgid
    (125, &[to(0, Bytes, 8, ONE), to(1, Bytes, 24, ONE)]), // capget
    (126, &[to(0, Bytes, 8, ONE)]), // capset
    (127, &[to(0, Bytes, 8, ONE)]), // rt_sigpending
    (128, &[from(0, Bytes, 8, ONE), to(1, Bytes, 128, ONE), from(2, Bytes, 16, ONE)]), // rt_sigtimedwait
    (129, &[to(2, Bytes, 128, ONE)]), // rt_sigqueueinfo
    (130, &[to(0, Bytes, 8, ONE)]), // rt_sigsuspend
    (131, &[from(0, Bytes, 24, ONE), to(1, Bytes, 24, ONE)]), // sigaltstack
    (132, &[to(0, Bytes, 4096, ONE), to(1, Bytes, 16, ONE)]), // utime
    (133, &[from(0, Bytes, 4096, ONE)]), // mknod
    (136, &[to(1, Bytes, 32, ONE)]), // ustat
    (137, &[from(0, Bytes, 4096, ONE), to(1, Bytes, 120, ONE)]), // statfs
    (138, &[to(1, Bytes, 120, ONE)]), // fstatfs
    (139, &[]), // sysfs
    (142, &[to(1, Bytes, 4, ONE)]), // sched_setparam
    (143, &[to(1, Bytes, 4, ONE)]), // sched_getparam
    (144, &[to(2, Bytes, 4, ONE)]), // sched_setscheduler
    (148, &[to(1, Bytes, 16, ONE)]), // sched_rr_get_interval
    (154, &[to(1, Bytes, 4096, ONE)]), // modify_ldt
    (155, &[from(0, Bytes, 4096, ONE), from(1, Bytes, 4096, ONE)]), // pivot_root
    (157, &[]), // prctl
    (158, &[]), // arch_prctl
    (159, &[to(0, Bytes, 208, ONE)]), // adjtimex
    (160, &[to(1, Bytes, 16, ONE)]), // setrlimit
    (161, &[from(0, Bytes, 4096, ONE)]), // chroot
    (163, &[from(0, Bytes, 4096, ONE)]), // acct
    (164, &[to(0, Bytes, 16, ONE), to(1, Bytes, 8, ONE)]), // settimeofday
    (165, &[to(0, Bytes, 4096, ONE), to(1, Bytes, 4096, ONE), to(2, Bytes, 4096, ONE), to(4, Bytes, 4096, ONE)]), // mount
    (166, &[to(0, Bytes, 4096, ONE)]), // umount
    (167, &[from(0, Bytes, 4096, ONE)]), // swapon
    (168, &[from(0, Bytes, 4096, ONE)]), // swapoff
    (169, &[to(3, Bytes, 4096, ONE)]), // reboot
    (170, &[to(0, Bytes, 1, 1)]), // sethostname
    (171, &[to(0, Bytes, 1, 1)]), // setdomainname
    (179, &[from(1, Bytes, 4096, ONE), to(3, Bytes, 4096, ONE)]), // quotactl
    (188, &[from(0, Bytes, 4096, ONE), from(1, Bytes, 4096, ONE), from(2, Bytes, 1, 3)]), // setxattr
    (189, &[from(0, Bytes, 4096, ONE), from(1, Bytes, 4096, ONE), from(2, Bytes, 1, 3)]), // lsetxattr
    (190, &[from(1, Bytes, 4096, ONE), from(2, Bytes, 1, 3)]), // fsetxattr
    (191, &[from(0, Bytes, 4096, ONE), from(1, Bytes, 4096, ONE), to(2, Bytes, 1, 3)]), // getxattr
    (192, &[from(0, Bytes, 4096, ONE), from(1, Bytes, 4096, ONE), to(2, Bytes, 1, 3)]), // lgetxattr
    (193, &[from(1, Bytes, 4096, ONE), to(2, Bytes, 1, 3)]), // fgetxattr
    (194, &[from(0, Bytes, 4096, ONE), to(1, Bytes, 1, 2)]), // listxattr
    (195, &[from(0, Bytes, 4096, ONE), to(1, Bytes, 1, 2)]), // llistxattr
    (196, &[to(1, Bytes, 1, 2)]), // flistxattr
    (197, &[from(0, Bytes, 4096, ONE), from(1, Bytes, 4096, ONE)]), // removexattr
    (198, &[from(0, Bytes, 4096, ONE), from(1, Bytes, 4096, ONE)]), // lremovexattr
    (199, &[from(1, Bytes, 4096, ONE)]), // fremovexattr
    (201, &[to(0, Bytes, 8, ONE)]), // time
    (202, &[to(0, Bytes, 4, ONE), from(3, Bytes, 16, ONE), to(4, Bytes, 4, ONE)]), // futex
    (203, &[to(2, Bytes, 1, 1)]), // sched_setaffinity
    (204, &[to(2, Bytes, 1, 1)]), // sched_getaffinity
    (206, &[to(1, Bytes, 8, 0)]), // io_setup
    (208, &[to(3, Bytes, 32, 2), to(4, Bytes, 16, ONE)]), // io_getevents
    (209, &[to(2, Bytes, 64, 1)]), // io_submit
    (210, &[to(1, Bytes, 64, ONE), to(2, Bytes, 32, ONE)]), // io_cancel
    (217, &[to(1, Bytes, 1, 2)]), // getdents64
    (218, &[to(0, Bytes, 4, ONE)]), // set_tid_address
    (220, &[to(1, Bytes, 6, 2), from(3, Bytes, 16, 2)]), // semtimedop
    (222, &[to(1, Bytes, 64, ONE), to(2, Bytes, 4, ONE)]), // timer_create
    (223, &[from(2, Bytes, 32, ONE), to(3, Bytes, 32, ONE)]), // timer_settime
    (224, &[to(1, Bytes, 32, ONE)]), // timer_gettime
    (227, &[from(1, Bytes, 16, ONE)]), // clock_settime
    (228, &[to(1, Bytes, 16, ONE)]), // clock_gettime
    (229, &[to(1, Bytes, 16, ONE)]), // clock_getres
    (230, &[from(2, Bytes, 16, ONE), to(3, Bytes, 16, ONE)]), // clock_nanosleep
    (232, &[to(1, Bytes, 12, 2)]), // epoll_wait
    (233, &[to(3, Bytes, 12, ONE)]), // epoll_ctl
    (235, &[to(0, Bytes, 4096, ONE), to(1, Bytes, 16, ONE)]), // utimes
    (237, &[from(3, Bytes, 1, 4)]), // mbind
    (238, &[from(1, Bytes, 1, 2)]), // set_mempolicy
    (239, &[to(0, Bytes, 1, 2), to(1, Bytes, 1, 2)]), // get_mempolicy
    (240, &[from(0, Bytes, 4096, ONE), to(3, Bytes, 64, ONE)]), // mq_open
    (241, &[from(0, Bytes, 4096, ONE)]), // mq_unlink
    (242, &[from(1, Bytes, 1, 2), from(4, Bytes, 16, ONE)]), // mq_timedsend
    (243, &[to(1, Bytes, 1, 2), to(3, Bytes, 4, ONE), from(4, Bytes, 16, ONE)]), // mq_timedreceive
    (244, &[from(1, Bytes, 64, ONE)]), // mq_notify
    (245, &[from(1, Bytes, 64, ONE), to(2, Bytes, 64, ONE)]), // mq_getsetattr
    (247, &[to(2, Bytes, 128, ONE), to(4, Bytes, 144, ONE)]), // waitid
    (248, &[from(0, Bytes, 4096, ONE), from(1, Bytes, 4096, ONE), from(2, Bytes, 1, 3)]), // add_key
    (249, &[from(0, Bytes, 4096, ONE), from(1, Bytes, 4096, ONE), from(2, Bytes, 4096, ONE)]), // request_key
    (250, &[]), // keyctl
    (254, &[from(1, Bytes, 4096, ONE)]), // inotify_add_watch
    (256, &[from(2, Bytes, 1, 1), from(3, Bytes, 8, ONE)]), // migrate_pages
    (257, &[from(1, Bytes, 4096, ONE)]), // openat
    (258, &[from(1, Bytes, 4096, ONE)]), // mkdirat
    (259, &[from(1, Bytes, 4096, ONE)]), // mknodat
    (260, &[from(1, Bytes, 4096, ONE)]), // fchownat
    (261, &[from(1, Bytes, 4096, ONE), to(2, Bytes, 16, ONE)]), // futimesat
    (262, &[from(1, Bytes, 4096, ONE), to(2, Bytes, 144, ONE)]), // newfstatat
    (263, &[from(1, Bytes, 4096, ONE)]), // unlinkat
    (264, &[from(1, Bytes, 4096, ONE), from(3, Bytes, 4096, ONE)]), // renameat
    (265, &[from(1, Bytes, 4096, ONE), from(3, Bytes, 4096, ONE)]), // linkat
    (266, &[from(0, Bytes, 4096, ONE), from(2, Bytes, 4096, ONE)]), // symlinkat
    (267, &[from(1, Bytes, 4096, ONE), to(2, Bytes, 1, 3)]), // readlinkat
    (268, &[from(1, Bytes, 4096, ONE)]), // fchmodat
    (269, &[from(1, Bytes, 4096, ONE)]), // faccessat
    (270, &[to(1, Bytes, 128, ONE), to(2, Bytes, 128, ONE), to(3, Bytes, 128, ONE), to(4, Bytes, 16, ONE), to(5, Bytes, 4096, ONE)]), // pselect6
    (271, &[to(0, Bytes, 8, 1), to(2, Bytes, 16, 1), from(3, Bytes, 8, ONE)]), // ppoll
    (273, &[to(0, Bytes, 24, ONE)]), // set_robust_list
    (274, &[to(1, Bytes, 24, ONE), to(2, Bytes, 8, ONE)]), // get_robust_list
    (275, &[to(1, Bytes, 8, ONE), to(3, Bytes, 8, ONE)]), // splice
    (278, &[from(1, Parts, 16, 2)]), // vmsplice
    (279, &[from(2, Bytes, 4096, ONE), from(3, Bytes, 4, ONE), to(4, Bytes, 4, ONE)]), // move_pages
    (280, &[from(1, Bytes, 4096, ONE), to(2, Bytes, 16, ONE)]), // utimensat
    (281, &[to(1, Bytes, 12, 2), from(4, Bytes, 8, ONE)]), // epoll_pwait
    (282, &[to(1, Bytes, 8, ONE)]), // signalfd
    (286, &[from(2, Bytes, 32, ONE), to(3, Bytes, 32, ONE)]), // timerfd_settime
    (287, &[to(1, Bytes, 32, ONE)]), // timerfd_gettime
    (288, &[to(1, Bytes, 128, ONE), to(2, Bytes, 4, ONE)]), // accept4
    (289, &[to(1, Bytes, 8, ONE)]), // signalfd4
    (293, &[to(0, Bytes, 4, ONE)]), // pipe2
    (295, &[from(1, Parts, 16, 2)]), // preadv
    (296, &[from(1, Parts, 16, 2)]), // pwritev
    (297, &[to(3, Bytes, 128, ONE)]), // rt_tgsigqueueinfo
    (298, &[to(0, Bytes, 136, ONE)]), // perf_event_open
    (299, &[to(1, Messages, 64, 2), to(4, Bytes, 16, ONE)]), // recvmmsg
    (301, &[from(4, Bytes, 4096, ONE)]), // fanotify_mark
    (302, &[from(2, Bytes, 16, ONE), to(3, Bytes, 16, ONE)]), // prlimit64
    (303, &[from(1, Bytes, 4096, ONE), to(2, Bytes, 8, ONE), to(3, Bytes, 4096, ONE)]), // name_to_handle_at
    (304, &[to(1, Bytes, 8, ONE)]), // open_by_handle_at
    (305, &[to(1, Bytes, 208, ONE)]), // clock_adjtime
    (307, &[to(1, Messages, 64, 2)]), // sendmmsg
    (309, &[to(0, Bytes, 4, ONE), to(1, Bytes, 4, ONE), to(2, Bytes, 128, ONE)]), // getcpu
    (310, &[from(1, Parts, 16, 2), from(3, Parts, 16, 4)]), // process_vm_readv
    (311, &[from(1, Parts, 16, 2), from(3, Parts, 16, 4)]), // process_vm_writev
    (314, &[to(1, Bytes, 56, ONE)]), // sched_setattr
    (315, &[to(1, Bytes, 56, ONE)]), // sched_getattr
    (316, &[from(1, Bytes, 4096, ONE), from(3, Bytes, 4096, ONE)]), // renameat2
    (317, &[to(2, Bytes, 4096, ONE)]), // seccomp
    (318, &[to(0, Bytes, 1, 1)]), // getrandom
    (319, &[from(0, Bytes, 4096, ONE)]), // memfd_create
    (321, &[to(1, Bytes, 168, ONE)]), // bpf
    (322, &[from(1, Bytes, 4096, ONE), from(2, Bytes, 4096, ONE), from(3, Bytes, 4096, ONE)]), // execveat
    (326, &[to(1, Bytes, 8, ONE), to(3, Bytes, 8, ONE)]), // copy_file_range
    (327, &[from(1, Parts, 16, 2)]), // preadv2
    (328, &[from(1, Parts, 16, 2)]), // pwritev2
    (332, &[from(1, Bytes, 4096, ONE), to(4, Bytes, 256, ONE)]), // statx
    (333, &[to(3, Bytes, 32, 2), to(4, Bytes, 16, ONE), from(5, Bytes, 16, ONE)]), // io_pgetevents
    (334, &[to(0, Bytes, 32, ONE)]), // rseq
    (424, &[to(2, Bytes, 128, ONE)]), // pidfd_send_signal
    (425, &[to(1, Bytes, 120, ONE)]), // io_uring_setup
    (426, &[from(4, Bytes, 4096, ONE)]), // io_uring_enter
    (427, &[to(2, Bytes, 4096, ONE)]), // io_uring_register
    (428, &[from(1, Bytes, 4096, ONE)]), // open_tree
    (429, &[from(1, Bytes, 4096, ONE), from(3, Bytes, 4096, ONE)]), // move_mount
    (430, &[from(0, Bytes, 4096, ONE)]), // fsopen
    (431, &[from(2, Bytes, 4096, ONE), from(3, Bytes, 4096, ONE)]), // fsconfig
    (433, &[from(1, Bytes, 4096, ONE)]), // fspick
    (435, &[to(0, Bytes, 88, ONE)]), // clone3
    (437, &[from(1, Bytes, 4096, ONE), to(2, Bytes, 24, ONE)]), // openat2
    (439, &[from(1, Bytes, 4096, ONE)]), // faccessat2
    (440, &[from(1, Bytes, 16, 2)]), // process_madvise
    (441, &[to(1, Bytes, 12, 2), from(3, Bytes, 16, 2), from(4, Bytes, 8, ONE)]), // epoll_pwait2
    (442, &[from(1, Bytes, 4096, ONE), to(3, Bytes, 32, ONE)]), // mount_setattr
    (443, &[to(3, Bytes, 4096, ONE)]), // quotactl_fd
    (449, &[to(0, Bytes, 24, 1), to(3, Bytes, 16, ONE)]), // futex_waitv
];
