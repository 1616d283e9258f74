//! Calls that take a path.

use super::kept::{forward, raw, text, whole};
use crate::intercept::libc_answer;
use core::ffi::{c_char, c_int};

type Path = *const c_char;

/// `open(2)`. The mode, if there is one, arrives in the register of the third argument.
///
/// # Safety
/// As for the system call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn open(path: Path, flags: c_int, mode: u32) -> c_int {
    let _pin = text(path);
    forward!(c"open", (path, flags, mode), fn(Path, c_int, u32) -> c_int)
}

/// `open(2)`.
///
/// # Safety
/// As for the system call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn open64(path: Path, flags: c_int, mode: u32) -> c_int {
    let _pin = text(path);
    forward!(
        c"open64",
        (path, flags, mode),
        fn(Path, c_int, u32) -> c_int
    )
}

/// `openat(2)`.
///
/// # Safety
/// As for the system call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn openat(folder: c_int, path: Path, flags: c_int, mode: u32) -> c_int {
    let _pin = text(path);
    forward!(
        c"openat",
        (folder, path, flags, mode),
        fn(c_int, Path, c_int, u32) -> c_int
    )
}

// Before glibc 2.33 stat(2) and similar calls are no functions of libc: headers turn them into calls
// of `__xstat` and others. Newer ones have those for old programs alone, where dlsym(3) does not find
// them. Programs of both kinds run with newer ones, and this library calls fstat(2) itself with all.
// If libc has no such function, the system call fills the same structure.
macro_rules! status_of_path {
    ($name:ident, $text:literal, $number:expr) => {
        /// `stat(2)` and similar calls.
        ///
        /// # Safety
        /// As for the system call.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(path: Path, to: *mut libc::stat) -> c_int {
            let _path = text(path);
            let _to = whole(to as usize, size_of::<libc::stat>(), true);
            forward!(
                $text,
                (path, to),
                fn(Path, *mut libc::stat) -> c_int,
                status($number, path as usize, to)
            )
        }
    };
}
status_of_path!(stat, c"stat", libc::SYS_stat);
status_of_path!(stat64, c"stat64", libc::SYS_stat);
status_of_path!(lstat, c"lstat", libc::SYS_lstat);

macro_rules! old_status_of_path {
    ($name:ident, $text:literal, $number:expr) => {
        /// `stat(2)` and similar calls of programs that were built before glibc 2.33.
        ///
        /// # Safety
        /// As for the system call.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(version: c_int, path: Path, to: *mut libc::stat) -> c_int {
            let _path = text(path);
            let _to = whole(to as usize, size_of::<libc::stat>(), true);
            forward!(
                $text,
                (version, path, to),
                fn(c_int, Path, *mut libc::stat) -> c_int,
                status($number, path as usize, to)
            )
        }
    };
}
old_status_of_path!(__xstat, c"__xstat", libc::SYS_stat);
old_status_of_path!(__xstat64, c"__xstat64", libc::SYS_stat);
old_status_of_path!(__lxstat, c"__lxstat", libc::SYS_lstat);
old_status_of_path!(__lxstat64, c"__lxstat64", libc::SYS_lstat);

macro_rules! old_status_of_file {
    ($name:ident, $text:literal) => {
        /// `fstat(2)` of programs that were built before glibc 2.33.
        ///
        /// # Safety
        /// As for the system call.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(version: c_int, fd: c_int, to: *mut libc::stat) -> c_int {
            let _to = whole(to as usize, size_of::<libc::stat>(), true);
            forward!(
                $text,
                (version, fd, to),
                fn(c_int, c_int, *mut libc::stat) -> c_int,
                status(libc::SYS_fstat, fd as usize, to)
            )
        }
    };
}
old_status_of_file!(__fxstat, c"__fxstat");
old_status_of_file!(__fxstat64, c"__fxstat64");

/// `fstat(2)`.
///
/// # Safety
/// As for the system call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fstat(fd: c_int, to: *mut libc::stat) -> c_int {
    let _to = whole(to as usize, size_of::<libc::stat>(), true);
    forward!(
        c"fstat",
        (fd, to),
        fn(c_int, *mut libc::stat) -> c_int,
        status(libc::SYS_fstat, fd as usize, to)
    )
}

/// The system call, with its answer as libc gives it.
fn status(number: i64, of: usize, to: *mut libc::stat) -> c_int {
    libc_answer(raw(number, [of, to as usize, 0, 0, 0, 0])) as c_int
}

/// `access(2)`.
///
/// # Safety
/// As for the system call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn access(path: Path, mode: c_int) -> c_int {
    let _pin = text(path);
    forward!(c"access", (path, mode), fn(Path, c_int) -> c_int)
}
