//! The result for one amount, and how likely it is by chance.

use super::LEVEL;
use pagewise_model::units::Estimate;

/// The result of a comparison of one quantity.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tested {
    /// B's amount minus A's, with a 95 % interval of this quantity alone.
    pub(super) change: Estimate,
    /// Standard error of that.
    pub(super) error: f64,
    /// Chance of a difference this large, in standard errors, among all quantities.
    pub(super) p_adjusted: f64,
    /// Whether it is large enough to be relevant.
    pub(super) matters: bool,
}

impl Tested {
    pub(super) fn is_significant(&self) -> bool {
        self.matters && self.p_adjusted < LEVEL
    }
}

/// Chance that a standard normal is at least this far from zero: Abramowitz and Stegun, 7.1.26,
/// error below 1.5e-7.
pub(super) fn two_sided(z: f64) -> f64 {
    const TERMS: [f64; 5] = [
        0.254_829_592,
        -0.284_496_736,
        1.421_413_741,
        -1.453_152_027,
        1.061_405_429,
    ];
    if z.is_nan() {
        return 1.0;
    }
    let x = z.abs() / std::f64::consts::SQRT_2;
    let t = 1.0 / (1.0 + 0.327_591_1 * x);
    let sum = TERMS.iter().rev().fold(0.0, |sum, term| (sum + term) * t);
    (sum * (-x * x).exp()).clamp(0.0, 1.0)
}

/// Standard errors that the larger of `tests` differences must have for the chance of any to be
/// below the level.
pub(super) fn critical(tests: usize) -> f64 {
    let (mut low, mut high) = (1.0, 8.0);
    for _ in 0..40 {
        let middle = f64::midpoint(low, high);
        match two_sided(middle) * tests.max(1) as f64 > LEVEL {
            true => low = middle,
            false => high = middle,
        }
    }
    high
}

/// Additional standard errors at which four of five comparisons succeed.
const POWER: f64 = 0.84;

/// Change that four of five such comparisons find in a quantity whose interval is as wide as the
/// median of `shown`, the quantities that a reader sees.
pub(super) fn detectable<'a>(shown: impl Iterator<Item = &'a Tested>, critical: f64) -> f64 {
    let mut errors: Vec<f64> = shown.map(|tested| tested.error).collect();
    errors.sort_by(f64::total_cmp);
    let median = errors.get(errors.len() / 2).copied().unwrap_or(0.0);
    median * (critical + POWER)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chances_are_those_of_the_tables() {
        for (z, chance) in [
            (0.0, 1.0),
            (1.959_964, 0.05),
            (-2.575_829, 0.01),
            (4.0, 6.33e-5),
        ] {
            assert!((two_sided(z) - chance).abs() < 1e-6, "{z}");
        }
        assert_eq!(two_sided(f64::NAN), 1.0);
        assert!((critical(1) - 1.96).abs() < 0.01 && (critical(100) - 3.48).abs() < 0.02);
    }
}
