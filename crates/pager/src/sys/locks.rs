//! Locks of open file descriptions on single bytes of a file: the kernel gives them back with the
//! process, whatever ends it, and at exec.

use super::{call3, call6, high};

/// Another description of the file behind `fd`, out of the program's way; -1 if there is none.
#[must_use]
pub fn reopen(fd: i32) -> i32 {
    use core::fmt::Write;
    let mut path = crate::core::fatal::Line::new();
    let _ = write!(path, "/proc/self/fd/{fd}\0");
    // SAFETY: the path ends with zero, and lives through the call.
    let file = unsafe {
        let flags = (libc::O_RDWR | libc::O_CLOEXEC) as usize;
        let path = path.text().as_ptr() as usize;
        call6(
            libc::SYS_openat,
            libc::AT_FDCWD as usize,
            path,
            flags,
            0,
            0,
            0,
        )
    };
    high(i32::try_from(file).unwrap_or(-1)).max(-1)
}

/// Takes the lock on `byte`, unless another description has it.
#[must_use]
pub fn attempt(file: i32, byte: u32) -> bool {
    ask(file, byte, libc::F_WRLCK)
}

/// Gives it back.
pub fn release(file: i32, byte: u32) {
    ask(file, byte, libc::F_UNLCK);
}

fn ask(file: i32, byte: u32, kind: i32) -> bool {
    // SAFETY: zeros are valid for the structure, which lives through the call.
    unsafe {
        let mut range: libc::flock = core::mem::zeroed();
        range.l_type = i16::try_from(kind).unwrap_or(0);
        range.l_whence = i16::try_from(libc::SEEK_SET).unwrap_or(0);
        (range.l_start, range.l_len) = (i64::from(byte), 1);
        let range = &raw mut range as usize;
        let command = libc::F_OFD_SETLK as usize;
        call3(libc::SYS_fcntl, file as usize, command, range) == 0
    }
}
