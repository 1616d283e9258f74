//! `ioctl(2)`, for programs that have a userfaultfd of their own.

use super::shim::whole;
use super::{bypass, given, libc_answer};
use crate::page::PAGE_BYTES;
use crate::paging::PAGER;
use crate::sys::Answer;
use core::ffi::{c_int, c_ulong, c_void};

/// `UFFDIO_REGISTER` (linux/userfaultfd.h): a range of start and length, mode, and the result.
const REGISTER: c_ulong = 0xc020_aa00;
const REGISTER_BYTES: usize = 32;
/// `UFFDIO_COPY`: destination, source, length, mode, and the result.
const COPY: c_ulong = 0xc028_aa03;
const COPY_BYTES: usize = 40;

/// `ioctl(2)`. Variadic in C, where the third argument arrives in the same register.
///
/// # Safety
/// As for the system call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ioctl(fd: c_int, request: c_ulong, argument: *mut c_void) -> c_int {
    // SAFETY: the caller's arguments.
    libc_answer(unsafe { answer(fd, request, argument) }) as c_int
}

/// The kernel's answer to the call.
///
/// # Safety
/// As for the system call.
pub(super) unsafe fn answer(fd: c_int, request: c_ulong, argument: *mut c_void) -> Answer {
    let call = || {
        let [fd, request, argument] = [fd as usize, request as usize, argument as usize];
        bypass::make(libc::SYS_ioctl, [fd, request, argument, 0, 0, 0])
    };
    let bytes = match request {
        REGISTER => REGISTER_BYTES,
        COPY => COPY_BYTES,
        _ => return call(),
    };
    if !PAGER.is_started() || !given::is_readable(argument as usize, bytes) {
        return call();
    }
    let _argument = whole(argument as usize, bytes, true);
    // SAFETY: this many bytes are readable there.
    let words = unsafe { argument.cast::<[u64; 3]>().read_unaligned() };
    let _source = match request {
        COPY => whole(words[1] as usize, words[2] as usize, false),
        _ => None,
    };
    if request == REGISTER
        && let Err(errno) = cede(words[0], words[1])
    {
        return -(errno as Answer);
    }
    call()
}

/// The program wants the faults of `[start, start + bytes)`. An invalid range is left to the kernel
/// to refuse.
fn cede(start: u64, bytes: u64) -> Result<(), c_int> {
    let whole = [start, bytes]
        .iter()
        .all(|one| one.is_multiple_of(PAGE_BYTES as u64));
    match start.checked_add(bytes) {
        Some(end) if whole && bytes > 0 => {
            PAGER.give_back_files(start, end);
            PAGER.cede(start, end)
        }
        _ => Ok(()),
    }
}
