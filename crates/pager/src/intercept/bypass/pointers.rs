//! Which arguments of which system call are pointers, and to how much. Written by `crates/pager/pointers`
//! from the types of a kernel, Linux 6.18.44: 340 calls.

use super::pointer::Kind::{Bytes, Message, Messages, Parts};
use super::pointer::{ONE, Pointer, from, to};

/// Calls without any pointer among their arguments, by number.
pub(super) const WITHOUT: &[u16] = &[
    3,   // close
    8,   // lseek
    10,  // mprotect
    12,  // brk
    15,  // rt_sigreturn
    24,  // sched_yield
    26,  // msync
    28,  // madvise
    29,  // shmget
    32,  // dup
    33,  // dup2
    34,  // pause
    37,  // alarm
    39,  // getpid
    41,  // socket
    48,  // shutdown
    50,  // listen
    57,  // fork
    58,  // vfork
    60,  // exit
    62,  // kill
    64,  // semget
    68,  // msgget
    73,  // flock
    74,  // fsync
    75,  // fdatasync
    77,  // ftruncate
    81,  // fchdir
    91,  // fchmod
    93,  // fchown
    95,  // umask
    102, // getuid
    104, // getgid
    105, // setuid
    106, // setgid
    107, // geteuid
    108, // getegid
    109, // setpgid
    110, // getppid
    111, // getpgrp
    112, // setsid
    113, // setreuid
    114, // setregid
    117, // setresuid
    119, // setresgid
    121, // getpgid
    122, // setfsuid
    123, // setfsgid
    124, // getsid
    135, // personality
    140, // getpriority
    141, // setpriority
    145, // sched_getscheduler
    146, // sched_get_priority_max
    147, // sched_get_priority_min
    149, // mlock
    150, // munlock
    151, // mlockall
    152, // munlockall
    153, // vhangup
    162, // sync
    172, // iopl
    173, // ioperm
    186, // gettid
    187, // readahead
    200, // tkill
    207, // io_destroy
    213, // epoll_create
    216, // remap_file_pages
    219, // restart_syscall
    221, // fadvise64
    225, // timer_getoverrun
    226, // timer_delete
    231, // exit_group
    234, // tgkill
    251, // ioprio_set
    252, // ioprio_get
    253, // inotify_init
    255, // inotify_rm_watch
    272, // unshare
    276, // tee
    277, // sync_file_range
    283, // timerfd_create
    284, // eventfd
    285, // fallocate
    290, // eventfd2
    291, // epoll_create1
    292, // dup3
    294, // inotify_init1
    300, // fanotify_init
    306, // syncfs
    308, // setns
    312, // kcmp
    323, // userfaultfd
    324, // membarrier
    325, // mlock2
    329, // pkey_mprotect
    330, // pkey_alloc
    331, // pkey_free
    432, // fsmount
    434, // pidfd_open
    436, // close_range
    438, // pidfd_getfd
    444, // landlock_create_ruleset
    445, // landlock_add_rule
    446, // landlock_restrict_self
    447, // memfd_secret
    448, // process_mrelease
    450, // set_mempolicy_home_node
];

