//! Confidence intervals for the median of a few differences.

use super::signed_rank;

/// Probability beyond each end of a 95 % interval.
const TAIL: f64 = 0.025;

/// Two-sided 95 % points of Student's t for 1 to 4 degrees of freedom.
const STUDENT: [f64; 4] = [12.706, 4.303, 3.182, 2.776];

/// Median with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Centre {
    /// The median.
    pub median: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// Median of `differences` with an interval that is valid by both methods: the percentile bootstrap
/// of the median, widened to the exact signed-rank interval. The bootstrap alone is too narrow for
/// few pairs: with seven, it covers 87.5 % instead of 95 %. Below six pairs, where the exact
/// interval does not exist, Student's interval and the whole range replace it. `None` for fewer
/// than two values.
#[must_use]
pub fn centre(differences: &[f64]) -> Option<Centre> {
    let (low, high) = match differences.len() {
        0 | 1 => return None,
        _ => signed_rank::interval(differences).unwrap_or_else(|| few(differences)),
    };
    let resampled = bootstrap(differences);
    Some(Centre {
        median: median(&mut differences.to_vec()),
        low: low.min(resampled.0),
        high: high.max(resampled.1),
    })
}

/// Median; sorts `values`. Zero for an empty slice.
pub fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values {
        [] => 0.0,
        _ if values.len() % 2 == 1 => values[middle],
        _ => f64::midpoint(values[middle - 1], values[middle]),
    }
}

/// 2.5 % and 97.5 % points of the median of a resample, over all resamples: the limit of a
/// bootstrap by random draws. A resample's `middle`-th smallest value is at most the `k`-th
/// smallest of `values` when at least `middle` of its draws are among the `k` smallest, and each
/// draw is with chance `k/n`. With an even number, the two middle values bound the median from
/// either side.
fn bootstrap(values: &[f64]) -> (f64, f64) {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let count = sorted.len();
    let middle = count.div_ceil(2);
    let at = (1..count)
        .find(|&k| at_least(middle, count, k as f64 / count as f64) >= TAIL)
        .unwrap_or(count);
    (sorted[at - 1], sorted[count - at])
}

/// Chance of at least `least` successes in `trials` of chance `p` (0 < p < 1).
fn at_least(least: usize, trials: usize, p: f64) -> f64 {
    let mut chance = (1.0 - p).powf(trials as f64);
    let mut sum = if least == 0 { chance } else { 0.0 };
    for successes in 1..=trials {
        chance *= (trials + 1 - successes) as f64 / successes as f64 * p / (1.0 - p);
        if successes >= least {
            sum += chance;
        }
    }
    sum
}

/// Student's t with probability `tail` above it, for this many degrees of freedom: Hill's expansion
/// (Algorithm 396, 1970) of the normal quantile from five on, exact below.
pub fn student(tail: f64, freedom: usize) -> f64 {
    let p = tail.clamp(1e-9, 0.5);
    match freedom {
        0 => f64::INFINITY,
        1 => (std::f64::consts::PI * (0.5 - p)).tan(),
        2 => (1.0 - 2.0 * p) * (2.0 / (4.0 * p * (1.0 - p))).sqrt(),
        _ => expanded(p, freedom as f64),
    }
}

fn expanded(tail: f64, n: f64) -> f64 {
    let z = normal(tail);
    let power = |exponent: i32| z.powi(exponent);
    let first = (power(3) + z) / 4.0;
    let second = (5.0 * power(5) + 16.0 * power(3) + 3.0 * z) / 96.0;
    let third = (3.0 * power(7) + 19.0 * power(5) + 17.0 * power(3) - 15.0 * z) / 384.0;
    z + first / n + second / n.powi(2) + third / n.powi(3)
}

/// The normal quantile with probability `tail` above it (Abramowitz and Stegun, 26.2.23; error
/// below 4.5e-4).
fn normal(tail: f64) -> f64 {
    let t = (-2.0 * tail.ln()).sqrt();
    let above = 2.515_517 + t * (0.802_853 + t * 0.010_328);
    let below = 1.0 + t * (1.432_788 + t * (0.189_269 + t * 0.001_308));
    t - above / below
}

/// Interval of two to five values.
fn few(values: &[f64]) -> (f64, f64) {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let variance = values
        .iter()
        .map(|value| (value - mean).powi(2))
        .sum::<f64>()
        / (count - 1.0);
    let student = STUDENT.get(values.len() - 2).copied().unwrap_or(2.0);
    let half = student * (variance / count).sqrt();
    values
        .iter()
        .fold((mean - half, mean + half), |(low, high), &value| {
            (low.min(value), high.max(value))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_of_odd_even_and_none() {
        assert_eq!(median(&mut [3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&mut [4.0, 1.0, 2.0, 3.0]), 2.5);
        assert_eq!(median(&mut []), 0.0);
    }

    #[test]
    fn identical_values_leave_no_doubt_and_one_value_no_interval() {
        let certain = centre(&[0.5; 8]).unwrap();
        assert_eq!((certain.low, certain.median, certain.high), (0.5, 0.5, 0.5));
        assert_eq!(centre(&[0.5]), None);
    }

    /// The textbook bootstrap.
    fn by_draws(values: &[f64], draws: usize) -> (f64, f64) {
        let mut random = crate::Random::seeded(5);
        let mut medians: Vec<f64> = (0..draws)
            .map(|_| {
                let draw = |_| values[random.below(values.len())];
                median(&mut (0..values.len()).map(draw).collect::<Vec<_>>())
            })
            .collect();
        medians.sort_by(f64::total_cmp);
        (medians[draws / 40], medians[draws - 1 - draws / 40])
    }

    #[test]
    fn agrees_with_a_bootstrap_by_random_draws() {
        for count in [5, 7, 9, 11, 15, 21, 29] {
            let values: Vec<f64> = (0..count).map(f64::from).collect();
            let (exact, drawn) = (bootstrap(&values), by_draws(&values, 20_000));
            // Random draws decide by luck if a value's chance is close to 2.5 %.
            let off = (exact.0 - drawn.0).abs().max((exact.1 - drawn.1).abs());
            assert!(off <= 1.0, "{count}: {exact:?} {drawn:?}");
        }
        // With an even number it is bounded by the two middle values: never narrower.
        let values: Vec<f64> = (0..12).map(f64::from).collect();
        let (exact, drawn) = (bootstrap(&values), by_draws(&values, 20_000));
        assert!(
            exact.0 <= drawn.0 && drawn.1 <= exact.1,
            "{exact:?} {drawn:?}"
        );
    }

    #[test]
    fn students_points_are_those_of_the_tables() {
        for (tail, freedom, known) in [
            (0.025, 1, 12.706),
            (0.025, 2, 4.303),
            (0.025, 3, 3.182),
            (0.1, 1, 3.078),
            (0.1, 4, 1.533),
            (0.005, 10, 3.169),
            (0.025, 30, 2.042),
        ] {
            let found = student(tail, freedom);
            assert!(
                (found / known - 1.0).abs() < 0.03,
                "{tail} {freedom}: {found}"
            );
        }
    }

    #[test]
    fn two_values_give_a_wide_interval() {
        // Mean 0, standard error 1, t = 12.7.
        let two = centre(&[-1.0, 1.0]).unwrap();
        assert!((two.high - 12.706).abs() < 1e-9 && (two.low + 12.706).abs() < 1e-9);
    }
}
