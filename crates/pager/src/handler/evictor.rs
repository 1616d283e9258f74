//! The evictor: keeps some room free, so that faults need not wait for the disk to write.

use crate::core::Pager;
use crate::core::evict;
use crate::observe::survey;
use crate::sys::{self, thread};

/// Nanoseconds between measurements of what else is resident.
const REFRESH_NS: u64 = 20_000_000;

/// Starts it.
pub fn start(pager: &'static Pager) -> bool {
    thread::start(run, core::ptr::from_ref(pager) as usize)
}

extern "C" fn run(pager: usize) -> ! {
    // SAFETY: `start` passed a reference that lives for ever.
    let pager = unsafe { &*(pager as *const Pager) };
    let (mut refreshed, mut survey_due) = (0, 0);
    let mut fruitless = false;
    loop {
        pager.budget.await_alarm(fruitless);
        let now = sys::now_ns();
        if now - refreshed > REFRESH_NS {
            refreshed = now;
            pager.refresh_limit();
        }
        if now > survey_due {
            // The observer surveys as well, where there is one.
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
