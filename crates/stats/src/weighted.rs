//! The interval of a sum of samples that each stand for many.

/// Two-sided 95 % point of the normal distribution.
const NORMAL: f64 = 1.959_964;

/// The ends of the 95 % interval of a sum over samples, drawn independently and each divided by its chance of
/// being drawn; `variance` is the sum of (1 − p) / p² over the squared values.
///
/// As many equal samples as have this sum and variance make a Poisson count, whose exact interval
/// (Garwood, 1936) is scaled to the sum; its chi-squared points by Wilson and Hilferty, 1931.
/// A normal interval would be too narrow, and reach below zero, for the few samples of small sums.
#[must_use]
pub fn interval(sum: f64, variance: f64) -> (f64, f64) {
    if sum <= 0.0 || variance <= 0.0 {
        return (sum.max(0.0), sum.max(0.0));
    }
    // What one sample stands for, and how many there are.
    let each = variance / sum;
    let count = sum / each;
    (
        each * poisson_end(count, -NORMAL),
        each * poisson_end(count + 1.0, NORMAL),
    )
}

/// Half the chi-squared point with twice as many degrees of freedom as `count`.
fn poisson_end(count: f64, deviations: f64) -> f64 {
    let root = 1.0 - 1.0 / (9.0 * count) + deviations / (3.0 * count.sqrt());
    count * root.max(0.0).powi(3)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Random;

    #[test]
    fn counts_have_the_interval_of_garwood() {
        // (count, low, high) of his table.
        let known = [
            (1.0, 0.025, 5.572),
            (5.0, 1.623, 11.668),
            (100.0, 81.36, 121.63),
        ];
        for (count, low, high) in known {
            let found = interval(count * 7.0, count * 49.0);
            assert!((found.0 / 7.0 - low).abs() < 0.04, "{found:?}");
            assert!((found.1 / 7.0 / high - 1.0).abs() < 0.005, "{found:?}");
        }
        assert_eq!(interval(0.0, 0.0), (0.0, 0.0));
        assert_eq!(interval(5.0, 0.0), (5.0, 5.0));
    }

    #[test]
    fn sums_of_sampled_blocks_are_within_it() {
        let mut random = Random::seeded(11);
        let mut uniform = || (random.bits() >> 11) as f64 / (1_u64 << 53) as f64;
        // Blocks of mixed sizes, few samples and many.
        for blocks in [60, 600, 6000] {
            let size = |at: i32| f64::from(10 + at % 7 * 40);
            let truth: f64 = (0..blocks).map(size).sum();
            let (mut covered, runs) = (0, 400);
            for _ in 0..runs {
                let (mut sum, mut variance) = (0.0, 0.0);
                for at in 0..blocks {
                    let chance = -(-size(at) / 1000.0).exp_m1();
                    if uniform() < chance {
                        sum += size(at) / chance;
                        variance += size(at).powi(2) * (1.0 - chance) / chance.powi(2);
                    }
                }
                let (low, high) = interval(sum, variance);
                covered += i32::from(low <= truth && truth <= high);
            }
            assert!(covered >= runs * 92 / 100, "{blocks}: {covered}");
        }
    }
}
