//! Dropping pages that the store has: many ranges with one call, and thus one interrupt of the
//! other CPUs.

use super::Pager;
use super::batch::BATCH;
use crate::page::{PAGE_BYTES, Page};
use crate::sync::Word;
use crate::sys;
use core::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use pagewise_wire::shared::capability;

/// Set if a test disables `process_madvise`.
pub static DENIED: AtomicBool = AtomicBool::new(false);

/// The descriptor of this process for `process_madvise`.
static OWN_PIDFD: AtomicI32 = AtomicI32::new(-1);

/// Opens what `process_madvise` needs, and checks whether the kernel lets a process drop scattered
/// pages of its own in one call (Linux 6.13), using two unused pages.
pub fn prepare(pager: &Pager) {
    // SAFETY: the call takes no pointer.
    let answer = unsafe { sys::call3(libc::SYS_pidfd_open, sys::process_id() as usize, 0, 0) };
    OWN_PIDFD.store(sys::high(answer as i32).max(-1), Ordering::Relaxed);
    if pager.can(capability::PROCESS_MADVISE) || DENIED.load(Ordering::Relaxed) {
        return;
    }
    let Some(place) = sys::map(2 * PAGE_BYTES) else {
        return;
    };
    let ranges = [0, PAGE_BYTES].map(|offset| [place as usize + offset, PAGE_BYTES]);
    if ask(&ranges) == 2 * PAGE_BYTES {
        pager.add_capability(capability::PROCESS_MADVISE);
    }
    // SAFETY: own memory: mapped above for this purpose.
    unsafe { sys::unmap(place, 2 * PAGE_BYTES) };
}

/// In the child of a fork the descriptor is the parent's.
pub fn forked() {
    sys::close(OWN_PIDFD.swap(-1, Ordering::Relaxed));
}

/// The descriptor opened by [`prepare`].
#[must_use]
pub fn descriptor() -> i32 {
    OWN_PIDFD.load(Ordering::Relaxed)
}

/// Drops the locked pages of `all`; returns a bit for each page that the kernel refused.
pub(super) fn discard(pager: &Pager, all: &[(Page, Word)]) -> u128 {
    const _: () = assert!(BATCH <= 128);
    let mut ranges = [[0_usize; 2]; BATCH];
    let mut count = 0;
    for &(page, _) in all {
        let address = pager.table.address_of(page) as usize;
        match ranges[..count].last_mut() {
            Some([start, bytes]) if *start + *bytes == address => *bytes += PAGE_BYTES,
            _ => {
                ranges[count] = [address, PAGE_BYTES];
                count += 1;
            }
        }
    }
    if discard_together(pager, &ranges[..count]) == all.len() * PAGE_BYTES {
        return 0;
    }
    let mut refused = 0;
    for (place, &(page, _)) in all.iter().enumerate() {
        let start = pager.table.address_of(page);
        // SAFETY: page lock: the caller has it, and the store has the contents.
        let answer = unsafe { sys::advise(start, start + PAGE_BYTES as u64, libc::MADV_DONTNEED) };
        if answer != 0 {
            refused |= 1 << place;
            pager.counters.add(|all| &all.refused, 1);
        }
    }
    refused
}

/// Drops `ranges` of the pager's own memory, which is no longer needed.
pub(super) fn discard_own(pager: &Pager, ranges: &[[usize; 2]]) {
    let bytes: usize = ranges.iter().map(|[_, bytes]| bytes).sum();
    if discard_together(pager, ranges) == bytes {
        return;
    }
    for &[start, bytes] in ranges {
        let (start, end) = (start as u64, (start + bytes) as u64);
        // SAFETY: own memory: the caller gives up these pages.
        unsafe { sys::advise(start, end, libc::MADV_DONTNEED) };
    }
}

/// Drops `ranges` with one call, and thus one interrupt of the other CPUs. Returns how many bytes.
fn discard_together(pager: &Pager, ranges: &[[usize; 2]]) -> usize {
    if let &[[start, bytes]] = ranges {
        let (start, end) = (start as u64, (start + bytes) as u64);
        // SAFETY: page lock: the caller has those of all pages, and the store has the contents; or own
        // memory of `discard_own`.
        let answer = unsafe { sys::advise(start, end, libc::MADV_DONTNEED) };
        return if answer == 0 { bytes } else { 0 };
    }
    if ranges.is_empty() || !pager.can(capability::PROCESS_MADVISE) {
        return 0;
    }
    ask(ranges)
}

/// `process_madvise(2)` on this process; returns how many bytes were dropped.
fn ask(ranges: &[[usize; 2]]) -> usize {
    // SAFETY: page lock or own memory, as ensured by the callers for the ranges; live argument: the
    // array.
    let answer = unsafe {
        sys::call6(
            libc::SYS_process_madvise,
            OWN_PIDFD.load(Ordering::Relaxed) as usize,
            ranges.as_ptr() as usize,
            ranges.len(),
            libc::MADV_DONTNEED as usize,
            0,
            0,
        )
    };
    usize::try_from(answer).unwrap_or(0)
}
