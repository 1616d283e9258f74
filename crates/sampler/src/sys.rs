//! The kernel without libc, whose functions set `errno`, may be the program's own, or wait for a lock.

use core::arch::asm;
use core::ffi::{CStr, c_void};

/// A call with up to six arguments: the kernel's answer, negative for an error.
///
/// # Safety
/// As the call requires.
unsafe fn call(number: i64, arguments: [usize; 6]) -> isize {
    let answer;
    let [a, b, c, d, e, f] = arguments;
    // SAFETY: the kernel's calling convention; the caller answers for the call itself.
    unsafe {
        asm!("syscall", inlateout("rax") number as isize => answer, in("rdi") a, in("rsi") b, in("rdx") c,
             in("r10") d, in("r8") e, in("r9") f, lateout("rcx") _, lateout("r11") _, options(nostack));
    }
    answer
}

/// Whether the eight bytes at this address can be read.
pub fn is_readable(address: u64) -> bool {
    const NO_SUCH_WAY: usize = usize::MAX;
    // SAFETY: rt_sigprocmask(2) reads the set first, and refuses then because there is no such way to
    // apply it: nothing changes. No filter of system calls forbids it.
    let answer = unsafe {
        call(
            libc::SYS_rt_sigprocmask,
            [NO_SUCH_WAY, address as usize, 0, 8, 0, 0],
        )
    };
    answer == -(libc::EINVAL as isize)
}

/// This process.
pub fn process() -> u32 {
    // SAFETY: no arguments.
    unsafe { call(libc::SYS_getpid, [0; 6]) as u32 }
}

/// Lets other threads run.
pub fn give_way() {
    // SAFETY: no arguments.
    unsafe { call(libc::SYS_sched_yield, [0; 6]) };
}

/// Random bits, also without the kernel's.
pub fn random() -> u64 {
    let mut bits = 0_u64;
    let at = (&raw mut bits) as usize;
    // SAFETY: eight bytes of ours.
    let answer = unsafe {
        call(
            libc::SYS_getrandom,
            [at, 8, libc::GRND_NONBLOCK as usize, 0, 0, 0],
        )
    };
    match answer {
        8 => bits,
        // Early at boot, or forbidden: the address of this thread's stack and the time.
        _ => at as u64 ^ now().rotate_left(32),
    }
}

/// `CLOCK_MONOTONIC` in nanoseconds.
pub fn now() -> u64 {
    let mut time = [0_u64; 2];
    let at = (&raw mut time) as usize;
    // SAFETY: a timespec of ours.
    unsafe {
        call(
            libc::SYS_clock_gettime,
            [libc::CLOCK_MONOTONIC as usize, at, 0, 0, 0, 0],
        )
    };
    time[0] * 1_000_000_000 + time[1]
}

/// Opens a file for reading and writing.
pub fn open(path: &CStr) -> Option<i32> {
    let flags = (libc::O_RDWR | libc::O_CLOEXEC) as usize;
    // SAFETY: a path that ends with NUL.
    let answer = unsafe {
        call(
            libc::SYS_openat,
            [
                libc::AT_FDCWD as usize,
                path.as_ptr() as usize,
                flags,
                0,
                0,
                0,
            ],
        )
    };
    i32::try_from(answer).ok().filter(|file| *file >= 0)
}

/// Closes a file of ours.
pub fn close(file: i32) {
    // SAFETY: from `open`, and not used after this.
    unsafe { call(libc::SYS_close, [file as usize, 0, 0, 0, 0, 0]) };
}

/// Maps part of a file, shared.
pub fn map(file: i32, offset: u64, bytes: usize) -> Option<*mut c_void> {
    let protection = (libc::PROT_READ | libc::PROT_WRITE) as usize;
    // SAFETY: at an address of the kernel's choice.
    let answer = unsafe {
        call(
            libc::SYS_mmap,
            [
                0,
                bytes,
                protection,
                libc::MAP_SHARED as usize,
                file as usize,
                offset as usize,
            ],
        )
    };
    (!(-4095..0).contains(&answer)).then_some(answer as *mut c_void)
}

/// Unmaps what [`map`] mapped.
///
/// # Safety
/// Nothing refers to it.
pub unsafe fn unmap(at: *mut c_void, bytes: usize) {
    // SAFETY: by the caller.
    unsafe { call(libc::SYS_munmap, [at as usize, bytes, 0, 0, 0, 0]) };
}

/// Has the kernel fill these pages with zeros in a child that gets a copy of this process's memory.
pub fn wipe_on_fork(at: *const c_void, bytes: usize) -> bool {
    // SAFETY: changes nothing in this process.
    let answer = unsafe {
        call(
            libc::SYS_madvise,
            [at as usize, bytes, libc::MADV_WIPEONFORK as usize, 0, 0, 0],
        )
    };
    answer == 0
}

/// Where a link leads to, into `path`: its bytes.
pub fn link(of: &CStr, path: &mut [u8]) -> usize {
    let arguments = [
        libc::AT_FDCWD as usize,
        of.as_ptr() as usize,
        path.as_mut_ptr() as usize,
        path.len(),
        0,
        0,
    ];
    // SAFETY: writes at most so many bytes.
    let answer = unsafe { call(libc::SYS_readlinkat, arguments) };
    usize::try_from(answer).unwrap_or(0)
}
