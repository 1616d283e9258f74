//! Calls that take a path.

use super::kept::{forward, text, whole};
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

macro_rules! status_of_path {
    ($name:ident, $text:literal) => {
        /// `stat(2)` and similar calls.
        ///
        /// # Safety
        /// As for the system call.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(path: Path, to: *mut libc::stat) -> c_int {
            let _path = text(path);
            let _to = whole(to as usize, size_of::<libc::stat>(), true);
            forward!($text, (path, to), fn(Path, *mut libc::stat) -> c_int)
        }
    };
}
status_of_path!(stat, c"stat");
status_of_path!(stat64, c"stat64");
status_of_path!(lstat, c"lstat");

/// `fstat(2)`.
///
/// # Safety
/// As for the system call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fstat(fd: c_int, to: *mut libc::stat) -> c_int {
    let _to = whole(to as usize, size_of::<libc::stat>(), true);
    forward!(c"fstat", (fd, to), fn(c_int, *mut libc::stat) -> c_int)
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
