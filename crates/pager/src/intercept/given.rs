//! Memory to which the program points in a call; it may be unreadable. The kernel then answers
//! EFAULT, and so must code that reads it before the kernel does.

use crate::page::{PAGE_BYTES, page_floor};
use crate::paging::PAGER;
use crate::paging::pins::Pin;
use crate::sys::{Answer, call6};
use core::ffi::c_char;

/// Bytes that the kernel reads per check.
const LOOK: usize = 8;
/// Longest text that is read: more than the kernel accepts in an argument (`MAX_ARG_STRLEN`).
const MOST_TEXT: usize = 1 << 20;

/// Whether `bytes` bytes from `start` on can be read.
pub fn is_readable(start: usize, bytes: usize) -> bool {
    // The kernel's half of the addresses is behind this one.
    const USERS: usize = 1 << 56;
    let last = start.checked_add(bytes.saturating_sub(1));
    let Some(last) = last.filter(|last| *last < USERS) else {
        return false;
    };
    let first = page_floor(start as u64) as usize;
    // Each page has a single protection: one word per page is enough.
    bytes == 0 || (first..=last).step_by(PAGE_BYTES).all(is_page_readable)
}

/// If faults raise SIGBUS, the kernel cannot read a missing page either: it is brought in first.
fn is_page_readable(page: usize) -> bool {
    kernel_reads(page) || {
        let _pin: Option<Pin<'_>> = PAGER.pin(page as u64, PAGE_BYTES as u64, false);
        kernel_reads(page)
    }
}

/// `rt_sigprocmask` reads the set before it checks what to do with it, and this number is not a
/// valid operation (Linux 6.18, `kernel/signal.c`): so it answers EINVAL, or EFAULT.
fn kernel_reads(page: usize) -> bool {
    const NOTHING: usize = 77;
    const UNREADABLE: Answer = -(libc::EFAULT as isize);
    // The last word, as an address of zero would mean that there is no set.
    let word = page + PAGE_BYTES - LOOK;
    // SAFETY: the kernel checks the address, and nothing is changed.
    let answer = unsafe { call6(libc::SYS_rt_sigprocmask, NOTHING, word, 0, LOOK, 0, 0) };
    answer != UNREADABLE
}

/// Length of a text; `None` if it cannot be read to its end.
pub fn text_length(text: *const c_char) -> Option<usize> {
    let start = text as usize;
    let mut length = 0;
    while length < MOST_TEXT {
        let at = start.checked_add(length)?;
        let room = PAGE_BYTES - at % PAGE_BYTES;
        if !is_readable(at, 1) {
            return None;
        }
        // SAFETY: the page is readable up to its end.
        let found = unsafe { libc::strnlen(at as *const c_char, room) };
        length += found;
        if found < room {
            return Some(length);
        }
    }
    None
}

/// Number of pointers in a list that ends with null, or is null itself; `None` if it cannot be
/// read.
pub fn list_length(list: *const *const c_char) -> Option<usize> {
    if list.is_null() {
        return Some(0);
    }
    let mut known = usize::MAX;
    for count in 0..MOST_TEXT {
        let place = list.wrapping_add(count);
        let last = (place as usize).saturating_add(size_of::<usize>() - 1);
        let pages = [place as usize, last].map(|at| page_floor(at as u64) as usize);
        for page in pages {
            if page != known && !is_readable(page, 1) {
                return None;
            }
            known = page;
        }
        // SAFETY: its pages are readable.
        if unsafe { place.read_unaligned() }.is_null() {
            return Some(count);
        }
    }
    None
}
