//! Whether to spin for the next fault of a lone thread rather than sleep until it comes.
//!
//! If a single thread of a program misses page after page, the reader of faults sleeps for only a
//! few microseconds at a time, on an otherwise idle CPU, and waking it takes longer than everything
//! else except the disk: of 120 us from one miss of redis-server to the next, 22 were this wake-up,
//! 56 the read and 19 the server's own wake-up (virtual machine with two processors, measured with
//! tracepoints). So the reader spins for as long as spinning has paid recently, and after each vain
//! attempt it sleeps through twice as many faults as before.

use crate::sys;
use core::sync::atomic::{AtomicU32, Ordering};

/// Longest time to spin, in nanoseconds.
const LIMIT_NS: u64 = 60_000;
/// Largest number of faults to sleep through.
const MOST_ASLEEP: u32 = 1024;

/// Whether spinning has paid. Used only by the reader.
#[derive(Debug)]
pub struct Vigil {
    /// Faults to sleep through before the next vigil.
    asleep: AtomicU32,
    /// The number of faults to sleep through after a vain attempt.
    penalty: AtomicU32,
}

/// The state of the reader.
pub static VIGIL: Vigil = Vigil::new();

impl Vigil {
    const fn new() -> Self {
        Self {
            asleep: AtomicU32::new(0),
            penalty: AtomicU32::new(1),
        }
    }

    /// Spins, if that may pay, until `look` finds something. Returns whether it did.
    pub fn keep(&self, mut look: impl FnMut() -> Result<(), i32>) -> bool {
        let asleep = self.asleep.load(Ordering::Relaxed);
        if asleep > 0 {
            self.asleep.store(asleep - 1, Ordering::Relaxed);
            return false;
        }
        let began = sys::now_ns();
        let found = loop {
            match look() {
                Ok(()) => break true,
                Err(libc::EAGAIN) if sys::now_ns() - began < LIMIT_NS => core::hint::spin_loop(),
                Err(_) => break false,
            }
        };
        self.learn(found);
        found
    }

    fn learn(&self, found: bool) {
        let penalty = self.penalty.load(Ordering::Relaxed);
        let next = match found {
            true => 1,
            false => {
                self.asleep.store(penalty, Ordering::Relaxed);
                (penalty * 2).min(MOST_ASLEEP)
            }
        };
        self.penalty.store(next, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// For how many of `faults` the handler spins if the answer is `answer`.
    fn looks(vigil: &Vigil, faults: u32, answer: Result<(), i32>) -> u32 {
        let mut looks = 0;
        for _ in 0..faults {
            vigil.keep(|| {
                looks += 1;
                answer
            });
        }
        looks
    }

    #[test]
    fn what_comes_soon_is_always_looked_out_for() {
        assert_eq!(looks(&Vigil::new(), 100, Ok(())), 100);
    }

    #[test]
    fn what_does_not_come_is_looked_out_for_more_and_more_rarely() {
        let vigil = Vigil::new();
        let refused = Err(libc::EOPNOTSUPP);
        // Asleep after each: 1, 2, 4, ... 64.
        assert_eq!(looks(&vigil, 7 + 127, refused), 7);
        assert_eq!(looks(&vigil, 100, Ok(())), 100);
    }
}
