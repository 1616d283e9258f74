//! Keeps the pager's descriptors open when the program closes everything.

use super::{libc_answer, set_errno};
use crate::paging::PAGER;
use crate::paging::descriptors::OURS;
use crate::sys::{call3, call6};
use core::ffi::c_int;

/// One of these calls made through `syscall(2)`; `None` if `number` is a different one.
///
/// # Safety
/// As for the call.
pub(super) unsafe fn by_number(number: i64, arguments: [usize; 6]) -> Option<i64> {
    let [a, b, c, ..] = arguments;
    let (first, second, third) = (a as c_int, b as c_int, c as c_int);
    // SAFETY: the caller's arguments.
    let answer = unsafe {
        match number {
            libc::SYS_close => close(first),
            libc::SYS_close_range => close_range(a as u32, b as u32, third),
            libc::SYS_dup2 => dup2(first, second),
            libc::SYS_dup3 => dup3(first, second, third),
            _ => return None,
        }
    };
    Some(i64::from(answer))
}

/// `close(2)`.
///
/// # Safety
/// As for the system call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn close(fd: c_int) -> c_int {
    if PAGER.is_ours(fd) {
        set_errno(libc::EBADF);
        return -1;
    }
    // SAFETY: the program's own call.
    libc_answer(unsafe { call3(libc::SYS_close, fd as usize, 0, 0) }) as c_int
}

/// `close_range(2)`, except for the pager's own descriptors.
///
/// # Safety
/// As for the system call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn close_range(first: u32, last: u32, flags: c_int) -> c_int {
    let mut from = first;
    let mut ours = match PAGER.is_started() {
        true => PAGER.ours(),
        false => [-1; OURS],
    };
    ours.sort_unstable();
    let inside = ours.iter().filter_map(|&fd| u32::try_from(fd).ok());
    for fd in inside.filter(|fd| (first..=last).contains(fd)) {
        if fd > from
            && let answer @ ..=-1 = raw_range(from, fd - 1, flags)
        {
            return libc_answer(answer) as c_int;
        }
        from = fd + 1;
    }
    // A reversed range is left to the kernel to refuse.
    if from > last && from > first {
        return 0;
    }
    libc_answer(raw_range(from, last, flags)) as c_int
}

fn raw_range(first: u32, last: u32, flags: c_int) -> isize {
    // SAFETY: the program's own call, for a part of its range.
    unsafe {
        call3(
            libc::SYS_close_range,
            first as usize,
            last as usize,
            flags as usize,
        )
    }
}

/// `closefrom(3)`.
///
/// # Safety
/// As for the function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn closefrom(first: c_int) {
    // SAFETY: the caller's argument.
    unsafe { close_range(first.max(0).cast_unsigned(), u32::MAX, 0) };
}

/// `dup2(2)`.
///
/// # Safety
/// As for the system call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dup2(old: c_int, new: c_int) -> c_int {
    if PAGER.is_ours(new) {
        set_errno(libc::EBUSY);
        return -1;
    }
    // SAFETY: the program's own call.
    libc_answer(unsafe { call3(libc::SYS_dup2, old as usize, new as usize, 0) }) as c_int
}

/// `dup3(2)`.
///
/// # Safety
/// As for the system call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dup3(old: c_int, new: c_int, flags: c_int) -> c_int {
    if PAGER.is_ours(new) {
        set_errno(libc::EBUSY);
        return -1;
    }
    // SAFETY: the program's own call.
    let answer = unsafe {
        call6(
            libc::SYS_dup3,
            old as usize,
            new as usize,
            flags as usize,
            0,
            0,
            0,
        )
    };
    libc_answer(answer) as c_int
}
