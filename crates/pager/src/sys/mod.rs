//! The kernel without libc: raw system calls that touch neither `errno` nor thread-local storage,
//! so that they may run in signal handlers and on threads that libc does not know.

pub mod entry;
pub mod environment;
pub mod files;
pub mod line;
pub mod locks;
pub mod maps;
pub mod progress;
pub mod seccomp;
pub mod signals;
pub mod tasks;
pub mod thread;
pub mod uffd;
#[cfg(miri)]
mod under_miri;

#[cfg(not(miri))]
use core::arch::asm;
use core::ffi::CStr;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// The result of a system call: a value, or the negated `errno`.
pub type Answer = isize;

#[cfg(miri)]
pub use under_miri::call6;

/// Six arguments, straight to the kernel.
///
/// # Safety
/// As for the call itself: pointers must be valid for the kernel's use of them.
#[cfg(not(miri))]
#[inline(always)]
pub unsafe fn call6(
    number: i64,
    a: usize,
    b: usize,
    c: usize,
    d: usize,
    e: usize,
    f: usize,
) -> Answer {
    let answer: isize;
    // SAFETY: the x86-64 system call convention; rcx and r11 are clobbered by the instruction, to which
    // the call goes. The caller guarantees the arguments.
    unsafe {
        asm!(
            "call qword ptr [rip + {entry}]",
            entry = sym entry::ENTRY,
            inlateout("rax") number as isize => answer,
            in("rdi") a, in("rsi") b, in("rdx") c, in("r10") d, in("r8") e, in("r9") f,
            lateout("rcx") _, lateout("r11") _,
        );
    }
    answer
}

/// [`call6`] with three arguments.
///
/// # Safety
/// As for [`call6`].
#[inline(always)]
pub unsafe fn call3(number: i64, a: usize, b: usize, c: usize) -> Answer {
    // SAFETY: the caller guarantees the arguments.
    unsafe { call6(number, a, b, c, 0, 0, 0) }
}

/// The `errno` of a failed call.
#[must_use]
pub fn errno(answer: Answer) -> i32 {
    i32::try_from(-answer).unwrap_or(0)
}

/// Anonymous private memory that is never managed, zero at first, without a claim on swap.
#[must_use]
pub fn map(bytes: usize) -> Option<*mut u8> {
    map_with(bytes, libc::MAP_PRIVATE)
}

/// The same, shared with children of forks.
#[must_use]
pub fn map_shared(bytes: usize) -> Option<*mut u8> {
    map_with(bytes, libc::MAP_SHARED)
}

fn map_with(bytes: usize, sharing: i32) -> Option<*mut u8> {
    let flags = sharing | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a new mapping at an address of the kernel's choice touches nothing that exists.
    let answer = unsafe {
        call6(
            libc::SYS_mmap,
            0,
            bytes,
            protection as usize,
            flags as usize,
            usize::MAX,
            0,
        )
    };
    if answer < 0 && answer > -4096 {
        return None;
    }
    let place = answer as *mut u8;
    maps::note_own(place as u64, (place as u64).saturating_add(bytes as u64));
    // SAFETY: advice about the mapping made above; its failure harms nothing.
    unsafe {
        call3(
            libc::SYS_madvise,
            place as usize,
            bytes,
            libc::MADV_DONTDUMP as usize,
        );
        call3(
            libc::SYS_madvise,
            place as usize,
            bytes,
            libc::MADV_NOHUGEPAGE as usize,
        );
    }
    Some(place)
}

/// Unmaps memory of [`map`].
///
/// # Safety
/// The memory must no longer be in use.
pub unsafe fn unmap(place: *mut u8, bytes: usize) {
    maps::forget_own(place as u64);
    // SAFETY: the caller gives up the mapping.
    unsafe { call3(libc::SYS_munmap, place as usize, bytes, 0) };
}

/// `madvise` on `[start, end)`.
///
/// # Safety
/// The advice must be acceptable for the memory there.
pub unsafe fn advise(start: u64, end: u64, advice: i32) -> Answer {
    // SAFETY: the caller guarantees the range.
    unsafe {
        call3(
            libc::SYS_madvise,
            start as usize,
            (end - start) as usize,
            advice as usize,
        )
    }
}

/// Whether all of `[start, end)` is mapped.
#[must_use]
pub fn is_mapped(start: u64, end: u64) -> bool {
    let (bytes, flags) = ((end - start) as usize, libc::MS_ASYNC as usize);
    // SAFETY: looks for holes, and nothing else (mm/msync.c: MS_ASYNC does nothing since Linux 2.6.19).
    let answer = unsafe { call3(libc::SYS_msync, start as usize, bytes, flags) };
    answer != -(libc::ENOMEM as Answer)
}

