//! Whether to poll for the end of a read rather than sleep.
//!
//! A sleeping thread leaves its CPU idle, and an idle CPU reacts slowly: of 57 µs for a read of one
//! page with sleeping, 18 were the wake-up (virtual machine, 4 KiB at depth 1: p50 57 sleeping, 39
//! polling; 76 against 52 where the disk interrupts the other CPU). So a thread polls for as long
//! as such a read takes, but only while no more threads wait than there are CPUs (otherwise other
//! work would have to wait), and not for a while after it did not pay: on a busy machine, where it
//! is interrupted meanwhile, on a slow disk, or if others start to wait meanwhile, so that it has
//! to go to sleep after all.

use core::cell::Cell;
use core::sync::atomic::{AtomicU32, Ordering};

use crate::sys;

/// How many threads wait for a read, and whether polling pays.
#[derive(Debug)]
pub struct Patience {
    /// Number of threads that may wait for a read while one of them polls.
    most: u32,
    waiting: AtomicU32,
    /// Number of reads that sleep before the next one polls.
    asleep: AtomicU32,
    /// That number after a read for which polling did not pay; doubles each time.
    penalty: AtomicU32,
}

/// A thread that waits for a read.
#[derive(Debug)]
pub struct Waiting<'a> {
    patience: &'a Patience,
    /// When it started to poll; 0 if it sleeps.
    began_ns: u64,
    /// Whether too many others started to wait while it polled.
    crowded: Cell<bool>,
}

impl Patience {
    /// Largest read to poll for, in pages.
    pub const PAGES: u32 = 4;
    /// Longest time to poll, in nanoseconds: twice the time of a read from flash.
    const LIMIT_NS: u64 = 120_000;
    /// Bounds of the penalty, in reads.
    const PENALTY: (u32, u32) = (16, 4096);

    /// For a process that may use the time of `most` CPUs.
    #[must_use]
    pub fn new(most: u32) -> Self {
        Self::among(sys::processors().min(most))
    }

    const fn among(processors: u32) -> Self {
        Self {
            most: if processors > 1 { processors } else { 0 },
            waiting: AtomicU32::new(0),
            asleep: AtomicU32::new(0),
            penalty: AtomicU32::new(Self::PENALTY.0),
        }
    }

    /// Starts to wait.
    #[must_use]
    pub fn begin(&self) -> Waiting<'_> {
        self.begin_at(sys::now_ns())
    }

    fn begin_at(&self, now_ns: u64) -> Waiting<'_> {
        let alone = self.waiting.fetch_add(1, Ordering::Relaxed) < self.most;
        let asleep = self.asleep.load(Ordering::Relaxed);
        if asleep > 0 {
            self.asleep.store(asleep - 1, Ordering::Relaxed);
        }
        let looks = alone && asleep == 0;
        Waiting {
            patience: self,
            began_ns: if looks { now_ns } else { 0 },
            crowded: Cell::new(false),
        }
    }

    fn learn(&self, spent_ns: u64) {
        let (least, most) = Self::PENALTY;
        if spent_ns < Self::LIMIT_NS {
            self.penalty.store(least, Ordering::Relaxed);
            return;
        }
        // If several were disturbed together, only the first one counts.
        if self.asleep.load(Ordering::Relaxed) > 0 {
            return;
        }
        let penalty = self.penalty.load(Ordering::Relaxed);
        self.asleep.store(penalty, Ordering::Relaxed);
        self.penalty
            .store((penalty * 2).min(most), Ordering::Relaxed);
    }

    /// In the child of a fork no thread waits.
    pub fn forked(&self) {
        self.waiting.store(0, Ordering::Relaxed);
    }
}

impl Waiting<'_> {
    /// Whether to poll rather than sleep, or to continue polling.
    #[must_use]
    pub fn looks_out(&self) -> bool {
        self.looks_out_at(sys::now_ns())
    }

    fn looks_out_at(&self, now_ns: u64) -> bool {
        if self.began_ns == 0 {
            return false;
        }
        let others = self.patience.waiting.load(Ordering::Relaxed) > self.patience.most;
        if others {
            self.crowded.set(true);
        }
        !others && now_ns - self.began_ns < Patience::LIMIT_NS
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if self.began_ns != 0 {
            self.patience.learn(match self.crowded.get() {
                true => Patience::LIMIT_NS,
                false => sys::now_ns() - self.began_ns,
            });
        }
        self.patience.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A start so early that polling until now has lasted too long.
    const NOW: u64 = 1;

    fn looks_out(waiting: &Waiting<'_>) -> bool {
        waiting.looks_out_at(NOW + Patience::LIMIT_NS - 1)
    }

    #[test]
    fn nobody_looks_out_where_more_wait_than_there_are_processors() {
        let patience = Patience::among(2);
        let waiting = [
            patience.begin_at(NOW),
            patience.begin_at(NOW),
            patience.begin_at(NOW),
        ];
        let looks = waiting.each_ref().map(looks_out);
        assert_eq!(looks, [false; 3]);
        let [one, two, three] = waiting;
        drop(three);
        assert!(looks_out(&one) && looks_out(&two));
        assert!(!looks_out(&Patience::among(1).begin_at(NOW)));
    }

    #[test]
    fn what_does_not_pay_is_tried_more_and_more_rarely() {
        let patience = Patience::among(2);
        for reads in [16, 32, 64] {
            patience.learn(Patience::LIMIT_NS);
            assert!((0..reads).all(|_| !looks_out(&patience.begin_at(NOW))));
        }
        assert!(looks_out(&patience.begin_at(NOW)));
    }

    #[test]
    fn nobody_looks_out_longer_than_reads_take() {
        let patience = Patience::among(2);
        let waiting = patience.begin_at(NOW);
        assert!(!waiting.looks_out_at(NOW + Patience::LIMIT_NS));
    }

    #[test]
    fn who_was_disturbed_lets_the_next_ones_sleep() {
        let patience = Patience::among(2);
        let [first, second] = [patience.begin_at(NOW), patience.begin_at(NOW)];
        assert!(looks_out(&first) && looks_out(&second));
        let third = patience.begin_at(NOW);
        assert!(![&first, &second, &third].map(looks_out).contains(&true));
        drop(third);
        drop(second);
        drop(first);
        assert!((0..Patience::PENALTY.0).all(|_| !looks_out(&patience.begin_at(NOW))));
        assert!(looks_out(&patience.begin_at(NOW)));
    }
}
