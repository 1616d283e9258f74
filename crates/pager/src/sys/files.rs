//! Regular files: their status, direct reads, and leases, by which the kernel lets nobody open a
//! file for writing before its holder has agreed (fcntl(2), "Leases").

use super::line::Line;
use super::{call3, call6, errno, open, signals};
use alloc::ffi::CString;
use alloc::string::String;
use alloc::vec::Vec;
use core::ffi::CStr;
use core::fmt::Write;
use core::sync::atomic::{AtomicBool, Ordering};

/// Set if a test disables direct reads.
pub static DENIED: AtomicBool = AtomicBool::new(false);

/// `fcntl` commands and the kind of owner (include/uapi/linux/fcntl.h,
/// include/uapi/asm-generic/fcntl.h).
const F_SETOWN_EX: i32 = 15;
const F_OWNER_TID: i32 = 0;
const F_SETLEASE: i32 = 1024;
const F_GETLEASE: i32 = 1025;

/// What tells a file and its version from others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    /// The device of its file system, and its inode there.
    pub place: [u64; 2],
    /// Its size.
    pub bytes: u64,
    /// Time of its last modification, in seconds and nanoseconds.
    pub modified: [i64; 2],
    /// Whether it is a regular file.
    pub is_regular: bool,
}

/// The content of the file at `path`. Allocates: only for the start.
///
/// # Errors
/// Why it cannot be read, in the C library's words.
pub fn whole(path: &str) -> Result<Vec<u8>, String> {
    let words = |errno| {
        // SAFETY: the C library returns text that is there until its next call; the start is one thread.
        let text = unsafe { CStr::from_ptr(libc::strerror(errno)) };
        text.to_string_lossy().into_owned()
    };
    let path = CString::new(path).map_err(|_| words(libc::ENOENT))?;
    let file = match i32::try_from(open(&path, libc::O_RDONLY)) {
        Ok(file @ 0..) => file,
        failed => return Err(words(failed.map_or(libc::EINVAL, |errno| -errno))),
    };
    let mut content = Vec::new();
    let mut part = [0_u8; 4096];
    loop {
        // SAFETY: the buffer lives through the call.
        let read = unsafe {
            call3(
                libc::SYS_read,
                file as usize,
                part.as_mut_ptr() as usize,
                part.len(),
            )
        };
        match usize::try_from(read) {
            Ok(count @ 1..) => content.extend_from_slice(&part[..count]),
            Err(_) if errno(read) == libc::EINTR => {}
            ended => {
                super::close(file);
                return ended.map(|_| content).map_err(|_| words(errno(read)));
            }
        }
    }
}

/// The present status of an open file; `None` if the descriptor is closed.
#[must_use]
pub fn status(file: i32) -> Option<Status> {
    // SAFETY: zeros are a valid `stat`, which lives through the call.
    let status = unsafe {
        let mut status: libc::stat = core::mem::zeroed();
        let answer = call3(libc::SYS_fstat, file as usize, &raw mut status as usize, 0);
        (answer == 0).then_some(status)
    }?;
    Some(Status {
        place: [status.st_dev, status.st_ino],
        bytes: u64::try_from(status.st_size).unwrap_or(0),
        modified: [status.st_mtime, status.st_mtime_nsec],
        is_regular: status.st_mode & libc::S_IFMT == libc::S_IFREG,
    })
}

/// Whether the regular file `path` has this inode and is not in a file system that keeps its files
/// in memory. Opens nothing: the number of a descriptor would be missing to the program meanwhile.
#[must_use]
pub fn is_on_disk(path: &CStr, inode: u64) -> bool {
    // SAFETY: zeros are valid for both structures, which live through the calls, as the path does.
    let (status, system) = unsafe {
        let mut status: libc::stat = core::mem::zeroed();
        let mut system: libc::statfs = core::mem::zeroed();
        let path = path.as_ptr() as usize;
        if call3(libc::SYS_stat, path, &raw mut status as usize, 0) != 0
            || call3(libc::SYS_statfs, path, &raw mut system as usize, 0) != 0
        {
            return false;
        }
        (status, system)
    };
    status.st_ino == inode
        && status.st_mode & libc::S_IFMT == libc::S_IFREG
        && !super::keeps_in_memory(&system)
}

