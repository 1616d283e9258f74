//! How many pages may be resident, and which threads wait for room.

use crate::sys;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// Pages that are evicted together at most, and at least: no reader of one run asks for more room.
const BATCH: u64 = super::batch::BATCH as u64;
const LEAST_BATCH: u64 = super::scratch::BUFFER_PAGES as u64;
/// A limit of fewer pages than this (64 MiB) is small: what is kept free there is a larger part of
/// it, and each page more may be the one that lets a loop fit.
const SMALL: u64 = 16_384;

/// The evictor sleeps.
const ASLEEP: u32 = 0;
/// It was woken.
const RUNG: u32 = 1;
/// It is at work, and checks by itself whether there is more.
const AT_WORK: u32 = 2;

/// The budget, in pages.
#[derive(Debug)]
pub struct Budget {
    limit: AtomicU64,
    resident: AtomicU64,
    peak: AtomicU64,
    /// [`ASLEEP`], [`RUNG`] or [`AT_WORK`]; the evictor sleeps here.
    alarm: AtomicU32,
    /// Counts batches of evictions; threads that wait for room sleep here.
    progress: AtomicU32,
    waiting: AtomicU32,
    /// Nothing can be evicted (everything is pinned or locked): exceeding the budget is better than
    /// a hang.
    overdraft: AtomicBool,
}

impl Budget {
    /// No room yet.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            limit: AtomicU64::new(u64::MAX / 2),
            resident: AtomicU64::new(0),
            peak: AtomicU64::new(0),
            alarm: AtomicU32::new(0),
            progress: AtomicU32::new(0),
            waiting: AtomicU32::new(0),
            overdraft: AtomicBool::new(false),
        }
    }

    /// Sets the number of pages that may be resident.
    pub fn set_limit(&self, pages: u64) {
        self.limit.store(pages, Ordering::Relaxed);
        self.check(self.resident());
    }

    /// Pages that may be resident.
    #[must_use]
    pub fn limit(&self) -> u64 {
        self.limit.load(Ordering::Relaxed)
    }

    /// Pages that are resident.
    #[must_use]
    pub fn resident(&self) -> u64 {
        self.resident.load(Ordering::Relaxed)
    }

    /// Peak number of resident pages.
    #[must_use]
    pub fn peak(&self) -> u64 {
        self.peak.load(Ordering::Relaxed)
    }

    /// Room that the evictor keeps free, so that faults need not wait and clusters are not cut: a
    /// 64th of the budget, a 128th of a small one. What is kept free is missing for pages in use.
    #[must_use]
    pub fn slack(&self) -> u64 {
        let limit = self.limit();
        match limit < SMALL {
            true => (limit / 128).max(32).min(limit / 8),
            false => (limit / 64).min(2048),
        }
    }

    /// Pages to evict together.
    #[must_use]
    pub fn batch(&self) -> u64 {
        (self.limit() / 128).clamp(LEAST_BATCH, BATCH)
    }

    /// Takes room for `pages` pages, waiting for evictions if need be. Returns whether it waited.
    /// The caller holds no page.
    pub fn reserve(&self, pages: u64) -> bool {
        let mut waited = false;
        while !self.attempt(pages) {
            if self.overdraft.load(Ordering::Relaxed) {
                self.take(pages);
                break;
            }
            waited = true;
            self.wait(pages);
        }
        waited
    }

    /// Takes room if there is any.
    pub fn attempt(&self, pages: u64) -> bool {
        let now = self.resident.fetch_add(pages, Ordering::Relaxed) + pages;
        self.check(now);
        if now <= self.limit() {
            if now > self.peak() {
                self.peak.fetch_max(now, Ordering::Relaxed);
            }
            return true;
        }
        self.resident.fetch_sub(pages, Ordering::Relaxed);
        false
    }

    /// Takes room for at most `pages` pages, as far as possible without waiting. Returns for how
    /// many.
    pub fn attempt_some(&self, pages: u64) -> u64 {
        if pages == 0 {
            return 0;
        }
        let now = self.resident.fetch_add(pages, Ordering::Relaxed) + pages;
        self.check(now);
        let excess = now.saturating_sub(self.limit()).min(pages);
        self.resident.fetch_sub(excess, Ordering::Relaxed);
        self.peak.fetch_max(now - excess, Ordering::Relaxed);
        pages - excess
    }

    /// Gives back room that was taken but not used for pages.
    pub fn release_unused(&self, pages: u64) {
        if pages > 0 {
            self.release(pages);
        }
    }

    /// Takes room whether there is any or not: the pages are already resident.
    pub fn take(&self, pages: u64) {
        let now = self.resident.fetch_add(pages, Ordering::Relaxed) + pages;
        self.peak.fetch_max(now, Ordering::Relaxed);
        self.check(now);
    }

    /// Gives room back.
    pub fn release(&self, pages: u64) {
        self.resident.fetch_sub(pages, Ordering::Relaxed);
        self.wake_waiting();
    }

    fn wake_waiting(&self) {
        self.progress.fetch_add(1, Ordering::SeqCst);
        if self.waiting.load(Ordering::SeqCst) != 0 {
            sys::futex_wake(&self.progress, i32::MAX);
        }
    }

    fn check(&self, now: u64) {
        if now + self.slack() > self.limit() && self.alarm.load(Ordering::Relaxed) == 0 {
            self.rouse();
        }
    }

    /// Wakes the evictor.
    pub fn rouse(&self) {
        let rung = self
            .alarm
            .compare_exchange(ASLEEP, RUNG, Ordering::SeqCst, Ordering::Relaxed);
        if rung.is_ok() {
            sys::futex_wake(&self.alarm, 1);
        }
    }

    fn wait(&self, pages: u64) {
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let seen = self.progress.load(Ordering::SeqCst);
        self.rouse();
        if self.resident() + pages > self.limit() && !self.overdraft.load(Ordering::SeqCst) {
            // The timeout covers a limit that rises without any eviction.
            sys::futex_wait(&self.progress, seen, Some(50_000_000));
        }
        self.waiting.fetch_sub(1, Ordering::SeqCst);
    }

    /// The evictor sleeps until there is work. `fruitless` means that it found nothing to evict
    /// last time: then it waits for an alarm even if room is short. It waits for at most `most_ns`
    /// (`None`: forever). Returns whether there was an alarm.
    pub fn await_alarm(&self, fruitless: bool, most_ns: Option<u64>) -> bool {
        self.alarm.store(ASLEEP, Ordering::SeqCst);
        // A thread that ran short before the store above raised no alarm.
        if self.is_short() && !fruitless {
            self.alarm.store(AT_WORK, Ordering::SeqCst);
            return true;
        }
        while self.alarm.load(Ordering::SeqCst) == ASLEEP {
            sys::futex_wait(&self.alarm, ASLEEP, most_ns);
            if most_ns.is_some() {
                break;
            }
        }
        self.alarm.swap(AT_WORK, Ordering::SeqCst) == RUNG
    }

    /// Whether the evictor is at work, and may need a CPU.
    #[must_use]
    pub fn is_evicting(&self) -> bool {
        self.alarm.load(Ordering::Relaxed) != ASLEEP
    }

    /// Pages to evict until a batch more than the slack is free, so that no batch is a small one.
    #[must_use]
    pub fn excess(&self) -> u64 {
        let wanted = self.limit().saturating_sub(self.slack() + self.batch());
        self.resident().saturating_sub(wanted)
    }

    /// Whether faults are short of room, so that the evictor must not rest.
    #[must_use]
    pub fn is_short(&self) -> bool {
        self.resident() + self.slack() > self.limit()
    }

    /// Sets whether nothing can be evicted.
    pub fn set_overdraft(&self, on: bool) {
        if self.overdraft.swap(on, Ordering::SeqCst) != on && on {
            self.wake_waiting();
        }
    }

    /// In the child of a fork: `pages` are resident and no thread waits.
    pub fn forked(&self, pages: u64) {
        self.resident.store(pages, Ordering::Relaxed);
        self.peak.store(pages, Ordering::Relaxed);
        self.waiting.store(0, Ordering::Relaxed);
        self.alarm.store(0, Ordering::Relaxed);
    }
}

