//! Locks of open file descriptions on single bytes of a file: the kernel releases them with the
//! process, however it ends, and at exec.

use super::{call3, high};

/// Another open file description of the file behind `fd`, out of the program's way; -1 if there is
/// none.
#[must_use]
pub fn reopen(fd: i32) -> i32 {
    use core::fmt::Write;
    let mut path = super::line::Line::new();
    let _ = write!(path, "/proc/self/fd/{fd}\0");
    let path = core::ffi::CStr::from_bytes_until_nul(path.text());
    let file = path.map_or(-1, |path| super::open(path, libc::O_RDWR));
    high(i32::try_from(file).unwrap_or(-1)).max(-1)
}

/// Takes the lock on `byte`, unless another open file description has it.
#[must_use]
pub fn attempt(file: i32, byte: u32) -> bool {
    ask(file, byte, libc::F_WRLCK)
}

/// Releases the lock.
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
