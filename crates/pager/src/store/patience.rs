//! Whether to look out for the end of a read rather than to sleep.
//!
//! A sleeping thread leaves its processor idle, and an idle one answers slowly: of 57 µs that a read
//! of one page took asleep, 18 were the wake-up (virtual machine, 4 KiB at depth 1: p50 57 asleep,
//! 39 looking out; 76 against 52 where the disk interrupts the other processor). So a thread looks
//! out for as long as such a read takes, but only while fewer threads do so than there are
//! processors to spare, and not for a while where it did not pay: on a busy machine, where it is
//! interrupted meanwhile, or on a slow disk.

use core::sync::atomic::{AtomicU32, Ordering};

use crate::sys;

/// Who looks out, and whether it pays.
#[derive(Debug)]
pub struct Patience {
    /// Threads that may look out at a time.
    most: u32,
    looking: AtomicU32,
    /// Reads that shall sleep before the next one looks out.
    asleep: AtomicU32,
    /// How many they are after a read that did not pay; doubles with each.
    penalty: AtomicU32,
}

impl Default for Patience {
    fn default() -> Self {
        Self::new()
    }
}

/// A thread that looks out.
#[derive(Debug)]
pub struct Looking<'a> {
    patience: &'a Patience,
    began_ns: u64,
}

impl Patience {
    /// Largest read to look out for, in pages.
    pub const PAGES: u32 = 4;
    /// Nanoseconds to look out: twice what a read takes from flash.
    pub const LIMIT_NS: u64 = 120_000;
    /// Bounds of the penalty, in reads.
    const PENALTY: (u32, u32) = (16, 4096);

    /// For this machine's processors.
    #[must_use]
    pub fn new() -> Self {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        Self::among(u32::try_from(processors).unwrap_or(u32::MAX))
    }

    const fn among(processors: u32) -> Self {
        Self {
            most: processors / 2,
            looking: AtomicU32::new(0),
            asleep: AtomicU32::new(0),
            penalty: AtomicU32::new(Self::PENALTY.0),
        }
    }

    /// Begins to look out, if that is likely to pay.
    #[must_use]
    pub fn begin(&self) -> Option<Looking<'_>> {
        let asleep = self.asleep.load(Ordering::Relaxed);
        if asleep > 0 {
            self.asleep.store(asleep - 1, Ordering::Relaxed);
            return None;
        }
        if self.looking.fetch_add(1, Ordering::Relaxed) >= self.most {
            self.looking.fetch_sub(1, Ordering::Relaxed);
            return None;
        }
        Some(Looking {
            patience: self,
            began_ns: sys::now_ns(),
        })
    }

    fn learn(&self, spent_ns: u64) {
        let (least, most) = Self::PENALTY;
        if spent_ns < Self::LIMIT_NS {
            self.penalty.store(least, Ordering::Relaxed);
            return;
        }
        let penalty = self.penalty.load(Ordering::Relaxed);
        self.asleep.store(penalty, Ordering::Relaxed);
        self.penalty
            .store((penalty * 2).min(most), Ordering::Relaxed);
    }

    /// In the child of a fork nobody looks out.
    pub fn forked(&self) {
        self.looking.store(0, Ordering::Relaxed);
    }
}

impl Looking<'_> {
    /// The read is over.
    pub fn end(self) {
        self.patience.learn(sys::now_ns() - self.began_ns);
        self.patience.looking.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_the_processors_look_out_at_most() {
        let patience = Patience::among(4);
        let one = patience.begin();
        let two = patience.begin();
        assert!(one.is_some() && two.is_some() && patience.begin().is_none());
        two.expect("begun").end();
        assert!(patience.begin().is_some());
        assert!(Patience::among(1).begin().is_none());
    }

    #[test]
    fn what_does_not_pay_is_tried_more_and_more_rarely() {
        let patience = Patience::among(2);
        let until_next = || (1..10_000).find(|_| patience.begin().map(Looking::end).is_some());
        patience.learn(Patience::LIMIT_NS);
        assert_eq!(until_next(), Some(17));
        patience.learn(Patience::LIMIT_NS);
        patience.learn(Patience::LIMIT_NS);
        assert_eq!(until_next(), Some(33));
    }
}