/// Sleeps while `word` is `value`, at most `timeout_ns` (`None`: forever).
pub fn futex_wait(word: &AtomicU32, value: u32, timeout_ns: Option<u64>) {
    let limit = timeout_ns.map(|ns| libc::timespec {
        tv_sec: (ns / 1_000_000_000) as i64,
        tv_nsec: (ns % 1_000_000_000) as i64,
    });
    let limit = limit
        .as_ref()
        .map_or(core::ptr::null(), core::ptr::from_ref);
    let operation = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: `word` and `limit` live through the call.
    unsafe {
        call6(
            libc::SYS_futex,
            word.as_ptr() as usize,
            operation as usize,
            value as usize,
            limit as usize,
            0,
            0,
        );
    }
}

/// Wakes up to `count` threads that wait on `word`.
pub fn futex_wake(word: &AtomicU32, count: i32) {
    let operation = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: `word` is a live address.
    unsafe {
        call3(
            libc::SYS_futex,
            word.as_ptr() as usize,
            operation as usize,
            count as usize,
        );
    }
}

/// Moves a descriptor out of the way of the program, which may expect low numbers.
#[must_use]
pub fn high(fd: i32) -> i32 {
    if fd < 0 {
        return fd;
    }
    // SAFETY: plain arguments; the old descriptor is used by nothing else.
    unsafe {
        let mut limit = libc::rlimit {
            rlim_cur: 1024,
            rlim_max: 1024,
        };
        let (place, which) = (&raw mut limit as usize, libc::RLIMIT_NOFILE as usize);
        call6(libc::SYS_prlimit64, 0, which, 0, place, 0, 0);
        let from = limit.rlim_cur.clamp(64, 1 << 16) - 32;
        let moved = call3(
            libc::SYS_fcntl,
            fd as usize,
            libc::F_DUPFD_CLOEXEC as usize,
            from as usize,
        );
        if moved < 0 {
            return fd;
        }
        call3(libc::SYS_close, fd as usize, 0, 0);
        moved as i32
    }
}

/// Opens `path` with close-on-exec. Returns the descriptor, or the negated `errno`.
pub fn open(path: &CStr, flags: i32) -> Answer {
    open_at(libc::AT_FDCWD, path, flags)
}

/// The same below `folder`. A file that this creates is accessible only to its owner.
pub fn open_at(folder: i32, path: &CStr, flags: i32) -> Answer {
    let (folder, path) = (folder as usize, path.as_ptr() as usize);
    let flags = (flags | libc::O_CLOEXEC) as usize;
    // SAFETY: the path ends with a zero and lives through the call, which only reads it.
    unsafe { call6(libc::SYS_openat, folder, path, flags, 0o600, 0, 0) }
}

/// Whether this process may open no more files.
#[must_use]
pub fn has_no_descriptor() -> bool {
    let answer = open(c"/", libc::O_PATH);
    close(answer as i32);
    answer == -(libc::EMFILE as Answer)
}

/// Closes a descriptor of the pager; does nothing if it is negative.
pub fn close(fd: i32) {
    if fd >= 0 {
        // SAFETY: nothing else uses the descriptor.
        unsafe { call3(libc::SYS_close, fd as usize, 0, 0) };
    }
}

/// Allocates the blocks for `bytes` bytes of `file` from `start` on. Returns whether that
/// succeeded.
pub fn allocate(file: i32, start: u64, bytes: u64) -> bool {
    let (start, bytes) = (start as usize, bytes as usize);
    // SAFETY: plain arguments.
    let answer = unsafe { call6(libc::SYS_fallocate, file as usize, 0, start, bytes, 0, 0) };
    answer == 0
}

/// Largest file that this process may write; `None` if there is no limit.
#[must_use]
pub fn largest_file() -> Option<u64> {
    let mut limit = libc::rlimit {
        rlim_cur: libc::RLIM_INFINITY,
        rlim_max: libc::RLIM_INFINITY,
    };
    // SAFETY: the structure lives through the call, which only reads the limit.
    unsafe {
        let (place, limited) = (&raw mut limit as usize, libc::RLIMIT_FSIZE as usize);
        call6(libc::SYS_prlimit64, 0, limited, 0, place, 0, 0);
    }
    (limit.rlim_cur != libc::RLIM_INFINITY).then_some(limit.rlim_cur)
}

/// Whether `file` is a regular file rather than a device.
#[must_use]
pub fn is_regular(file: i32) -> bool {
    // SAFETY: zeros are a valid `stat`, which lives through the call.
    unsafe {
        let mut status: libc::stat = core::mem::zeroed();
        let answer = call3(libc::SYS_fstat, file as usize, &raw mut status as usize, 0);
        answer == 0 && status.st_mode & libc::S_IFMT == libc::S_IFREG
    }
}

