//! A mount of tracefs that only this process sees.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr;

/// `FSOPEN_CLOEXEC`, `FSMOUNT_CLOEXEC` of include/uapi/linux/mount.h.
const CLOEXEC: libc::c_uint = 1;
/// `FSCONFIG_CMD_CREATE` of include/uapi/linux/mount.h.
const FSCONFIG_CMD_CREATE: libc::c_uint = 6;

/// Mounts a file system of type `name` without a mount point: it is reached only through the
/// returned descriptor, and vanishes with it. Nothing changes for other processes.
///
/// # Errors
/// `EPERM` without `CAP_SYS_ADMIN`, `ENOSYS` before Linux 5.2, `ENODEV` if the kernel has no such
/// file system.
pub fn detached(name: &CStr) -> io::Result<OwnedFd> {
    // SAFETY: the name is NUL-terminated and read only.
    let context = owned(unsafe { libc::syscall(libc::SYS_fsopen, name.as_ptr(), CLOEXEC) })?;
    // SAFETY: `context` is an open file system context; this command takes no key and no value.
    let created = unsafe {
        libc::syscall(
            libc::SYS_fsconfig,
            context.as_raw_fd(),
            FSCONFIG_CMD_CREATE,
            ptr::null::<libc::c_char>(),
            ptr::null::<libc::c_void>(),
            0,
        )
    };
    if created < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: plain numbers on the context that was just created.
    owned(unsafe { libc::syscall(libc::SYS_fsmount, context.as_raw_fd(), CLOEXEC, 0) })
}

fn owned(result: libc::c_long) -> io::Result<OwnedFd> {
    match libc::c_int::try_from(result) {
        // SAFETY: the call succeeded, so this is a new descriptor that nothing else owns.
        Ok(fd) if fd >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(fd) }),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_file_system_is_an_error() {
        assert!(detached(c"no_such_file_system").is_err());
    }
}