/// The others, by number. An argument of the kernel's type `unsigned long` may be a pointer as well.
pub(super) const WITH: &[(u16, &[Pointer])] = &[
    // read
    (0, &[to(1, Bytes, 1, 2)]),
    // write
    (1, &[from(1, Bytes, 1, 2)]),
    // open
    (2, &[from(0, Bytes, 4096, ONE)]),
    // newstat
    (4, &[from(0, Bytes, 4096, ONE), to(1, Bytes, 144, ONE)]),
    // newfstat
    (5, &[to(1, Bytes, 144, ONE)]),
    // newlstat
    (6, &[from(0, Bytes, 4096, ONE), to(1, Bytes, 144, ONE)]),
    // poll
    (7, &[to(0, Bytes, 8, 1)]),
    // mmap
    (9, &[]),
    // munmap
    (11, &[]),
    // rt_sigaction
    (13, &[from(1, Bytes, 32, ONE), to(2, Bytes, 32, ONE)]),
    // rt_sigprocmask
    (14, &[to(1, Bytes, 8, ONE), to(2, Bytes, 8, ONE)]),
    // ioctl
    (16, &[]),
    // pread64
    (17, &[to(1, Bytes, 1, 2)]),
    // pwrite64
    (18, &[from(1, Bytes, 1, 2)]),
    // readv
    (19, &[from(1, Parts, 16, 2)]),
    // writev
    (20, &[from(1, Parts, 16, 2)]),
    // access
    (21, &[from(0, Bytes, 4096, ONE)]),
    // pipe
    (22, &[to(0, Bytes, 4, ONE)]),
    // select
    (
        23,
        &[
            to(1, Bytes, 128, ONE),
            to(2, Bytes, 128, ONE),
            to(3, Bytes, 128, ONE),
            to(4, Bytes, 16, ONE),
        ],
    ),
    // mremap
    (25, &[]),
    // mincore
    (27, &[to(2, Bytes, 4096, ONE)]),
    // shmat
    (30, &[to(1, Bytes, 4096, ONE)]),
    // shmctl
    (31, &[to(2, Bytes, 88, ONE)]),
    // nanosleep
    (35, &[to(0, Bytes, 16, ONE), to(1, Bytes, 16, ONE)]),
    // getitimer
    (36, &[to(1, Bytes, 32, ONE)]),
    // setitimer
    (38, &[to(1, Bytes, 32, ONE), to(2, Bytes, 32, ONE)]),
    // sendfile64
    (40, &[to(2, Bytes, 8, 3)]),
    // connect
    (42, &[to(1, Bytes, 128, ONE)]),
    // accept
    (43, &[to(1, Bytes, 128, ONE), to(2, Bytes, 4, ONE)]),
    // sendto
    (44, &[to(1, Bytes, 1, 2), to(4, Bytes, 128, ONE)]),
    // recvfrom
    (
        45,
        &[
            to(1, Bytes, 1, 2),
            to(4, Bytes, 128, ONE),
            to(5, Bytes, 4, ONE),
        ],
    ),
    // sendmsg
    (46, &[to(1, Message, 56, ONE)]),
    // recvmsg
    (47, &[to(1, Message, 56, ONE)]),
    // bind
    (49, &[to(1, Bytes, 128, ONE)]),
    // getsockname
    (51, &[to(1, Bytes, 128, ONE), to(2, Bytes, 4, ONE)]),
    // getpeername
    (52, &[to(1, Bytes, 128, ONE), to(2, Bytes, 4, ONE)]),
    // socketpair
    (53, &[to(3, Bytes, 4, ONE)]),
    // setsockopt
    (54, &[to(3, Bytes, 1, 4)]),
    // getsockopt
    (55, &[to(3, Bytes, 4096, ONE), to(4, Bytes, 4, ONE)]),
    // clone
    (56, &[to(2, Bytes, 4, ONE), to(3, Bytes, 4, ONE)]),
    // execve
    (
        59,
        &[
            from(0, Bytes, 4096, ONE),
            from(1, Bytes, 4096, ONE),
            from(2, Bytes, 4096, ONE),
        ],
    ),
    // wait4
    (61, &[to(1, Bytes, 4, ONE), to(3, Bytes, 144, ONE)]),
    // newuname
    (63, &[to(0, Bytes, 390, ONE)]),
    // semop
    (65, &[to(1, Bytes, 6, 2)]),
    // semctl
    (66, &[]),
    // shmdt
    (67, &[to(0, Bytes, 4096, ONE)]),
    // msgsnd
    (69, &[to(1, Bytes, 1, 2)]),
    // msgrcv
    (70, &[to(1, Bytes, 1, 2)]),
    // msgctl
    (71, &[to(2, Bytes, 104, ONE)]),
    // fcntl
    (72, &[]),
    // truncate
    (76, &[from(0, Bytes, 1, 1)]),
    // getdents
    (78, &[to(1, Bytes, 1, 2)]),
    // getcwd
    (79, &[to(0, Bytes, 1, 1)]),
    // chdir
    (80, &[from(0, Bytes, 4096, ONE)]),
    // rename
    (82, &[from(0, Bytes, 4096, ONE), from(1, Bytes, 4096, ONE)]),
    // mkdir
    (83, &[from(0, Bytes, 4096, ONE)]),
    // rmdir
    (84, &[from(0, Bytes, 4096, ONE)]),
    // creat
    (85, &[from(0, Bytes, 4096, ONE)]),
    // link
    (86, &[from(0, Bytes, 4096, ONE), from(1, Bytes, 4096, ONE)]),
    // unlink
    (87, &[from(0, Bytes, 4096, ONE)]),
    // symlink
    (88, &[from(0, Bytes, 4096, ONE), from(1, Bytes, 4096, ONE)]),
    // readlink
    (89, &[from(0, Bytes, 4096, ONE), to(1, Bytes, 1, 2)]),
    // chmod
    (90, &[from(0, Bytes, 4096, ONE)]),
    // chown
    (92, &[from(0, Bytes, 4096, ONE)]),
    // lchown
    (94, &[from(0, Bytes, 4096, ONE)]),
    // gettimeofday
    (96, &[to(0, Bytes, 16, ONE), to(1, Bytes, 8, ONE)]),
    // getrlimit
    (97, &[to(1, Bytes, 16, ONE)]),
    // getrusage
    (98, &[to(1, Bytes, 144, ONE)]),
    // sysinfo
    (99, &[to(0, Bytes, 112, ONE)]),
    // times
    (100, &[to(0, Bytes, 32, ONE)]),
    // ptrace
    (101, &[]),
    // syslog
    (103, &[to(1, Bytes, 1, 2)]),
    // getgroups
    (115, &[to(1, Bytes, 4, 0)]),
    // setgroups
    (116, &[to(1, Bytes, 4, 0)]),
    // getresuid
    (
        118,
        &[
            to(0, Bytes, 4, ONE),
            to(1, Bytes, 4, ONE),
            to(2, Bytes, 4, ONE),
        ],
    ),
    // getresgid
    (
        120,
        &[
            to(0, Bytes, 4, ONE),
            to(1, Bytes, 4, ONE),
            to(2, Bytes, 4, ONE),
        ],
    ),
    // capget
    (125, &[to(0, Bytes, 8, ONE), to(1, Bytes, 24, ONE)]),
    // capset
    (126, &[to(0, Bytes, 8, ONE)]),
    // rt_sigpending
    (127, &[to(0, Bytes, 8, ONE)]),
    // rt_sigtimedwait
    (
        128,
        &[
            from(0, Bytes, 8, ONE),
            to(1, Bytes, 128, ONE),
            from(2, Bytes, 16, ONE),
        ],
    ),
    // rt_sigqueueinfo
    (129, &[to(2, Bytes, 128, ONE)]),
    // rt_sigsuspend
    (130, &[to(0, Bytes, 8, ONE)]),
    // sigaltstack
    (131, &[from(0, Bytes, 24, ONE), to(1, Bytes, 24, ONE)]),
    // utime
    (132, &[to(0, Bytes, 4096, ONE), to(1, Bytes, 16, ONE)]),
    // mknod
    (133, &[from(0, Bytes, 4096, ONE)]),
    // ustat
    (136, &[to(1, Bytes, 32, ONE)]),
    // statfs
    (137, &[from(0, Bytes, 4096, ONE), to(1, Bytes, 120, ONE)]),
    // fstatfs
    (138, &[to(1, Bytes, 120, ONE)]),
    // sysfs
    (139, &[]),
    // sched_setparam
    (142, &[to(1, Bytes, 4, ONE)]),
    // sched_getparam
    (143, &[to(1, Bytes, 4, ONE)]),
    // sched_setscheduler
    (144, &[to(2, Bytes, 4, ONE)]),
    // sched_rr_get_interval
    (148, &[to(1, Bytes, 16, ONE)]),
    // modify_ldt
    (154, &[to(1, Bytes, 4096, ONE)]),
    // pivot_root
    (155, &[from(0, Bytes, 4096, ONE), from(1, Bytes, 4096, ONE)]),
    // prctl
    (157, &[]),
    // arch_prctl
    (158, &[]),
    // adjtimex
    (159, &[to(0, Bytes, 208, ONE)]),
    // setrlimit
    (160, &[to(1, Bytes, 16, ONE)]),
    // chroot
    (161, &[from(0, Bytes, 4096, ONE)]),
    // acct
    (163, &[from(0, Bytes, 4096, ONE)]),
    // settimeofday
    (164, &[to(0, Bytes, 16, ONE), to(1, Bytes, 8, ONE)]),
    // mount
    (
        165,
        &[
            to(0, Bytes, 4096, ONE),
            to(1, Bytes, 4096, ONE),
            to(2, Bytes, 4096, ONE),
            to(4, Bytes, 4096, ONE),
        ],
    ),
    // umount
    (166, &[to(0, Bytes, 4096, ONE)]),
    // swapon
    (167, &[from(0, Bytes, 4096, ONE)]),
    // swapoff
    (168, &[from(0, Bytes, 4096, ONE)]),
    // reboot
    (169, &[to(3, Bytes, 4096, ONE)]),
    // sethostname
    (170, &[to(0, Bytes, 1, 1)]),
    // setdomainname
    (171, &[to(0, Bytes, 1, 1)]),
    // quotactl
    (179, &[from(1, Bytes, 4096, ONE), to(3, Bytes, 4096, ONE)]),
    // setxattr
    (
        188,
        &[
            from(0, Bytes, 4096, ONE),
            from(1, Bytes, 4096, ONE),
            from(2, Bytes, 1, 3),
        ],
    ),
    // lsetxattr
    (
        189,
        &[
            from(0, Bytes, 4096, ONE),
            from(1, Bytes, 4096, ONE),
            from(2, Bytes, 1, 3),
        ],
    ),
    // fsetxattr
    (190, &[from(1, Bytes, 4096, ONE), from(2, Bytes, 1, 3)]),
    // getxattr
    (
        191,
        &[
            from(0, Bytes, 4096, ONE),
            from(1, Bytes, 4096, ONE),
            to(2, Bytes, 1, 3),
        ],
    ),
    // lgetxattr
    (
        192,
        &[
            from(0, Bytes, 4096, ONE),
            from(1, Bytes, 4096, ONE),
            to(2, Bytes, 1, 3),
        ],
    ),
    // fgetxattr
    (193, &[from(1, Bytes, 4096, ONE), to(2, Bytes, 1, 3)]),
    // listxattr
    (194, &[from(0, Bytes, 4096, ONE), to(1, Bytes, 1, 2)]),
    // llistxattr
    (195, &[from(0, Bytes, 4096, ONE), to(1, Bytes, 1, 2)]),
    // flistxattr
    (196, &[to(1, Bytes, 1, 2)]),
    // removexattr
    (197, &[from(0, Bytes, 4096, ONE), from(1, Bytes, 4096, ONE)]),
    // lremovexattr
    (198, &[from(0, Bytes, 4096, ONE), from(1, Bytes, 4096, ONE)]),
    // fremovexattr
    (199, &[from(1, Bytes, 4096, ONE)]),
    // time
    (201, &[to(0, Bytes, 8, ONE)]),
    // futex
    (
        202,
        &[
            to(0, Bytes, 4, ONE),
            from(3, Bytes, 16, ONE),
            to(4, Bytes, 4, ONE),
        ],
    ),
    // sched_setaffinity
    (203, &[to(2, Bytes, 1, 1)]),
    // sched_getaffinity
    (204, &[to(2, Bytes, 1, 1)]),
    // io_setup
    (206, &[to(1, Bytes, 8, 0)]),
    // io_getevents
    (208, &[to(3, Bytes, 32, 2), to(4, Bytes, 16, ONE)]),
    // io_submit
    (209, &[to(2, Bytes, 64, 1)]),
    // io_cancel
    (210, &[to(1, Bytes, 64, ONE), to(2, Bytes, 32, ONE)]),
    // getdents64
    (217, &[to(1, Bytes, 1, 2)]),
    // set_tid_address
    (218, &[to(0, Bytes, 4, ONE)]),
    // semtimedop
    (220, &[to(1, Bytes, 6, 2), from(3, Bytes, 16, 2)]),
    // timer_create
    (222, &[to(1, Bytes, 64, ONE), to(2, Bytes, 4, ONE)]),
    // timer_settime
    (223, &[from(2, Bytes, 32, ONE), to(3, Bytes, 32, ONE)]),
    // timer_gettime
    (224, &[to(1, Bytes, 32, ONE)]),
    // clock_settime
    (227, &[from(1, Bytes, 16, ONE)]),
    // clock_gettime
    (228, &[to(1, Bytes, 16, ONE)]),
    // clock_getres
    (229, &[to(1, Bytes, 16, ONE)]),
    // clock_nanosleep
    (230, &[from(2, Bytes, 16, ONE), to(3, Bytes, 16, ONE)]),
    // epoll_wait
    (232, &[to(1, Bytes, 12, 2)]),
    // epoll_ctl
    (233, &[to(3, Bytes, 12, ONE)]),
    // utimes
    (235, &[to(0, Bytes, 4096, ONE), to(1, Bytes, 16, ONE)]),
    // mbind
    (237, &[from(3, Bytes, 1, 4)]),
    // set_mempolicy
    (238, &[from(1, Bytes, 1, 2)]),
    // get_mempolicy
    (239, &[to(0, Bytes, 1, 2), to(1, Bytes, 1, 2)]),
    // mq_open
    (240, &[from(0, Bytes, 4096, ONE), to(3, Bytes, 64, ONE)]),
    // mq_unlink
    (241, &[from(0, Bytes, 4096, ONE)]),
    // mq_timedsend
    (242, &[from(1, Bytes, 1, 2), from(4, Bytes, 16, ONE)]),
    // mq_timedreceive
    (
        243,
        &[
            to(1, Bytes, 1, 2),
            to(3, Bytes, 4, ONE),
            from(4, Bytes, 16, ONE),
        ],
    ),
    // mq_notify
    (244, &[from(1, Bytes, 64, ONE)]),
    // mq_getsetattr
    (245, &[from(1, Bytes, 64, ONE), to(2, Bytes, 64, ONE)]),
    // waitid
    (247, &[to(2, Bytes, 128, ONE), to(4, Bytes, 144, ONE)]),
    // add_key
    (
        248,
        &[
            from(0, Bytes, 4096, ONE),
            from(1, Bytes, 4096, ONE),
            from(2, Bytes, 1, 3),
        ],
    ),
    // request_key
    (
        249,
        &[
            from(0, Bytes, 4096, ONE),
            from(1, Bytes, 4096, ONE),
            from(2, Bytes, 4096, ONE),
        ],
    ),
    // keyctl
    (250, &[]),
    // inotify_add_watch
    (254, &[from(1, Bytes, 4096, ONE)]),
    // migrate_pages
    (256, &[from(2, Bytes, 1, 1), from(3, Bytes, 8, ONE)]),
    // openat
    (257, &[from(1, Bytes, 4096, ONE)]),
    // mkdirat
    (258, &[from(1, Bytes, 4096, ONE)]),
    // mknodat
    (259, &[from(1, Bytes, 4096, ONE)]),
    // fchownat
    (260, &[from(1, Bytes, 4096, ONE)]),
    // futimesat
    (261, &[from(1, Bytes, 4096, ONE), to(2, Bytes, 16, ONE)]),
    // newfstatat
    (262, &[from(1, Bytes, 4096, ONE), to(2, Bytes, 144, ONE)]),
    // unlinkat
    (263, &[from(1, Bytes, 4096, ONE)]),
    // renameat
    (264, &[from(1, Bytes, 4096, ONE), from(3, Bytes, 4096, ONE)]),
    // linkat
    (265, &[from(1, Bytes, 4096, ONE), from(3, Bytes, 4096, ONE)]),
    // symlinkat
    (266, &[from(0, Bytes, 4096, ONE), from(2, Bytes, 4096, ONE)]),
    // readlinkat
    (267, &[from(1, Bytes, 4096, ONE), to(2, Bytes, 1, 3)]),
    // fchmodat
    (268, &[from(1, Bytes, 4096, ONE)]),
    // faccessat
    (269, &[from(1, Bytes, 4096, ONE)]),
    // pselect6
    (
        270,
        &[
            to(1, Bytes, 128, ONE),
            to(2, Bytes, 128, ONE),
            to(3, Bytes, 128, ONE),
            to(4, Bytes, 16, ONE),
            to(5, Bytes, 4096, ONE),
        ],
    ),
    // ppoll
    (
        271,
        &[
            to(0, Bytes, 8, 1),
            to(2, Bytes, 16, 1),
            from(3, Bytes, 8, ONE),
        ],
    ),
    // set_robust_list
    (273, &[to(0, Bytes, 24, ONE)]),
    // get_robust_list
    (274, &[to(1, Bytes, 24, ONE), to(2, Bytes, 8, ONE)]),
    // splice
    (275, &[to(1, Bytes, 8, ONE), to(3, Bytes, 8, ONE)]),
    // vmsplice
    (278, &[from(1, Parts, 16, 2)]),
    // move_pages
    (
        279,
        &[
            from(2, Bytes, 4096, ONE),
            from(3, Bytes, 4, ONE),
            to(4, Bytes, 4, ONE),
        ],
    ),
    // utimensat
    (280, &[from(1, Bytes, 4096, ONE), to(2, Bytes, 16, ONE)]),
    // epoll_pwait
    (281, &[to(1, Bytes, 12, 2), from(4, Bytes, 8, ONE)]),
    // signalfd
    (282, &[to(1, Bytes, 8, ONE)]),
    // timerfd_settime
    (286, &[from(2, Bytes, 32, ONE), to(3, Bytes, 32, ONE)]),
    // timerfd_gettime
    (287, &[to(1, Bytes, 32, ONE)]),
    // accept4
    (288, &[to(1, Bytes, 128, ONE), to(2, Bytes, 4, ONE)]),
    // signalfd4
    (289, &[to(1, Bytes, 8, ONE)]),
    // pipe2
    (293, &[to(0, Bytes, 4, ONE)]),
    // preadv
    (295, &[from(1, Parts, 16, 2)]),
    // pwritev
    (296, &[from(1, Parts, 16, 2)]),
    // rt_tgsigqueueinfo
    (297, &[to(3, Bytes, 128, ONE)]),
    // perf_event_open
    (298, &[to(0, Bytes, 136, ONE)]),
    // recvmmsg
    (299, &[to(1, Messages, 64, 2), to(4, Bytes, 16, ONE)]),
    // fanotify_mark
    (301, &[from(4, Bytes, 4096, ONE)]),
    // prlimit64
    (302, &[from(2, Bytes, 16, ONE), to(3, Bytes, 16, ONE)]),
    // name_to_handle_at
    (
        303,
        &[
            from(1, Bytes, 4096, ONE),
            to(2, Bytes, 8, ONE),
            to(3, Bytes, 4096, ONE),
        ],
    ),
    // open_by_handle_at
    (304, &[to(1, Bytes, 8, ONE)]),
    // clock_adjtime
    (305, &[to(1, Bytes, 208, ONE)]),
    // sendmmsg
    (307, &[to(1, Messages, 64, 2)]),
    // getcpu
    (
        309,
        &[
            to(0, Bytes, 4, ONE),
            to(1, Bytes, 4, ONE),
            to(2, Bytes, 128, ONE),
        ],
    ),
    // process_vm_readv
    (310, &[from(1, Parts, 16, 2), from(3, Parts, 16, 4)]),
    // process_vm_writev
    (311, &[from(1, Parts, 16, 2), from(3, Parts, 16, 4)]),
    // sched_setattr
    (314, &[to(1, Bytes, 56, ONE)]),
    // sched_getattr
    (315, &[to(1, Bytes, 56, ONE)]),
    // renameat2
    (316, &[from(1, Bytes, 4096, ONE), from(3, Bytes, 4096, ONE)]),
    // seccomp
    (317, &[to(2, Bytes, 4096, ONE)]),
    // getrandom
    (318, &[to(0, Bytes, 1, 1)]),
    // memfd_create
    (319, &[from(0, Bytes, 4096, ONE)]),
    // bpf
    (321, &[to(1, Bytes, 168, ONE)]),
    // execveat
    (
        322,
        &[
            from(1, Bytes, 4096, ONE),
            from(2, Bytes, 4096, ONE),
            from(3, Bytes, 4096, ONE),
        ],
    ),
    // copy_file_range
    (326, &[to(1, Bytes, 8, ONE), to(3, Bytes, 8, ONE)]),
    // preadv2
    (327, &[from(1, Parts, 16, 2)]),
    // pwritev2
    (328, &[from(1, Parts, 16, 2)]),
    // statx
    (332, &[from(1, Bytes, 4096, ONE), to(4, Bytes, 256, ONE)]),
    // io_pgetevents
    (
        333,
        &[
            to(3, Bytes, 32, 2),
            to(4, Bytes, 16, ONE),
            from(5, Bytes, 16, ONE),
        ],
    ),
    // rseq
    (334, &[to(0, Bytes, 32, ONE)]),
    // pidfd_send_signal
    (424, &[to(2, Bytes, 128, ONE)]),
    // io_uring_setup
    (425, &[to(1, Bytes, 120, ONE)]),
    // io_uring_enter
    (426, &[from(4, Bytes, 4096, ONE)]),
    // io_uring_register
    (427, &[to(2, Bytes, 4096, ONE)]),
    // open_tree
    (428, &[from(1, Bytes, 4096, ONE)]),
    // move_mount
    (429, &[from(1, Bytes, 4096, ONE), from(3, Bytes, 4096, ONE)]),
    // fsopen
    (430, &[from(0, Bytes, 4096, ONE)]),
    // fsconfig
    (431, &[from(2, Bytes, 4096, ONE), from(3, Bytes, 4096, ONE)]),
    // fspick
    (433, &[from(1, Bytes, 4096, ONE)]),
    // clone3
    (435, &[to(0, Bytes, 88, ONE)]),
    // openat2
    (437, &[from(1, Bytes, 4096, ONE), to(2, Bytes, 24, ONE)]),
    // faccessat2
    (439, &[from(1, Bytes, 4096, ONE)]),
    // process_madvise
    (440, &[from(1, Bytes, 16, 2)]),
    // epoll_pwait2
    (
        441,
        &[
            to(1, Bytes, 12, 2),
            from(3, Bytes, 16, 2),
            from(4, Bytes, 8, ONE),
        ],
    ),
    // mount_setattr
    (442, &[from(1, Bytes, 4096, ONE), to(3, Bytes, 32, ONE)]),
    // quotactl_fd
    (443, &[to(3, Bytes, 4096, ONE)]),
    // futex_waitv
    (449, &[to(0, Bytes, 24, 1), to(3, Bytes, 16, ONE)]),
];
