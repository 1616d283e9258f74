//! What an unproved comparison nevertheless suggests, and how many more runs would prove it.

use super::{Criteria, FEWEST_PAIRS, fewest_pairs};
use pagewise_model::proof::Comparison;
use pagewise_model::units::Estimate;
use pagewise_stats::student;

/// A gain that is more likely than not, though not proved.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Promise {
    /// The apparent speed-up.
    pub speed: f64,
    /// Whether it is of CPU time.
    pub by_cpu: bool,
    /// Further pairs of runs that would prove it if the ratio stays the same.
    pub more_pairs: u32,
}

/// Gains below this are not worth a promise.
const LEAST_GAIN: f64 = 1.05;
/// More pairs than this are not realistic.
const MOST_PAIRS: u32 = 200;
/// Probability beyond each end of an 80 % interval: "probably".
const PROBABLY: f64 = 0.1;

/// The gain that `comparison`, one of `arms`, makes likely; `None` if there is none, or if proving
/// it would take too many runs.
#[must_use]
pub fn promise(comparison: &Comparison, arms: usize, criteria: &Criteria) -> Option<Promise> {
    let of = |ratio: &Estimate, by_cpu: bool| {
        let needed = pairs_needed(ratio, comparison.pairs, arms, criteria.level)?;
        Some(Promise {
            speed: ratio.value,
            by_cpu,
            more_pairs: needed.saturating_sub(comparison.pairs).max(1),
        })
    };
    let wall = of(&comparison.wall_speedup, false);
    let not_slower = comparison.wall_speedup.value >= 0.98;
    wall.or_else(|| of(&comparison.cpu_speedup, true).filter(|_| not_slower))
}

/// Pairs at which the interval of a ratio like this one excludes 1.
fn pairs_needed(ratio: &Estimate, pairs: u32, arms: usize, level: f64) -> Option<u32> {
    if pairs < 2 || !(LEAST_GAIN..1e6).contains(&ratio.value) || ratio.low <= 0.0 {
        return None;
    }
    let gain = ratio.value.ln();
    let half = ((ratio.high / ratio.low).ln() / 2.0).max(0.0);
    let freedom = |pairs: u32| (pairs - 1) as usize;
    let spread = half * f64::from(pairs).sqrt() / student(0.025, freedom(pairs));
    if !spread.is_finite()
        || gain <= student(PROBABLY, freedom(pairs)) * spread / f64::from(pairs).sqrt()
    {
        return None;
    }
    // With several arms each must meet a stricter level.
    let tail = level / 2.0 / arms.max(1) as f64;
    let fewest = fewest_pairs(arms, level).max(FEWEST_PAIRS);
    (fewest.max(pairs)..=MOST_PAIRS)
        .find(|&count| student(tail, freedom(count)) * spread / f64::from(count).sqrt() < gain)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagewise_model::proof::Verdict;

    fn comparison(value: f64, spread: f64, pairs: u32) -> Comparison {
        let half = spread * student(0.025, pairs as usize - 1) / f64::from(pairs).sqrt();
        let ratio = Estimate {
            value,
            low: value * (-half).exp(),
            high: value * half.exp(),
        };
        Comparison {
            arm: "arm".to_owned(),
            wall_speedup: ratio,
            cpu_speedup: ratio,
            fault_ratio: Estimate::exact(0.1),
            rss_change_bytes: 0.0,
            p_adjusted: 1.0,
            pairs,
            verdict: Verdict::Undecided,
        }
    }

    #[test]
    fn a_large_gain_in_two_pairs_needs_four_more() {
        let found = promise(&comparison(8.0, 0.1, 2), 1, &Criteria::default()).unwrap();
        assert_eq!((found.speed, found.more_pairs), (8.0, 4));
        let among = promise(&comparison(8.0, 0.1, 2), 3, &Criteria::default()).unwrap();
        assert_eq!(among.more_pairs, 5);
    }

    #[test]
    fn only_what_is_undecided_is_told_as_probable() {
        let message =
            |comparison: &Comparison| crate::promised(comparison, 1, &Criteria::default());
        let mut found = comparison(8.0, 0.1, 2);
        let words = "probably 8.00 times as fast, 4 more pairs would prove it";
        assert_eq!(message(&found).as_deref(), Some(words));
        found.wall_speedup = Estimate::exact(1.0);
        let words = "probably 8.00 times as fast in CPU time, 4 more pairs would prove it";
        assert_eq!(message(&found).as_deref(), Some(words));
        found.verdict = Verdict::Faster;
        assert_eq!(message(&found), None);
    }

    #[test]
    fn a_small_gain_in_much_noise_needs_more_pairs() {
        let criteria = Criteria::default();
        let small = promise(&comparison(1.1, 0.2, 10), 1, &criteria).unwrap();
        assert!((8..20).contains(&small.more_pairs), "{small:?}");
        for (value, spread) in [
            (1.0, 0.1),
            (1.06, 0.8),
            (0.5, 0.1),
            (f64::MAX, 0.1),
            (1.2, 90.0),
        ] {
            assert_eq!(
                promise(&comparison(value, spread, 4), 1, &criteria),
                None,
                "{value}"
            );
        }
    }
}
