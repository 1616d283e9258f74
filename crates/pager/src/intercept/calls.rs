//! The program's calls by their numbers: made through `syscall(2)`, or past libc.

use super::{
    bypass, files, forks, given, ioctls, libc_answer, memory, merging, process, set_errno, signals,
    strict,
};
use crate::page::{PAGE_BYTES, page_ceil, page_floor};
use crate::paging::PAGER;
use crate::start;
use crate::sys::{Answer, call6};
use core::ffi::{c_int, c_void};

/// `syscall(2)`: calls that this library must see go the same way as libc's functions; what the others
/// point to is pinned.
///
/// # Safety
/// As for the system call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn syscall(
    number: i64,
    a: usize,
    b: usize,
    c: usize,
    d: usize,
    e: usize,
    f: usize,
) -> i64 {
    let arguments = [a, b, c, d, e, f];
    let _held = bypass::hold(number, &arguments);
    // SAFETY: the program's own call, with its arguments.
    let known = unsafe { by_number(number, arguments) };
    libc_answer(known.unwrap_or_else(|| bypass::make(number, arguments))) as i64
}

/// The call `number`, made as libc's function of its name would make it here; `None` if that is a call
/// that the pager need not see.
///
/// # Safety
/// As for the call.
pub(super) unsafe fn by_number(number: i64, arguments: [usize; 6]) -> Option<Answer> {
    // SAFETY: the program's own call, with its arguments.
    let known = unsafe {
        let former = *libc::__errno_location();
        let known = memory::by_number(number, arguments)
            .or_else(|| files::by_number(number, arguments))
            .or_else(|| process::by_number(number, arguments))
            .or_else(|| signals::by_number(number, arguments));
        known.map(|answer| {
            if answer != -1 {
                return answer as Answer;
            }
            let errno = *libc::__errno_location();
            set_errno(former);
            -(errno as Answer)
        })
    };
    known
        .or_else(|| forks::by_number(number, arguments))
        .or_else(|| merging::by_number(number, arguments))
        .or_else(|| others(number, arguments))
}

fn others(number: i64, [a, b, c, d, ..]: [usize; 6]) -> Option<Answer> {
    match number {
        libc::SYS_ioctl => {
            // SAFETY: the program's own call.
            Some(unsafe { ioctls::answer(a as c_int, b as u64, c as *mut c_void) })
        }
        libc::SYS_process_madvise => advised(a, b, c, d as c_int),
        libc::SYS_rseq if PAGER.is_started() && c == 0 => {
            leave_to_kernel(a as u64, b as u64);
            None
        }
        libc::SYS_seccomp if a == strict::SET_STRICT => Some(strict::entering(|| {
            bypass::make(number, [a, b, c, d, 0, 0])
        })),
        libc::SYS_io_uring_setup | libc::SYS_io_setup if PAGER.is_started() => {
            start::say_refused(&PAGER);
            None
        }
        _ => None,
    }
}

/// The kernel writes the processor's number there whenever the thread goes on, with whatever locks it holds.
fn leave_to_kernel(start: u64, bytes: u64) {
    let end = start.saturating_add(bytes);
    if end < u64::MAX - PAGE_BYTES as u64 {
        PAGER.cede_to_kernel(page_floor(start), page_ceil(end));
    }
}

/// `process_madvise(2)`. The kernel accepts what drops pages for the caller's own process alone: then it
/// is `madvise` of each range. `None` for any other advice.
fn advised(process: usize, list: usize, count: usize, advice: c_int) -> Option<Answer> {
    /// `MADV_DONTNEED_LOCKED` and `MADV_GUARD_INSTALL` (linux/mman.h).
    const DROPS: [c_int; 4] = [libc::MADV_DONTNEED, libc::MADV_FREE, 24, 102];
    /// `UIO_MAXIOV`.
    const MOST: usize = 1024;
    let bytes = count.checked_mul(size_of::<libc::iovec>())?;
    if !PAGER.is_started() || !DROPS.contains(&advice) || count == 0 || count > MOST {
        return None;
    }
    // SAFETY: the program's own call, without any range: whether the kernel would accept it.
    let allowed = unsafe {
        call6(
            libc::SYS_process_madvise,
            process,
            list,
            0,
            advice as usize,
            0,
            0,
        )
    };
    if allowed < 0 || !given::is_readable(list, bytes) {
        return None;
    }
    let mut done = 0;
    for index in 0..count {
        // SAFETY: the list can be read; the ranges are the program's.
        let answer = unsafe {
            let range = (list as *const libc::iovec).add(index).read_unaligned();
            if memory::madvise(range.iov_base, range.iov_len, advice) == 0 {
                done += range.iov_len as Answer;
                continue;
            }
            -(*libc::__errno_location() as Answer)
        };
        return Some(if done > 0 { done } else { answer });
    }
    Some(done)
}