/// Opens the file behind `file` once more, for reading past the page cache where its file system
/// can. Never waits for the holder of a lease.
///
/// # Errors
/// The `errno` of the call that failed.
pub fn open_again(file: i32) -> Result<i32, i32> {
    let mut path = Line::new();
    let _ = write!(path, "/proc/self/fd/{file}\0");
    let path = CStr::from_bytes_until_nul(path.text()).map_err(|_| libc::EINVAL)?;
    let flags = libc::O_RDONLY | libc::O_NONBLOCK;
    let attempt = |flags| match i32::try_from(open(path, flags)) {
        Ok(fd @ 0..) => Ok(fd),
        Ok(failed) => Err(-failed),
        Err(_) => Err(libc::EINVAL),
    };
    if DENIED.load(Ordering::Relaxed) {
        return attempt(flags);
    }
    match attempt(flags | libc::O_DIRECT) {
        Err(libc::EINVAL) => attempt(flags),
        opened => opened,
    }
}

/// Moves `file` to a number that programs hardly use, below those of the pager's other descriptors.
/// `None`, with `file` closed, if there is none.
#[must_use]
pub fn moved_up(file: i32) -> Option<i32> {
    /// Numbers below the limit from which a free one is searched.
    const ROOM: u64 = 160;
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: the structure lives through the call, which only reads the limit.
    unsafe {
        let (place, limited) = (&raw mut limit as usize, libc::RLIMIT_NOFILE as usize);
        call6(libc::SYS_prlimit64, 0, limited, 0, place, 0, 0);
    }
    let limit = limit.rlim_cur.clamp(64, 1 << 16);
    let from = limit - ROOM.min(limit / 2);
    let moved = fcntl(file, libc::F_DUPFD_CLOEXEC, from as usize);
    super::close(file);
    i32::try_from(moved).ok().filter(|moved| *moved >= 0)
}

/// From now on `file` is read through the page cache.
pub fn read_through_cache(file: i32) {
    fcntl(file, libc::F_SETFL, libc::O_NONBLOCK as usize);
    read_nothing_ahead(file);
}

/// Reads of `file` through the page cache bring in no other pages, which nobody would drop.
pub fn read_nothing_ahead(file: i32) {
    advise(file, 0, 0, libc::POSIX_FADV_RANDOM);
}

/// Whether `file` is read through the page cache.
#[must_use]
pub fn is_cached(file: i32) -> bool {
    let flags = fcntl(file, libc::F_GETFL, 0);
    flags >= 0 && flags as i32 & libc::O_DIRECT == 0
}

/// Drops clean pages of the range from the page cache.
pub fn drop_cached(file: i32, offset: u64, bytes: u64) {
    advise(file, offset, bytes, libc::POSIX_FADV_DONTNEED);
}

fn advise(file: i32, offset: u64, bytes: u64, advice: i32) {
    let (file, offset, bytes) = (file as usize, offset as usize, bytes as usize);
    // SAFETY: plain arguments.
    unsafe {
        call6(
            libc::SYS_fadvise64,
            file,
            offset,
            bytes,
            advice as usize,
            0,
            0,
        )
    };
}

/// Reads at `offset` as many bytes as the file has, at most those of `bytes`. Returns their number.
///
/// # Errors
/// The `errno` of the call that failed.
pub fn read_at(file: i32, offset: u64, bytes: &mut [u8]) -> Result<usize, i32> {
    let mut done = 0;
    while done < bytes.len() {
        // SAFETY: the rest of the buffer, which lives through the call.
        let answer = unsafe {
            call6(
                libc::SYS_pread64,
                file as usize,
                bytes.as_mut_ptr() as usize + done,
                bytes.len() - done,
                offset as usize + done,
                0,
                0,
            )
        };
        match answer {
            0 => break,
            count if count > 0 => done += count.unsigned_abs(),
            failed if errno(failed) == libc::EINTR => {}
            // A direct read stops within the last sector, and cannot go on from there.
            failed if errno(failed) == libc::EINVAL && done > 0 => break,
            failed => return Err(errno(failed)),
        }
    }
    Ok(done)
}

