//! When enough pairs have run.

use pagewise_model::proof::Comparison;
use pagewise_model::units::Estimate;

/// Runs pairs until both intervals are narrow. The rule looks at the interval's width, never at
/// whether the result is significant, so it does not hunt for a result; confirming a winner with
/// fresh pairs catches intervals that are narrow by chance.
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
            min_pairs: FEWEST_PAIRS,
            max_pairs: 30,
            half_width: 0.02,
        }
    }
}

/// With fewer pairs no comparison is decided: no exact 95 % interval exists (if five pairs all
/// agree, the chance of that is 2/32).
pub const FEWEST_PAIRS: u32 = 6;

/// Pairs from which an arm among `arms` can be proved at `level`: by chance, all of *n* pairs agree
/// in 2 of 2ⁿ experiments, and the correction multiplies that by the number of arms.
#[must_use]
pub fn fewest_pairs(arms: usize, level: f64) -> u32 {
    let by_chance = |pairs: u32| 2.0 * 0.5_f64.powf(f64::from(pairs)) * arms.max(1) as f64;
    (FEWEST_PAIRS..64)
        .find(|&pairs| by_chance(pairs) <= level)
        .unwrap_or(64)
}

impl Stopping {
    /// The same rule for a comparison of `arms`: none ends before it can be proved.
    #[must_use]
    pub fn among(self, arms: usize, level: f64) -> Self {
        let min_pairs = self.min_pairs.max(fewest_pairs(arms, level));
        Self {
            min_pairs: min_pairs.min(self.max_pairs),
            ..self
        }
    }

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

#[cfg(test)]
mod tests {
    use super::*;
    use pagewise_model::proof::Verdict;

    fn comparison(wall: (f64, f64), cpu: (f64, f64), pairs: u32) -> Comparison {
        let ratio = |(low, high): (f64, f64)| Estimate {
            value: f64::midpoint(low, high),
            low,
            high,
        };
        Comparison {
            arm: "arm".to_owned(),
            wall_speedup: ratio(wall),
            cpu_speedup: ratio(cpu),
            fault_ratio: Estimate::exact(1.0),
            rss_change_bytes: 0.0,
            p_adjusted: 1.0,
            pairs,
            verdict: Verdict::Undecided,
        }
    }

    #[test]
    fn both_intervals_must_be_narrow() {
        let (narrow, wide) = ((0.99, 1.01), (0.9, 1.1));
        let enough = |wall, cpu| Stopping::default().enough(&comparison(wall, cpu, 10));
        assert!(enough(narrow, narrow));
        assert!(!enough(narrow, wide), "CPU time is not known well");
        assert!(!enough(wide, narrow), "elapsed time is not known well");
    }

    #[test]
    fn pairs_end_no_sooner_and_no_later_than_their_bounds() {
        let (narrow, wide) = ((0.99, 1.01), (0.9, 1.1));
        let enough = |ratio, pairs| Stopping::default().enough(&comparison(ratio, ratio, pairs));
        assert!(!enough(narrow, FEWEST_PAIRS - 1));
        assert!(enough(narrow, FEWEST_PAIRS));
        assert!(!enough(wide, 29));
        assert!(enough(wide, 30));
    }
}
