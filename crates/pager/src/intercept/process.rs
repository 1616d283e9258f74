//! Processes: fork, exec, exit.

use super::libc_answer;
use crate::core::PAGER;
use crate::start;
use crate::sys::call3;
use core::ffi::{c_char, c_int};

/// Every fork of libc's calls these, also those inside it (`daemon`, `forkpty`).
pub fn prepare() {
    // SAFETY: the functions live as long as the process: the library is never unloaded.
    unsafe {
        libc::pthread_atfork(Some(before), Some(in_parent), Some(in_child));
        libc::atexit(at_exit);
    }
}

unsafe extern "C" fn before() {
    PAGER.before_fork();
}

unsafe extern "C" fn in_parent() {
    PAGER.after_fork_parent(false);
}

unsafe extern "C" fn in_child() {
    PAGER.after_fork_child();
}

extern "C" fn at_exit() {
    start::finish();
}

/// `execve(2)`. The pager's memory goes with the old program; only its references to slots that
/// other processes of the run share would stay.
///
/// # Safety
/// As for the system call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn execve(
    path: *const c_char,
    arguments: *const *const c_char,
    environment: *const *const c_char,
) -> c_int {
    const EXECUTE: usize = 1;
    // SAFETY: the program's own arguments. Whether the file can be executed is asked first, because
    // after the release there is no way back to the pages in the store.
    unsafe {
        let known = PAGER.is_started();
        if known && call3(libc::SYS_access, path as usize, EXECUTE, 0) == 0 {
            PAGER.release_for_exec();
        }
        let answer = call3(
            libc::SYS_execve,
            path as usize,
            arguments as usize,
            environment as usize,
        );
        libc_answer(answer) as c_int
    }
}

/// `_exit(2)`: ends without the functions of `atexit`.
///
/// # Safety
/// As for the system call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn _exit(status: c_int) -> ! {
    start::finish();
    loop {
        // SAFETY: ends the process.
        unsafe { call3(libc::SYS_exit_group, status as usize, 0, 0) };
    }
}

/// The same under its C name.
///
/// # Safety
/// As for [`_exit`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn _Exit(status: c_int) -> ! {
    // SAFETY: the caller's argument.
    unsafe { _exit(status) }
}
