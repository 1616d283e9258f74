//! When enough pairs have run.

use pagewise_model::proof::Comparison;
use pagewise_model::units::Estimate;

/// Runs pairs until both intervals are narrow. The rule looks at the interval's width, never at
/// whether the result is significant, so it does not hunt for a result; what narrow-by-chance
/// intervals remain is caught by confirming a winner with fresh pairs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stopping {
    /// Pairs before the first look. Below six no exact 95 % interval exists.
    pub min_pairs: u32,
    /// Pairs after which to stop in any case.
    pub max_pairs: u32,
    /// Half the interval's width, as a share of the ratio, that is narrow enough.
    pub half_width: f64,
}

impl Default for Stopping {
    fn default() -> Self {
        Self {
            min_pairs: 6,
            max_pairs: 30,
            half_width: 0.02,
        }
    }
}

impl Stopping {
    /// Whether no more pairs are needed.
    #[must_use]
    pub fn enough(&self, comparison: &Comparison) -> bool {
        let narrow = |ratio: &Estimate| half_width(ratio) <= self.half_width;
        comparison.pairs >= self.max_pairs
            || comparison.pairs >= self.min_pairs
                && narrow(&comparison.wall_speedup)
                && narrow(&comparison.cpu_speedup)
    }
}

/// Half the width of a ratio's interval, as a share of the ratio.
#[must_use]
pub fn half_width(ratio: &Estimate) -> f64 {
    (ratio.high - ratio.low) / (2.0 * ratio.value)
}
