//! The rule that keeps the pager from waiting for itself: *a thread holds no lock of the pager
//! while it touches managed memory*, by itself, in libc, or in the kernel on its behalf.
//!
//! The thread that handles the access may need exactly what this thread holds: the evictor needs
//! the evictions' lock, the first fault of a process needs the start of the pager's threads, and
//! every thread needs the absence of a fork. So memory that will be touched meanwhile is brought in
//! and pinned before any lock is taken: the stack of the thread
//! ([`Pager::keep_stack`](super::Pager::keep_stack)), and around a fork everything that libc and
//! the kernel write ([`Pager::keep`](super::Pager::keep)).
//!
//! Builds with debug assertions check it as faults arrive.

use super::{Pager, fatal};
use crate::sys::{self, signals};
use core::sync::atomic::AtomicU32;

/// A thread whose fault has arrived may have been woken since by a thread that resolved it along
/// with a neighbour, and hold the locks that it then takes; but a thread that breaks the rule holds
/// its lock until the fault is handled. So this many checks decide,
const LOOKS: usize = 100;
/// with this many nanoseconds between them.
const PAUSE_NS: u64 = 2_000_000;

/// Ends the process if `thread`, whose fault at `address` has arrived, breaks the rule.
pub fn check(pager: &Pager, thread: u32, address: u64) {
    if let Some(what) = kept_by(pager, thread) {
        fatal::say(format_args!(
            "thread {thread} touches managed memory at {address:#x} and holds {what}"
        ));
        signals::die_by(libc::SIGABRT);
    }
}

/// The lock of the pager that `thread` holds at each of many checks.
fn kept_by(pager: &Pager, thread: u32) -> Option<&'static str> {
    let never = AtomicU32::new(0);
    let first = held_by(pager, thread)?;
    let still = (0..LOOKS).all(|_| {
        sys::futex_wait(&never, 0, Some(PAUSE_NS));
        held_by(pager, thread) == Some(first)
    });
    still.then_some(first)
}

/// The lock of the pager that `thread` holds.
fn held_by(pager: &Pager, thread: u32) -> Option<&'static str> {
    let locks = [
        (&pager.files.adopting, "the files"),
        (&pager.regions.lock, "the regions"),
        (&pager.evictions, "the evictions"),
        (&pager.own_threads.starting, "the start of the threads"),
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
        assert_eq!(kept_by(&PAGER, own), Some("the evictions"));
        let other = std::thread::spawn(|| held_by(&PAGER, thread_id()));
        assert_eq!(other.join().expect("it ends"), None);
        let looks = std::thread::spawn(move || kept_by(&PAGER, own));
        std::thread::sleep(std::time::Duration::from_millis(20));
        drop(evictions);
        assert_eq!(looks.join().expect("it ends"), None, "held for a moment");
        assert_eq!(held_by(&PAGER, own), None);
    }
}
