//! The rule that keeps the pager from waiting for itself: *a thread holds nothing of the pager's while
//! it touches managed memory*, by itself, in libc, or in the kernel on its behalf.
//!
//! Who serves the touch may need just what the thread holds: the evictor needs the evictions' lock,
//! the first fault of a process the helpers' start, everyone that no fork is under way. So what will
//! be touched meanwhile is brought in and kept before anything is taken: the stack on which the thread
//! stands ([`Pager::keep_stack`](super::Pager::keep_stack)), and around a fork all that libc and the
//! kernel write ([`Pager::keep`](super::Pager::keep)).
//!
//! Builds with debug assertions check it as faults arrive.

use super::{Pager, fatal};
use crate::handler;
use crate::sys::signals;

/// Ends the process where `thread`, whose fault at `address` has arrived, breaks the rule.
pub fn check(pager: &Pager, thread: u32, address: u64) {
    if let Some(what) = held_by(pager, thread) {
        fatal::say(format_args!(
            "thread {thread} touches managed memory at {address:#x} and holds {what}"
        ));
        signals::die_by(libc::SIGABRT);
    }
}

/// What of the pager's `thread` holds.
fn held_by(pager: &Pager, thread: u32) -> Option<&'static str> {
    let locks = [
        (&pager.regions.lock, "the regions"),
        (&pager.evictions, "the evictions"),
        (handler::starting(), "the helpers' start"),
    ];
    let mut held = locks
        .into_iter()
        .filter(|(lock, _)| lock.is_held_by(thread));
    held.next().map(|(_, what)| what)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::thread_id;

    #[test]
    fn a_thread_that_holds_something_is_told_from_one_that_does_not() {
        static PAGER: Pager = Pager::new();
        let own = thread_id();
        assert_eq!(held_by(&PAGER, own), None);
        let evictions = PAGER.evictions.hold();
        assert_eq!(held_by(&PAGER, own), Some("the evictions"));
        let other = std::thread::spawn(|| held_by(&PAGER, thread_id()));
        assert_eq!(other.join().expect("it ends"), None);
        drop(evictions);
        assert_eq!(held_by(&PAGER, own), None);
    }
}