impl Default for Budget {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_counted_and_bounded() {
        let budget = Budget::new();
        budget.set_limit(1000);
        assert!(budget.attempt(990));
        assert!(!budget.attempt(11));
        assert_eq!(budget.resident(), 990);
        assert!(budget.is_short() && budget.excess() > 0);
        budget.release(500);
        assert!(!budget.is_short());
        assert_eq!((budget.excess(), budget.peak()), (0, 990));
    }

    #[test]
    fn a_small_budget_always_has_room_for_a_whole_run() {
        let budget = Budget::new();
        for limit in [64, 200, 1000, 3072, 16_383, 16_384, 40_000, 1 << 20] {
            budget.set_limit(limit);
            budget.take(limit);
            let left = limit - budget.excess();
            assert!(left + LEAST_BATCH <= limit, "{limit}");
            assert!(limit < 1000 || (limit - left) * 8 <= limit, "{limit}");
            assert!(limit < 3072 || (limit - left) * 25 <= limit, "{limit}");
            budget.release(limit);
        }
    }

    #[test]
    fn who_finds_no_room_waits_until_some_is_given_back() {
        static BUDGET: Budget = Budget::new();
        BUDGET.set_limit(100);
        assert!(!BUDGET.reserve(100));
        let waiter = std::thread::spawn(|| BUDGET.reserve(10));
        assert!(BUDGET.await_alarm(false, None));
        BUDGET.release(10);
        waiter.join().expect("the waiter ends");
        assert_eq!(BUDGET.resident(), 100);
    }
}
