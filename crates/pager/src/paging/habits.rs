//! Which regions' pages are written soon after they were read.
//!
//! A page that is read in is write-protected, so that it can be evicted without being written out;
//! its first write is then a separate fault, for which the program waits three times as long as
//! writing the page out in a batch takes, beside it. If a third of these pages are written before
//! they are evicted, pages that are read together become writable at once. Every eighth time they
//! are still protected, to see whether that continues.

use core::sync::atomic::{AtomicU32, Ordering};

/// Number of entries; regions whose numbers have the same remainder share one.
const PLACES: usize = 64;
/// Number of pages after which older ones count half.
const MEMORY: u32 = 256;
/// Pages that tell of a habit.
const TELLING: u32 = 16;
/// Those of one read in this many are protected in any case.
const TRIAL: u32 = 8;

/// Pages that were read in protected, and how many of them were written (upper and lower half of a
/// word).
#[derive(Debug)]
pub struct Habits {
    places: [AtomicU32; PLACES],
    turn: AtomicU32,
}

impl Habits {
    /// No pages seen yet.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            places: [const { AtomicU32::new(0) }; PLACES],
            turn: AtomicU32::new(0),
        }
    }

    fn place(&self, region: u16) -> &AtomicU32 {
        &self.places[usize::from(region) % PLACES]
    }

    /// Counts may be lost if two threads count at the same time.
    fn add(&self, region: u16, came: u32, written: u32) {
        let place = self.place(region);
        let seen = place.load(Ordering::Relaxed);
        let (mut came, mut written) = ((seen >> 16) + came, (seen & 0xffff) + written);
        while came.max(written) > MEMORY {
            (came, written) = (came / 2, written / 2);
        }
        place.store(came << 16 | written, Ordering::Relaxed);
    }

    /// `count` pages of `region` were read in protected.
    pub fn came(&self, region: u16, count: usize) {
        self.add(region, u32::try_from(count).unwrap_or(MEMORY), 0);
    }

    /// `count` such pages were written.
    pub fn written(&self, region: u16, count: usize) {
        self.add(region, 0, u32::try_from(count).unwrap_or(MEMORY));
    }

    /// Whether pages of `region` that are read together are to be mapped writable although they are
    /// only read.
    #[must_use]
    pub fn expects_write(&self, region: u16) -> bool {
        let seen = self.place(region).load(Ordering::Relaxed);
        let (came, written) = (seen >> 16, seen & 0xffff);
        let often = came >= TELLING && written * 3 >= came;
        often
            && !self
                .turn
                .fetch_add(1, Ordering::Relaxed)
                .is_multiple_of(TRIAL)
    }
}

impl Default for Habits {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many of 80 missing pages are mapped writable if `written` of 8 of the others are
    /// written.
    fn writable(habits: &Habits, region: u16, written: usize) -> usize {
        (0..80)
            .filter(|turn| {
                let expected = habits.expects_write(region);
                if !expected {
                    habits.came(region, 1);
                    habits.written(region, usize::from(turn * 5 % 8 < written));
                }
                expected
            })
            .count()
    }

    #[test]
    fn pages_come_writable_only_after_written_ones() {
        let habits = Habits::new();
        assert_eq!(writable(&habits, 1, 1), 0);
        assert!(writable(&habits, 2, 8) > 50);
        assert_eq!(writable(&habits, 3, 0), 0);
    }

    #[test]
    fn a_habit_ends_within_some_thousands_of_reads() {
        let habits = Habits::new();
        for _ in 0..10 {
            writable(&habits, 1, 8);
        }
        assert!(writable(&habits, 1, 8) > 60);
        let rounds = (0..100).find(|_| writable(&habits, 1, 0) == 0);
        assert!(rounds.is_some_and(|rounds| rounds < 40), "{rounds:?}");
    }
}