/// Whether `file` is in a file system that keeps its files in memory.
#[must_use]
pub fn is_in_memory(file: i32) -> bool {
    // SAFETY: zeros are a valid `statfs`, which lives through the call.
    unsafe {
        let mut system: libc::statfs = core::mem::zeroed();
        let place = (&raw mut system) as usize;
        call3(libc::SYS_fstatfs, file as usize, place, 0) == 0 && keeps_in_memory(&system)
    }
}

/// Whether the file system keeps its files in memory.
fn keeps_in_memory(system: &libc::statfs) -> bool {
    /// `RAMFS_MAGIC` (include/uapi/linux/magic.h).
    const RAMFS_MAGIC: i128 = 0x8584_58f6;
    let kinds = [
        i128::from(libc::TMPFS_MAGIC),
        i128::from(libc::HUGETLBFS_MAGIC),
        RAMFS_MAGIC,
    ];
    // The C libraries disagree on the sign of all of these.
    kinds.contains(&i128::from(system.f_type))
}

/// Whether the vDSO makes a call for the time, which would be reported ([`entry`]).
static CLOCK_CALLS: AtomicBool = AtomicBool::new(false);

/// The vDSO was seen to make a call for the time.
pub fn clock_needs_call() {
    CLOCK_CALLS.store(true, Ordering::Relaxed);
}

/// Monotonic time in nanoseconds. libc uses the vDSO where it can, or a system call.
#[must_use]
pub fn now_ns() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    if CLOCK_CALLS.load(Ordering::Relaxed) {
        let (clock, place) = (libc::CLOCK_MONOTONIC as usize, &raw mut time as usize);
        // SAFETY: the structure lives through the call.
        unsafe { call3(libc::SYS_clock_gettime, clock, place, 0) };
        return (time.tv_sec as u64) * 1_000_000_000 + time.tv_nsec as u64;
    }
    // SAFETY: libc's clock_gettime goes to the vDSO, takes no lock and sets errno only on failure,
    // which a valid clock excludes.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    (time.tv_sec as u64) * 1_000_000_000 + time.tv_nsec as u64
}

/// Number of CPUs on which this process may run.
#[must_use]
pub fn processors() -> u32 {
    let mut mask = [0_u64; 128];
    // SAFETY: the mask lives through the call.
    let answer = unsafe {
        let bytes = size_of_val(&mask);
        call3(
            libc::SYS_sched_getaffinity,
            0,
            bytes,
            mask.as_mut_ptr() as usize,
        )
    };
    let message = usize::try_from(answer).unwrap_or(0) / size_of::<u64>();
    mask[..message]
        .iter()
        .map(|word| word.count_ones())
        .sum::<u32>()
        .max(1)
}

/// Minor faults of all threads of this process so far, since its fork.
#[must_use]
pub fn minor_faults() -> u64 {
    // SAFETY: zeros are a valid `rusage`, which lives through the call.
    let usage = unsafe {
        let mut usage: libc::rusage = core::mem::zeroed();
        let place = &raw mut usage as usize;
        call3(libc::SYS_getrusage, libc::RUSAGE_SELF as usize, place, 0);
        usage
    };
    u64::try_from(usage.ru_minflt).unwrap_or(0)
}

/// The id of this process.
#[must_use]
pub fn process_id() -> u32 {
    // SAFETY: takes no arguments.
    unsafe { call3(libc::SYS_getpid, 0, 0, 0) as u32 }
}

/// Whether the process is alive, as far as this one can see.
#[must_use]
pub fn lives(process: u32) -> bool {
    // SAFETY: signal 0 is not delivered.
    let answer = unsafe { call3(libc::SYS_kill, process as usize, 0, 0) };
    answer != -(libc::ESRCH as isize)
}

/// The id of this thread.
#[must_use]
pub fn thread_id() -> u32 {
    // SAFETY: takes no arguments.
    unsafe { call3(libc::SYS_gettid, 0, 0, 0) as u32 }
}

/// Lets other threads run first.
pub fn give_way() {
    // SAFETY: takes no arguments.
    unsafe { call3(libc::SYS_sched_yield, 0, 0, 0) };
}

/// Ends the process without libc.
pub fn end(status: usize) -> ! {
    loop {
        // SAFETY: ends the process.
        unsafe { call3(libc::SYS_exit_group, status, 0, 0) };
    }
}

/// Writes `text` to standard error, as far as possible.
pub fn complain(text: &[u8]) {
    // SAFETY: the buffer lives through the call.
    unsafe { call3(libc::SYS_write, 2, text.as_ptr() as usize, text.len()) };
}
