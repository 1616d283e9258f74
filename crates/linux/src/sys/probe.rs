//! System calls tried without effect, only to find out whether the kernel allows them.

use std::fs::File;
use std::io;
use std::mem;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// `UFFD_USER_MODE_ONLY` of include/uapi/linux/userfaultfd.h (Linux 5.11).
const UFFD_USER_MODE_ONLY: libc::c_int = 1;

/// `struct pm_scan_arg` of include/uapi/linux/fs.h (Linux 6.7): twelve 64-bit words.
#[repr(C)]
#[derive(Default)]
struct PagemapScan {
    size: u64,
    rest: [u64; 11],
}

const _: () = assert!(mem::size_of::<PagemapScan>() == 96);

/// `PAGEMAP_SCAN`: `_IOWR('f', 16, struct pm_scan_arg)`.
const PAGEMAP_SCAN: libc::Ioctl = 0xc060_6610_u32 as libc::Ioctl;

/// Creates a userfaultfd and closes it; with `user_mode_only`, one that does not handle faults
/// taken inside the kernel, which needs no privilege.
///
/// # Errors
/// The kernel's refusal (userfaultfd(2)).
pub fn userfaultfd(user_mode_only: bool) -> io::Result<()> {
    let mode = if user_mode_only {
        UFFD_USER_MODE_ONLY
    } else {
        0
    };
    // SAFETY: userfaultfd takes only flags and returns a new descriptor.
    let fd = unsafe { libc::syscall(libc::SYS_userfaultfd, libc::O_CLOEXEC | mode) };
    close_new(fd)
}

/// Features that the kernel's userfaultfd offers (`UFFD_FEATURE_*` of linux/userfaultfd.h).
///
/// # Errors
/// The kernel's refusal (userfaultfd(2), ioctl_userfaultfd(2)).
pub fn userfaultfd_features() -> io::Result<u64> {
    /// `UFFDIO_API`: `_IOWR(0xAA, 0x3f, struct uffdio_api)`.
    const API: libc::Ioctl = 0xc018_aa3f_u32 as libc::Ioctl;
    let mode = libc::O_CLOEXEC | UFFD_USER_MODE_ONLY;
    // SAFETY: userfaultfd takes only flags and returns a new descriptor.
    let fd = unsafe { libc::syscall(libc::SYS_userfaultfd, mode) };
    let fault = new_descriptor(fd)?;
    // `struct uffdio_api`: the version; features (none requested, all reported); ioctls.
    let mut api = [0xaa_u64, 0, 0];
    // SAFETY: the kernel reads and writes 24 bytes, the size of the array, which lives through the
    // call.
    let status = unsafe { libc::ioctl(fault.as_raw_fd(), API, api.as_mut_ptr()) };
    check(status.into())?;
    Ok(api[1])
}

/// Creates an io_uring of one entry and closes it.
///
/// # Errors
/// The kernel's refusal (io_uring_setup(2)).
pub fn io_uring() -> io::Result<()> {
    // `struct io_uring_params` has 120 bytes; all zeros requests defaults.
    let mut parameters = [0_u64; 15];
    // SAFETY: the kernel reads and writes 120 bytes at `parameters`, which has exactly this size
    // and lives through the call.
    let fd = unsafe { libc::syscall(libc::SYS_io_uring_setup, 1, parameters.as_mut_ptr()) };
    close_new(fd)
}

/// Advises our own process about no memory.
///
/// # Errors
/// The kernel's refusal (process_madvise(2), pidfd_open(2)).
pub fn process_madvise() -> io::Result<()> {
    // SAFETY: pidfd_open takes only numbers and returns a new descriptor.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, std::process::id(), 0) };
    let process = new_descriptor(fd)?;
    let nothing: *const libc::iovec = std::ptr::null();
    // SAFETY: with a vector of length 0 the kernel reads nothing through the null pointer.
    let status = unsafe {
        libc::syscall(
            libc::SYS_process_madvise,
            process.as_raw_fd(),
            nothing,
            0_usize,
            libc::MADV_COLD,
            0,
        )
    };
    check(status)
}

/// Scans an empty range of our own page map.
///
/// # Errors
/// `ENOTTY` before Linux 6.7.
pub fn pagemap_scan(pagemap: &File) -> io::Result<()> {
    let mut scan = PagemapScan {
        size: 96,
        ..PagemapScan::default()
    };
    // SAFETY: `scan` is the structure that this request reads and writes, of the size in its number
    // and first field, and lives through the call. Its range is empty and it has no output buffer.
    let status = unsafe { libc::ioctl(pagemap.as_raw_fd(), PAGEMAP_SCAN, &raw mut scan) };
    check(status.into())
}

fn check(status: libc::c_long) -> io::Result<()> {
    match status {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

fn close_new(fd: libc::c_long) -> io::Result<()> {
    new_descriptor(fd).map(drop)
}

fn new_descriptor(fd: libc::c_long) -> io::Result<OwnedFd> {
    check(fd)?;
    let fd = i32::try_from(fd).map_err(io::Error::other)?;
    // SAFETY: the callers pass the new descriptor returned by a successful system call, which
    // nothing else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}
