//! Advisory locks on files.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::{Duration, Instant};

/// Locks the file for its open description alone (flock(2)); the lock ends when the last descriptor
/// of the description is closed, at the latest with the process. Returns whether the lock was free.
///
/// # Errors
/// If the file system does not support locks.
pub fn try_lock(file: BorrowedFd<'_>) -> io::Result<bool> {
    try_flock(file, libc::LOCK_EX)
}

/// [`try_lock`] for up to a second: a process that is killed while it starts another passes its
/// lock on to the new process, which gives it up on exec.
///
/// # Errors
/// If the file system does not support locks.
pub fn lock_soon(file: BorrowedFd<'_>) -> io::Result<bool> {
    let end = Instant::now() + Duration::from_secs(1);
    loop {
        let is_ours = try_lock(file)?;
        if is_ours || Instant::now() >= end {
            return Ok(is_ours);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The same as [`try_lock`], but shared with others. A later [`try_lock`] shows whether they are
/// gone; if it fails, our share ends too.
///
/// # Errors
/// If the file system does not support locks.
pub fn try_share(file: BorrowedFd<'_>) -> io::Result<bool> {
    try_flock(file, libc::LOCK_SH)
}

fn try_flock(file: BorrowedFd<'_>, how: i32) -> io::Result<bool> {
    // SAFETY: flock takes numbers only, and the descriptor is open for as long as it is borrowed.
    let status = unsafe { libc::flock(file.as_raw_fd(), how | libc::LOCK_NB) };
    if status == 0 {
        return Ok(true);
    }
    let error = io::Error::last_os_error();
    match error.kind() {
        io::ErrorKind::WouldBlock => Ok(false),
        _ => Err(error),
    }
}

/// Whether another open description of the file has a lock (`F_OFD_SETLK`) on byte `at`. Its
/// process is alive, because the kernel releases the lock with the process.
///
/// # Errors
/// If the file system does not support locks.
pub fn is_byte_locked(file: BorrowedFd<'_>, at: u32) -> io::Result<bool> {
    // SAFETY: zeros are valid for the structure.
    let mut range: libc::flock = unsafe { std::mem::zeroed() };
    range.l_type = short(libc::F_WRLCK);
    range.l_whence = short(libc::SEEK_SET);
    (range.l_start, range.l_len) = (i64::from(at), 1);
    // SAFETY: the structure lives through the call, and the descriptor as long as it is borrowed.
    let status = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_GETLK, &raw mut range) };
    if status != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(range.l_type != short(libc::F_UNLCK))
}

/// A constant of fcntl in the type that `struct flock` uses.
fn short(constant: i32) -> libc::c_short {
    libc::c_short::try_from(constant).unwrap_or_default()
}
