//! Locks of whole files (`flock(2)`): they end with the process that holds them.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// Locks `file` for us alone, without waiting. False when another open file holds the lock.
///
/// # Errors
/// The kernel's refusal, such as `ENOLCK`.
pub fn try_exclusive(file: &File) -> io::Result<bool> {
    // SAFETY: flock takes a descriptor that `file` keeps open, and flags.
    if unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } == 0 {
        return Ok(true);
    }
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        Some(libc::EWOULDBLOCK) => Ok(false),
        _ => Err(error),
    }
}
