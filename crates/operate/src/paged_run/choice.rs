//! Which engine suits a program: what the pager's waits say about its accesses.

use std::time::{Duration, Instant};

/// Time over which waits are counted.
const WINDOW: Duration = Duration::from_secs(1);
/// So many windows in a row have to say the same.
const WINDOWS: u32 = 2;
/// Fewer waits per second than this do not matter.
const LEAST_WAITS: f64 = 300.0;
/// Pages that come with each wait: 1.0 to 2.4 where access is random, 4.7 on a graph, 50 and more in streams
/// (docs/notes/paging.md).
const FEW_PAGES: f64 = 3.0;

/// What the processes of a run have counted so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    /// Faults on pages that had been evicted.
    pub waits: u64,
    /// Pages read back, for a fault or ahead of it.
    pub read: u64,
}

/// The judgement on a program while it runs.
#[derive(Debug)]
pub struct Choice {
    began: Instant,
    before: Counts,
    random: u32,
}

impl Choice {
    /// A run that starts `now`.
    pub fn new(now: Instant) -> Self {
        Self {
            began: now,
            before: Counts::default(),
            random: 0,
        }
    }

    /// When to look next.
    pub fn due(&self) -> Instant {
        self.began + WINDOW
    }

    /// Once it is due: returns the pages that came with each wait, if the program has waited for pages in
    /// random places for long enough that the kernel is the better engine.
    pub fn look(&mut self, now: Instant, counts: Counts) -> Option<f64> {
        let seconds = now.saturating_duration_since(self.began).as_secs_f64();
        let before = std::mem::replace(&mut self.before, counts);
        self.began = now;
        let waits = counts.waits.saturating_sub(before.waits) as f64;
        let pages = counts.read.saturating_sub(before.read) as f64 / waits;
        let is_random = waits >= LEAST_WAITS * seconds && pages < FEW_PAGES;
        self.random = if is_random { self.random + 1 } else { 0 };
        (self.random >= WINDOWS).then_some(pages)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The answers to one look per second at these increments.
    fn answers(steps: &[(u64, u64)]) -> Vec<Option<f64>> {
        let mut now = Instant::now();
        let (mut choice, mut counts) = (Choice::new(now), Counts::default());
        let look = |&(waits, read): &(u64, u64)| {
            now = choice.due();
            counts.waits += waits;
            counts.read += read;
            choice.look(now, counts)
        };
        steps.iter().map(look).collect()
    }

    #[test]
    fn random_access_for_two_seconds_is_the_kernel_s() {
        assert_eq!(answers(&[(9000, 9000), (9000, 18_000)]), [None, Some(2.0)]);
    }

    #[test]
    fn streams_stay_with_the_pager() {
        assert_eq!(answers(&[(800, 380_000); 3]), [None; 3]);
    }

    #[test]
    fn a_moment_of_random_access_decides_nothing() {
        let mixed = [(9000, 9000), (800, 40_000), (9000, 9000), (0, 0)];
        assert_eq!(answers(&mixed), [None; 4]);
    }

    #[test]
    fn few_waits_are_no_reason_to_change() {
        assert_eq!(answers(&[(200, 200); 4]), [None; 4]);
        assert_eq!(answers(&[(0, 0); 3]), [None; 3]);
    }

    #[test]
    fn a_late_look_takes_the_rate() {
        let now = Instant::now();
        let mut choice = Choice::new(now);
        let late = |seconds| now + Duration::from_secs(seconds);
        let counts = |waits| Counts { waits, read: waits };
        assert_eq!(choice.look(late(10), counts(2000)), None);
        assert_eq!(choice.look(late(20), counts(4000)), None, "200 per second");
    }
}
