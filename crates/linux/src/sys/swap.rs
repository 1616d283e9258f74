//! Swap areas: swapon(2), swapoff(2), and the header with which an area starts.

use std::ffi::{CString, c_int};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// `SWAP_FLAG_PREFER` (include/linux/swap.h), with the priority in the lower bits.
const PREFER: c_int = 0x8000;
/// Above areas that the machine has: what leaves memory goes where the run wants it.
const PRIORITY: c_int = 32_000;

/// Takes `bytes` of disk for the empty `file`. Swap needs blocks, not holes.
///
/// # Errors
/// `ENOSPC`, `EOPNOTSUPP` where the file system cannot.
pub fn allocate(file: &File, bytes: u64) -> io::Result<()> {
    let bytes = i64::try_from(bytes).map_err(io::Error::other)?;
    // SAFETY: an open file and plain numbers.
    answer(unsafe { libc::fallocate(file.as_raw_fd(), 0, 0, bytes) })
}

/// Has the kernel swap to the area at `path`.
///
/// # Errors
/// `EPERM` without `CAP_SYS_ADMIN`; `EINVAL` where the file cannot be one.
pub fn on(path: &Path) -> io::Result<()> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: the path is NUL-terminated and read only.
    answer(unsafe { libc::swapon(path.as_ptr(), PREFER | PRIORITY) })
}

/// Reads back what is in the area at `path`, and ends its use.
///
/// # Errors
/// `ENOMEM` where what is in it has no room; `EINVAL` if it is not in use.
pub fn off(path: &Path) -> io::Result<()> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: the path is NUL-terminated and read only.
    answer(unsafe { libc::swapoff(path.as_ptr()) })
}

fn answer(answer: c_int) -> io::Result<()> {
    match answer {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
