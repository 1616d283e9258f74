//! The observer: measures how soon pages are used again, and keeps the figures up to date while
//! there is no paging. Exists only if the run shows these figures.

use crate::observe::{heat, survey};
use crate::paging::Pager;
use crate::sys::{self, thread};
use core::sync::atomic::AtomicU32;

/// Nanoseconds between checks.
const INTERVAL_NS: u64 = 100_000_000;

static NEVER: AtomicU32 = AtomicU32::new(0);

/// Starts it, if pages are to be watched.
pub fn start(pager: &'static Pager) -> bool {
    !pager.heat.is_on() || thread::start(run, core::ptr::from_ref(pager) as usize)
}

extern "C" fn run(pager: usize) -> ! {
    // SAFETY: published: `start` passed a reference that lives forever.
    let pager = unsafe { &*(pager as *const Pager) };
    let (mut last, mut survey_due) = (sys::now_ns(), 0);
    loop {
        sys::futex_wait(&NEVER, 0, Some(INTERVAL_NS));
        let now = sys::now_ns();
        heat::tick(pager, now, (now - last).min(2 * INTERVAL_NS));
        last = now;
        if now > survey_due {
            pager.refresh_limit();
            survey_due = now + survey::publish(pager);
        }
    }
}
