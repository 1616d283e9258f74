//! How many swept pages pass through memory at a time.
//!
//! Streams need little more than the pages that they read ahead; the rest of memory then holds a part
//! of what is swept, so that it need not be read again. But a sort, say, soon goes over the same pages
//! again, and finds them only if many are left. Uses of resident pages are invisible, therefore a
//! narrow window is tried: when pages come back right after they have left it, it is wide for some
//! time, and for twice as long after each further trial. Kept pages that the wide window has
//! displaced bring the next trial forward.

use core::sync::atomic::{AtomicU32, Ordering};

/// Pages of a narrow window, for each page that streams have in flight: none may go before its use.
const NARROW: u32 = 2;
/// So many pages that come back make up a sample, or as many as a wide window has: they come in runs.
const LEAST_SAMPLE: u32 = 1024;
/// Evictions after which a page comes back soon: this part of a wide window. A loop a little larger
/// than memory comes back after some more, and gains nothing by a wide window.
const SOON: u32 = 4;
/// A narrow window is too narrow when more than one in this many came back soon.
const TOO_MANY: u32 = 6;
/// The window is first wide for this many samples: a narrow one costs a sort a fifth more reads.
const FIRST_WIDE: u32 = 4;
/// The time for which it is wide is doubled at most this often.
const MOST_DOUBLED: u32 = 5;

/// The width of the window.
#[derive(Debug)]
pub(crate) struct Width {
    /// Pages of a wide window: those that the windows of all threads may take.
    widest: u32,
    /// Pages that are left at present, 0 while no stream is under way.
    pages: AtomicU32,
    /// Samples until the next trial of a narrow window; 0 while it is narrow.
    wide_for: AtomicU32,
    /// Trials that failed.
    failed: AtomicU32,
    /// Pages that came back since the last sample, kept ones by what they cost, and those that came back
    /// soon after they had passed.
    returns: AtomicU32,
    soon: AtomicU32,
}

impl Width {
    /// A window of at most `widest` pages.
    pub(crate) fn new(widest: u32) -> Self {
        Width {
            widest,
            pages: AtomicU32::new(widest),
            wide_for: AtomicU32::new(FIRST_WIDE),
            failed: AtomicU32::new(0),
            returns: AtomicU32::new(0),
            soon: AtomicU32::new(0),
        }
    }

    /// Streams under way have `in_flight` pages in their windows. With 0 nobody will use what passed.
    pub(crate) fn set(&self, in_flight: u32) {
        let pages = match (in_flight, self.wide_for.load(Ordering::Relaxed)) {
            (0, _) => 0,
            (_, 0) => in_flight.saturating_mul(NARROW).min(self.widest),
            (_, _) => self.widest,
        };
        self.pages.store(pages, Ordering::Relaxed);
    }

    /// Pages to leave in memory.
    pub(crate) fn pages(&self) -> u32 {
        self.pages.load(Ordering::Relaxed)
    }

    /// Most pages of the window; what passed before them stays in memory. Twice [`Width::pages`], so
    /// that what is evicted lies in long runs.
    pub(crate) fn most(&self) -> u32 {
        match self.pages() {
            0 => 2 * self.widest,
            pages => 2 * pages,
        }
    }

    /// A page that had passed came back after `distance` evictions.
    pub(crate) fn returned(&self, distance: u32) {
        if distance < self.widest / SOON {
            self.soon.fetch_add(1, Ordering::Relaxed);
        }
        self.count(1);
    }

    /// A kept page came back after `distance` evictions of kept pages, which cost as much as `worth`
    /// pages that had passed: with the room of a wide window it would have stayed.
    pub(crate) fn displaced(&self, distance: u32, worth: u32) {
        if distance < self.widest {
            self.count(worth);
        }
    }

    /// Counts pages that came back, and ends a sample once there are enough.
    fn count(&self, pages: u32) {
        let sample = self.widest.max(LEAST_SAMPLE);
        let before = self.returns.fetch_add(pages, Ordering::Relaxed);
        // One thread alone sees the count pass the end of the sample.
        if before > sample || before + pages <= sample {
            return;
        }
        self.returns.store(0, Ordering::Relaxed);
        let soon = self.soon.swap(0, Ordering::Relaxed);
        let wide_for = self.wide_for.load(Ordering::Relaxed);
        let next = match wide_for.checked_sub(1) {
            Some(left) => left,
            None if soon > sample / TOO_MANY => {
                let failed = self.failed.fetch_add(1, Ordering::Relaxed) + 1;
                FIRST_WIDE << failed.min(MOST_DOUBLED)
            }
            None => 0,
        };
        self.wide_for.store(next, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WIDEST: u32 = 4096;

    /// Reports a sample of pages that come back after `distance` evictions.
    fn sample(width: &Width, distance: u32) {
        (0..=WIDEST).for_each(|_| width.returned(distance));
        width.set(100);
    }

    /// Samples for which the window is wide.
    fn wide_for(width: &Width, distance: u32) -> u32 {
        let mut samples = 0;
        width.set(100);
        while width.pages() == WIDEST {
            sample(width, distance);
            samples += 1;
        }
        samples
    }

    #[test]
    fn it_is_narrow_while_nothing_comes_back_soon() {
        let width = Width::new(WIDEST);
        assert_eq!(wide_for(&width, 3000), FIRST_WIDE);
        for _ in 0..20 {
            sample(&width, 3000);
            assert_eq!(width.pages(), 200);
        }
    }

    #[test]
    fn each_failed_trial_makes_it_wide_for_twice_as_long() {
        let width = Width::new(WIDEST);
        let mut times = [0; 8];
        for time in &mut times {
            *time = wide_for(&width, 10);
            sample(&width, 10);
        }
        assert_eq!(times, [4, 8, 16, 32, 64, 128, 128, 128]);
    }
}
