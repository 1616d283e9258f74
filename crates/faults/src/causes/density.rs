//! How much of the freed memory had been touched, estimated from sampled faults.
//!
//! Each page of a range lives from one release to the next. If a share `d` of these lives saw a
//! touch, then faults = d × lives, and a page that was freed `r` times had been touched before with
//! probability 1 − (1 − d)^r. Faults are known through sample periods, lives through recorded
//! releases. A range that is mapped and unmapped but never touched has d = 0, so it never counts as
//! churn.

/// With fewer samples a density is too uncertain to use on its own.
pub(super) const ENOUGH_SAMPLES: u32 = 8;

/// Sampled faults relative to freed pages of one stretch of memory.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Density {
    samples: u32,
    faults: f32,
    lives_ended: f32,
}

impl Density {
    /// Records a sampled fault that stands for `period` faults.
    pub(super) fn touched(&mut self, period: u64) {
        self.samples = self.samples.saturating_add(1);
        self.faults += period as f32;
    }

    /// Records that `pages` pages were freed.
    pub(super) fn released(&mut self, pages: u64) {
        self.lives_ended += pages as f32;
    }

    /// Whether there are enough samples.
    pub(super) fn is_firm(self) -> bool {
        self.samples >= ENOUGH_SAMPLES
    }

    /// Share of ended lives that were touched, 0 to 1.
    pub(super) fn share(self) -> f64 {
        if self.lives_ended <= 0.0 {
            return 0.0;
        }
        f64::from(self.faults / self.lives_ended).clamp(0.0, 1.0)
    }

    /// Faults beyond the lives that ended: pages that are resident now.
    pub(super) fn outstanding(self) -> f64 {
        f64::from((self.faults - self.lives_ended).max(0.0))
    }

    /// Probability that a page freed `times` times had been touched before the last of them.
    pub(super) fn touched_before(self, times: u16) -> f64 {
        1.0 - (1.0 - self.share()).powi(i32::from(times))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_that_was_never_touched_is_no_churn() {
        let mut density = Density::default();
        density.released(16_384);
        assert!(density.touched_before(20).abs() < 1e-12);
    }

    #[test]
    fn memory_touched_in_each_life_is_churn_at_once() {
        let mut density = Density::default();
        for _ in 0..10 {
            density.touched(512);
            density.released(512);
        }
        assert!((density.touched_before(1) - 1.0).abs() < 1e-6);
    }

    #[test]
    fn a_rarely_touched_range_becomes_churn_only_after_many_lives() {
        let mut density = Density::default();
        density.touched(100);
        density.released(1000);
        assert!((density.touched_before(1) - 0.1).abs() < 1e-6);
        assert!(density.touched_before(50) > 0.99);
    }
}
