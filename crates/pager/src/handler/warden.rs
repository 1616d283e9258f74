//! The warden: in the child of a fork, checks what the kernel copies for it, and whether its share of
//! the run's budget has become smaller than its resident memory. Writes to pages that it shared with
//! its parent are not reported, so it may have much memory without ever faulting; the helpers normally
//! start with its first fault, and otherwise through this thread. They also start when all of its
//! pages are wanted in memory.

use crate::figures::places;
use crate::page::PAGE_BYTES;
use crate::paging::Pager;
use crate::sys::{self, thread};
use core::sync::atomic::AtomicU32;

/// Nanoseconds between checks while there is nothing to copy.
const INTERVAL_NS: u64 = 100_000_000;
/// A child with less than this part of its share has nothing to give back.
const LEAST_PART: u64 = 16;

static NEVER: AtomicU32 = AtomicU32::new(0);

/// Starts it, if all processes of the run share a budget and the child has much memory.
pub fn start(pager: &'static Pager) -> bool {
    let least = places::share().map(|share| share / LEAST_PART / PAGE_BYTES as u64);
    let wanted = least.is_some_and(|least| pager.budget.resident() > least);
    !wanted || thread::start(run, core::ptr::from_ref(pager) as usize)
}

extern "C" fn run(pager: usize) -> ! {
    // SAFETY: published: `start` passed a reference that lives forever.
    let pager = unsafe { &*(pager as *const Pager) };
    while !pager.own_threads.are_running() {
        let pause_ns = pager.copies_due_ns().unwrap_or(INTERVAL_NS);
        sys::futex_wait(&NEVER, 0, Some(pause_ns));
        if pager.gate.is_closed() {
            continue;
        }
        pager.follow_copies();
        if pager.is_outdated() {
            pager.refresh_limit();
        }
        if pager.budget.is_short() || pager.is_to_hold() {
            pager.ensure_own_threads();
        }
    }
    loop {
        sys::futex_wait(&NEVER, 0, None);
    }
}
