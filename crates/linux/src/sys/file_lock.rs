//! Advisory locks on files.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Locks the file for its open description alone (flock(2)); the lock ends when the last
/// descriptor of it is closed, at the latest with the process. Whether nobody else has it.
///
/// # Errors
/// When the file system knows no locks.
pub fn try_lock(file: BorrowedFd<'_>) -> io::Result<bool> {
    // SAFETY: flock takes numbers only, and the descriptor is open for as long as it is borrowed.
    let status = unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) };
    if status == 0 {
        return Ok(true);
    }
    let error = io::Error::last_os_error();
    match error.kind() {
        io::ErrorKind::WouldBlock => Ok(false),
        _ => Err(error),
    }
}
