//! The evictor: keeps some room free, so that faults need not wait for disk writes.

use super::trimmer;
use crate::figures::places;
use crate::observe::survey;
use crate::paging::Pager;
use crate::paging::evict;
use crate::sys::{self, thread};

/// Nanoseconds between measurements of other resident memory.
const REFRESH_NS: u64 = 20_000_000;
/// Nanoseconds after which the evictor notices that its share of the run's budget has become
/// smaller, or that all pages are wanted in memory; the second value applies without other
/// processes that have shares.
const PAUSE_NS: [u64; 2] = [100_000_000, 500_000_000];
/// The same when nothing happens: other processes of the run depend on the figure of this one.
const IDLE_REFRESH_NS: u64 = 500_000_000;

/// Starts it.
pub fn start(pager: &'static Pager) -> bool {
    thread::start(run, core::ptr::from_ref(pager) as usize)
}

extern "C" fn run(pager: usize) -> ! {
    // SAFETY: published: `start` passed a reference that lives forever.
    let pager = unsafe { &*(pager as *const Pager) };
    let (mut refreshed, mut survey_due) = (0, 0);
    let mut fruitless = false;
    loop {
        let usual_ns = PAUSE_NS[usize::from(!places::has_others())];
        let pause_ns = pager.copies_due_ns().unwrap_or(usual_ns);
        let rung = pager
            .budget
            .await_alarm(fruitless, places::run().map(|_| pause_ns));
        pager.follow_copies();
        pager.follow_hold();
        let now = sys::now_ns();
        let outdated = pager.is_outdated();
        if !rung && !outdated && now - refreshed < IDLE_REFRESH_NS {
            continue;
        }
        if outdated || now - refreshed > REFRESH_NS {
            refreshed = now;
            pager.scratch.give_back();
            pager.refresh_limit();
        }
        if pager.file_pages.are_in_the_way(rung, now) && !pager.holds_all() {
            trimmer::rouse(pager);
        }
        if rung && now > survey_due {
            // The observer surveys as well, if there is one.
            survey_due = now
                + match pager.heat.is_on() {
                    true => REFRESH_NS,
                    false => survey::publish(pager),
                };
            let _evictions = pager.evictions.hold();
            pager.store().reclaim();
        }
        fruitless = !evict::make_room(pager);
    }
}
