//! Whether to look out for the end of a read rather than to sleep.
//!
//! A sleeping thread leaves its processor idle, and an idle one answers slowly: of 57 µs that a read
//! of one page took asleep, 18 were the wake-up (virtual machine, 4 KiB at depth 1: p50 57 asleep,
//! 39 looking out; 76 against 52 where the disk interrupts the other processor). So a thread looks
//! out for as long as such a read takes, but only while no more threads wait than there are
//! processors (the others' work would have to wait for it), and not for a while where it did not
//! pay: on a busy machine, where it is interrupted meanwhile, on a slow disk, or where others start
//! to wait meanwhile, so that it has to go to sleep after all.

use core::cell::Cell;
use core::sync::atomic::{AtomicU32, Ordering};

use crate::sys;

/// Who waits for a read, and whether looking out pays.
#[derive(Debug)]
pub struct Patience {
    /// Threads that may wait for a read while one of them looks out.
    most: u32,
    waiting: AtomicU32,
    /// Reads that shall sleep before the next one looks out.
    asleep: AtomicU32,
    /// How many they are after a read that did not pay; doubles with each.
    penalty: AtomicU32,
}

/// A thread that waits for a read.
#[derive(Debug)]
pub struct Waiting<'a> {
    patience: &'a Patience,
    /// When it started to look out; 0 if it sleeps.
    began_ns: u64,
    /// Whether too many others came to wait while it looked out.
    crowded: Cell<bool>,
}

impl Patience {
    /// Largest read to look out for, in pages.
    pub const PAGES: u32 = 4;
    /// Nanoseconds to look out: twice what a read takes from flash.
    const LIMIT_NS: u64 = 120_000;
    /// Bounds of the penalty, in reads.
    const PENALTY: (u32, u32) = (16, 4096);

    /// For a process that may use `most` processors' time.
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
        // Of several that were disturbed together the first one learns it for all.
        if self.asleep.load(Ordering::Relaxed) > 0 {
            return;
        }
        let penalty = self.penalty.load(Ordering::Relaxed);
        self.asleep.store(penalty, Ordering::Relaxed);
        self.penalty
            .store((penalty * 2).min(most), Ordering::Relaxed);
    }

    /// In the child of a fork nobody waits.
    pub fn forked(&self) {
        self.waiting.store(0, Ordering::Relaxed);
    }
}

impl Waiting<'_> {
    /// Whether to look out rather than to sleep, or to go on so.
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

    /// A start so early that a watch that ends now has lasted too long.
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
