//! Statistics with the host as the unit.

use crate::student_tail;

mod adjusted;
mod alike;
mod changes;
mod figure;
mod likeness;
mod power;
mod spreads;

pub use alike::{Alike, LEAST_HOSTS};
pub use changes::{ENOUGH_DAYS, change_points};
pub use figure::Figure;
pub use likeness::{Judgement, judge};
pub use power::Power;

/// The false discovery rate of everything that is claimed.
pub const FALSE_DISCOVERIES: f64 = 0.05;

/// Which of these p-values are discoveries at this false discovery rate (Benjamini and Hochberg,
/// 1995).
pub fn discoveries(p_values: &[f64], rate: f64) -> Vec<bool> {
    let mut sorted = p_values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let all = p_values.len() as f64;
    let passes = |&(at, p): &(usize, &f64)| *p <= rate * (at + 1) as f64 / all;
    let limit = sorted.iter().enumerate().rfind(passes);
    let limit = limit.map_or(-1.0, |(_, &p)| p);
    p_values.iter().map(|&p| p <= limit).collect()
}

/// The p-value of "no change": of paired differences, by Student's t.
pub fn paired(differences: &[f64]) -> f64 {
    let n = differences.len() as f64;
    if n < 2.0 {
        return 1.0;
    }
    let (mean, variance) = moments(differences);
    of_ratio(mean, variance / n, n - 1.0)
}

/// The p-value of "equal means" of two groups, by Welch's t.
pub fn unpaired(some: &[f64], others: &[f64]) -> f64 {
    let (n, m) = (some.len() as f64, others.len() as f64);
    if n < 2.0 || m < 2.0 {
        return 1.0;
    }
    let ((mean, variance), (other, other_variance)) = (moments(some), moments(others));
    let (a, b) = (variance / n, other_variance / m);
    let freedom = (a + b).powi(2) / (a * a / (n - 1.0) + b * b / (m - 1.0));
    of_ratio(mean - other, a + b, freedom)
}

fn of_ratio(difference: f64, squared_error: f64, freedom: f64) -> f64 {
    match (difference == 0.0, squared_error > 0.0) {
        (true, _) => 1.0,
        // Without any spread, a single value stands behind all of them.
        (false, false) => 1.0,
        (false, true) => student_tail(difference.abs() / squared_error.sqrt(), freedom),
    }
}

/// Mean and variance.
pub fn moments(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n.max(1.0);
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (mean, squares / (n - 1.0).max(1.0))
}

/// The value below which this share of sorted values lies.
pub fn quantile(sorted: &[f64], share: f64) -> f64 {
    quantile_of(sorted.len(), share, |at| sorted[at])
}

/// The same of values by their place.
fn quantile_of(values: usize, share: f64, value: impl Fn(usize) -> f64) -> f64 {
    let Some(last) = values.checked_sub(1) else {
        return 0.0;
    };
    let at = share * last as f64;
    let below = share_of(last, share);
    let (low, high) = (value(below), value((below + 1).min(last)));
    low + (high - low) * (at - below as f64)
}

/// This share, from 0 to 1, of a count, rounded down.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "not negative, and at most the count"
)]
fn share_of(count: usize, share: f64) -> usize {
    (share * count as f64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn discoveries_are_those_of_the_paper() {
        // Table 1 of Benjamini and Hochberg (1995): four of fifteen are discovered at 5 %.
        let p = [
            0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262,
            0.5719, 0.6528, 0.7590, 1.0,
        ];
        let found = discoveries(&p, 0.05);
        assert_eq!(found.iter().filter(|&&found| found).count(), 4);
        assert!(found[..4].iter().all(|&found| found));
    }

    #[test]
    fn tests_know_no_change_and_a_change() {
        assert_eq!(paired(&[0.0; 5]), 1.0);
        // Both tails, integrated numerically: t = 3.8730 with 3 degrees of freedom,
        assert!((paired(&[1.0, 2.0, 3.0, 4.0]) - 0.030_466).abs() < 1e-5);
        // and t = 2.4249 with 4.4118 of them.
        let p = unpaired(&[1.0, 2.0, 3.0, 4.0], &[3.0, 5.0, 7.0, 9.0]);
        assert!((p - 0.066_458_6).abs() < 1e-6, "{p}");
    }
}
