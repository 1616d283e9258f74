//! Common parts of the shim: buffers brought in and pinned, and the calls made with them.

use crate::intercept::given;
use crate::paging::PAGER;
use crate::paging::pins::Pin;
use crate::sys::{Answer, call6};
use core::ffi::c_char;
use core::sync::atomic::Ordering;
use pagewise_wire::shared::capability;

/// Largest number of parts that the kernel accepts in a call (`UIO_MAXIOV`).
const MOST_PARTS: usize = 1024;

/// Whether any region can need this; otherwise nothing has to be checked.
pub fn is_needed() -> bool {
    let used = PAGER.choices.signals_used.load(Ordering::Relaxed);
    PAGER.is_started() && (used || !PAGER.can(capability::MOVE))
}

/// Whether a buffer has to be pinned.
pub fn raises(start: usize, bytes: usize) -> bool {
    let (start, bytes) = (start as u64, bytes as u64);
    is_needed() && bytes != 0 && PAGER.raises(start, start.saturating_add(bytes))
}

/// Pins a buffer. Also returns how much of its length can be pinned.
pub fn buffer(start: usize, bytes: usize, write: bool) -> (usize, Option<Pin<'static>>) {
    if !is_needed() || !PAGER.raises(start as u64, (start as u64).saturating_add(bytes as u64)) {
        return (bytes, None);
    }
    let bytes = bytes.min(PAGER.most_pinned() as usize);
    (bytes, PAGER.pin(start as u64, bytes as u64, write))
}

/// Pins a whole structure or message.
pub fn whole(start: usize, bytes: usize, write: bool) -> Option<Pin<'static>> {
    match is_needed() && start != 0 {
        true => PAGER.pin(start as u64, bytes as u64, write),
        false => None,
    }
}

/// Pins a string: up to its end, at most the length of a path.
pub fn text(start: *const c_char) -> Option<Pin<'static>> {
    if !is_needed() || start.is_null() {
        return None;
    }
    let length = given::text_length(start)?.min(libc::PATH_MAX as usize);
    PAGER.pin(start as u64, length as u64 + 1, false)
}

/// Parts of a scattered buffer, with pins.
pub struct Parts {
    pins: [Option<Pin<'static>>; 16],
    pub list: [libc::iovec; 16],
    pub count: usize,
}

/// Pins the parts of a scattered buffer; parts beyond 16, or beyond what can be pinned, are left
/// out of a call that may be partial.
pub fn parts(list: *const libc::iovec, count: usize, write: bool) -> Option<Parts> {
    if !is_needed() || count == 0 || count > MOST_PARTS {
        return None;
    }
    if !given::is_readable(list as usize, count * size_of::<libc::iovec>()) {
        return None;
    }
    // SAFETY: the program's own list, which is readable.
    let list = unsafe { core::slice::from_raw_parts(list, count) };
    let raises = list.iter().any(|part| {
        let start = part.iov_base as u64;
        PAGER.raises(start, start.saturating_add(part.iov_len as u64))
    });
    if !raises {
        return None;
    }
    let mut kept = Parts {
        pins: [const { None }; 16],
        list: [libc::iovec {
            iov_base: core::ptr::null_mut(),
            iov_len: 0,
        }; 16],
        count: 0,
    };
    for part in list.iter().take(16) {
        let (bytes, pin) = buffer(part.iov_base as usize, part.iov_len, write);
        kept.pins[kept.count] = pin;
        kept.list[kept.count] = libc::iovec {
            iov_base: part.iov_base,
            iov_len: bytes,
        };
        kept.count += 1;
        if bytes < part.iov_len {
            break;
        }
    }
    Some(kept)
}

/// Calls libc's own function or, if a buffer has to be pinned, the system call itself. Cancellation
/// points of libc remain such for all programs that do not use SIGBUS.
macro_rules! forward {
    ($name:literal, ($($argument:expr),*), fn($($type:ty),*) -> $answer:ty) => {
        crate::intercept::signals::next!($name, fn($($type),*) -> $answer, $($argument),*)
    };
    // The same for a function that not each libc has.
    ($name:literal, ($($argument:expr),*), fn($($type:ty),*) -> $answer:ty, $otherwise:expr) => {{
        static NEXT: $crate::intercept::signals::Next =
            $crate::intercept::signals::Next::new($name);
        match NEXT.address() {
            0 => $otherwise,
            // SAFETY: libc's function of this name has this type; the arguments are the caller's.
            address => unsafe {
                let function: unsafe extern "C" fn($($type),*) -> $answer =
                    core::mem::transmute(address);
                function($($argument),*)
            },
        }
    }};
}

pub fn raw(number: i64, arguments: [usize; 6]) -> Answer {
    let [a, b, c, d, e, f] = arguments;
    // SAFETY: the program's own call, on pinned buffers.
    unsafe { call6(number, a, b, c, d, e, f) }
}

pub(super) use forward;
