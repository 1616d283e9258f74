//! Places for a store: how one is opened, and why it cannot be.

/// A place that would not keep what is written there.
pub const KEEPS_NOTHING: i32 = libc::ENOTBLK;

/// Flags for opening a store at a place of this kind (`st_mode`): a file without a name in a folder, or the
/// given file or device itself.
///
/// # Errors
/// The `errno` for a place that can hold none.
pub const fn flags(mode: libc::mode_t) -> Result<i32, i32> {
    let own = match mode & libc::S_IFMT {
        libc::S_IFDIR => libc::O_TMPFILE | libc::O_EXCL,
        libc::S_IFREG | libc::S_IFBLK => libc::O_EXCL,
        _ => return Err(KEEPS_NOTHING),
    };
    Ok(own | libc::O_RDWR)
}

/// Why a store cannot be created, and what to do.
#[must_use]
pub const fn refusal(errno: i32) -> &'static str {
    match errno {
        libc::EROFS => {
            "the file system of its store is read-only (EROFS); name another folder (--store)"
        }
        libc::EACCES | libc::EPERM => {
            "this user may not create a store there (EACCES); name another folder (--store)"
        }
        libc::ENOENT => "the folder or file of its store does not exist (ENOENT; --store)",
        libc::EOPNOTSUPP | libc::EISDIR | libc::EINVAL => {
            "the file system of its store does not support unnamed files (EOPNOTSUPP); name a folder on ext4, XFS, Btrfs or tmpfs, or a file or block device (--store)"
        }
        libc::ENOSPC | libc::EDQUOT => {
            "there is no room for its store (ENOSPC); name another folder (--store)"
        }
        libc::EBUSY => "the device of its store is in use (EBUSY); name another (--store)",
        libc::EFBIG => "the file size limit leaves no room for its store (ulimit -f)",
        KEEPS_NOTHING => {
            "its store is not a folder, file or block device, and would lose what is written there; name another (--store)"
        }
        _ => "its store cannot be created; name another folder, file or block device (--store)",
    }
}
