//! The trimmer: has file pages paged out where they are in the way. A thread of its own, since a file
//! system may be slow to answer, and started when it is first needed: most programs have few such
//! pages.

use crate::paging::Pager;
use crate::sys::{self, thread};
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

static RUNS: AtomicBool = AtomicBool::new(false);
/// 1 while a round is wanted; the thread sleeps here.
static BELL: AtomicU32 = AtomicU32::new(0);
static NEVER: AtomicU32 = AtomicU32::new(0);
/// Nanoseconds between two looks at how much there is: a program that reads a mapped file from the
/// page cache gets some 100 MiB in this time.
const PAUSE_NS: u64 = 20_000_000;
/// Nanoseconds for which it looks by itself after the last round that paged something out: no fault
/// tells of file pages that come while managed memory rests.
const WATCH_NS: u64 = 500_000_000;

/// Wants a round. Called by the evictor.
pub fn rouse(pager: &'static Pager) {
    if !RUNS.swap(true, Ordering::Relaxed)
        && !thread::start(run, core::ptr::from_ref(pager) as usize)
    {
        RUNS.store(false, Ordering::Relaxed);
        return;
    }
    if BELL.swap(1, Ordering::SeqCst) == 0 {
        sys::futex_wake(&BELL, 1);
    }
}

/// The child of a fork has none.
pub fn forked() {
    RUNS.store(false, Ordering::Relaxed);
    BELL.store(0, Ordering::Relaxed);
}

extern "C" fn run(pager: usize) -> ! {
    // SAFETY: published: `rouse` passed a reference that lives forever.
    let pager = unsafe { &*(pager as *const Pager) };
    let mut paged_out_ns = 0;
    loop {
        let short = BELL.swap(0, Ordering::SeqCst) != 0;
        let now = sys::now_ns();
        if !short && now - paged_out_ns > WATCH_NS {
            sys::futex_wait(&BELL, 0, None);
            continue;
        }
        if !short {
            pager.refresh_limit();
        }
        if pager.file_pages.are_in_the_way(short, now) && pager.page_out_files() > 0 {
            paged_out_ns = now;
        }
        sys::futex_wait(&NEVER, 0, Some(PAUSE_NS));
    }
}