/// Takes a lease on `file`; thread `owner` gets a SIGIO when another open file description is to
/// write to the file or truncate it, which the kernel delays until the lease has ended.
///
/// # Errors
/// `EAGAIN` while the file is open for writing, `EACCES` without its owner's rights, `EINVAL` for
/// file systems that have no leases.
pub fn lease(file: i32, owner: u32) -> Result<(), i32> {
    let mut who = [F_OWNER_TID, owner.cast_signed()];
    let message = fcntl(file, F_SETOWN_EX, who.as_mut_ptr() as usize);
    if message < 0 {
        return Err(errno(message));
    }
    match fcntl(file, F_SETLEASE, libc::F_RDLCK as usize) {
        0 => Ok(()),
        failed => Err(errno(failed)),
    }
}

/// Whether the lease on `file` holds, and nobody waits for its end.
#[must_use]
pub fn is_leased(file: i32) -> bool {
    fcntl(file, F_GETLEASE, 0) == libc::F_RDLCK as isize
}

/// Ends the lease on `file`: whoever waits for that goes on.
pub fn end_lease(file: i32) {
    fcntl(file, F_SETLEASE, libc::F_UNLCK as usize);
}

fn fcntl(file: i32, command: i32, argument: usize) -> isize {
    // SAFETY: commands with a number, or with a structure that lives through the call.
    unsafe { call3(libc::SYS_fcntl, file as usize, command as usize, argument) }
}

/// Waits in this thread, which blocks all signals, for a SIGIO or for `most_ns` nanoseconds.
pub fn await_notice(most_ns: u64) {
    let wanted = signals::bit(libc::SIGIO);
    let limit = libc::timespec {
        tv_sec: (most_ns / 1_000_000_000).cast_signed(),
        tv_nsec: (most_ns % 1_000_000_000).cast_signed(),
    };
    // SAFETY: set and time live through the call.
    unsafe {
        call6(
            libc::SYS_rt_sigtimedwait,
            &raw const wanted as usize,
            0,
            &raw const limit as usize,
            size_of::<signals::Set>(),
            0,
            0,
        );
    }
}

/// Ends the wait of thread `thread` in [`await_notice`].
pub fn notify(thread: u32) {
    let process = super::process_id() as usize;
    // SAFETY: plain arguments.
    unsafe {
        call3(
            libc::SYS_tgkill,
            process,
            thread as usize,
            libc::SIGIO as usize,
        )
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::thread_id;
    use std::fs::OpenOptions;
    use std::os::fd::AsRawFd;

    #[test]
    fn a_writer_waits_for_the_end_of_the_lease() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, b"old").unwrap();
        let program = std::fs::File::open(&path).unwrap();
        // The notice goes to this thread.
        let _blocked = signals::Blocked::new();
        let own = open_again(program.as_raw_fd()).unwrap();
        assert_eq!(lease(own, thread_id()), Ok(()));
        assert!(is_leased(own));
        let writer = {
            let path = path.clone();
            std::thread::spawn(move || std::fs::write(path, b"new"))
        };
        await_notice(10_000_000_000);
        assert!(!is_leased(own));
        assert_eq!(std::fs::read(&path).unwrap(), b"old");
        end_lease(own);
        writer.join().unwrap().unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"new");
        let writing = OpenOptions::new().write(true).open(&path).unwrap();
        assert_eq!(lease(own, thread_id()), Err(libc::EAGAIN));
        drop(writing);
        crate::sys::close(own);
    }

    #[test]
    fn reads_end_with_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, vec![3; 10_000]).unwrap();
        let program = std::fs::File::open(&path).unwrap();
        let own = open_again(program.as_raw_fd()).unwrap();
        #[repr(align(4096))]
        struct Pages([u8; 4 * 4096]);
        let mut pages = Pages([0; 4 * 4096]);
        assert_eq!(read_at(own, 0, &mut pages.0), Ok(10_000));
        assert_eq!(read_at(own, 8192, &mut pages.0), Ok(10_000 - 8192));
        assert_eq!(status(own).map(|now| now.bytes), Some(10_000));
        crate::sys::close(own);
    }
}
