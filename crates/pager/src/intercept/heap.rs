//! The end of the heap.

use super::libc_code::of_libc;
use super::{address_space, locks, set_errno};
use crate::page::page_ceil;
use crate::paging::PAGER;
use crate::paging::adopt::Purpose;
use crate::sync::Lock;
use crate::sys::{Answer, call3};
use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

/// The address of libc's variable for the end of the heap.
static LIBC_BREAK: AtomicPtr<*mut c_void> = AtomicPtr::new(core::ptr::null_mut());
/// The end of the heap, as known to the kernel; 0 before it is known.
static HEAP_END: AtomicU64 = AtomicU64::new(0);
static HEAP: Lock = Lock::new();

/// Finds what [`brk`] needs.
pub fn prepare() {
    // There since glibc 2.2.5.
    LIBC_BREAK.store(of_libc(c"__curbrk").cast(), Ordering::Release);
}

/// The present heap is managed as well.
pub fn adopt_heap() {
    // SAFETY: queries the present end.
    let end = unsafe { call3(libc::SYS_brk, 0, 0, 0) } as u64;
    HEAP_END.store(page_ceil(end), Ordering::Release);
}

/// `brk(2)`.
///
/// # Safety
/// As for the system call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn brk(address: *mut c_void) -> c_int {
    let known = HEAP_END.load(Ordering::Acquire);
    let grows = (address as u64).saturating_sub(known);
    if known != 0 && grows > 0 && locks::refuses(grows, libc::PROT_WRITE) {
        set_errno(libc::ENOMEM);
        return -1;
    }
    let moved = move_break(address, true);
    let end = HEAP_END.load(Ordering::Acquire);
    if moved && known != 0 && end > known {
        locks::follow(known, end, libc::PROT_WRITE);
    }
    match moved {
        true => 0,
        false => {
            set_errno(libc::ENOMEM);
            -1
        }
    }
}

/// `brk(2)` past libc, of which libc's own variable learns nothing: the end of the heap.
pub(super) fn raw_brk(address: usize) -> Answer {
    let known = HEAP_END.load(Ordering::Acquire);
    let grows = (address as u64).saturating_sub(known);
    let refused = known != 0 && grows > 0 && locks::refuses(grows, libc::PROT_WRITE);
    if address != 0 && !refused {
        move_break(address as *mut c_void, false);
    }
    // SAFETY: queries the present end.
    unsafe { call3(libc::SYS_brk, 0, 0, 0) }
}

/// Requests another end of the heap from the kernel, `through_libc` where libc is to know it. Returns
/// whether it was granted.
fn move_break(address: *mut c_void, through_libc: bool) -> bool {
    let _quiet = PAGER.undisturbed();
    let _heap = HEAP.hold();
    // SAFETY: the program's own call.
    let call = || unsafe { call3(libc::SYS_brk, address as usize, 0, 0) };
    let wanted = page_ceil(address as u64);
    let known = HEAP_END.load(Ordering::Acquire);
    let shrinks = PAGER.is_started() && known != 0 && wanted < known && wanted != 0;
    let mut end = 0;
    let mut call = || {
        end = call() as u64;
        // A refusal leaves the end where it was.
        match end < address as u64 || page_ceil(end) > wanted {
            true => -(libc::ENOMEM as Answer),
            false => 0,
        }
    };
    match shrinks {
        true => PAGER.vacating(wanted, known, call),
        false => call(),
    };
    let place = LIBC_BREAK.load(Ordering::Acquire);
    if through_libc && !place.is_null() {
        // SAFETY: libc's own variable, which its `brk` sets in the same way.
        unsafe { *place = end as *mut c_void };
    }
    if end < address as u64 {
        let grows = (address as u64).saturating_sub(end);
        address_space::explain(-(libc::ENOMEM as Answer), grows);
        return false;
    }
    let grown = page_ceil(end);
    if PAGER.is_started() && known != 0 {
        if grown > known {
            PAGER.adopt(known, grown, Purpose::Allocator);
        }
        HEAP_END.store(grown, Ordering::Release);
    }
    true
}
