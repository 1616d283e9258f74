//! Days on which a series changed.

use super::moments;
use crate::Random;

/// Fewest days on each side of a change.
const LEAST_DAYS: usize = 3;
/// With fewer days, even a series in perfect order is not rare enough among its permutations.
pub const ENOUGH_DAYS: usize = 8;
/// Permutations behind a p-value.
const PERMUTATIONS: usize = 1_999;

/// The indices at which a new level starts: the best split is one if permuted series hardly ever
/// have a better one, and then both sides are searched (binary segmentation).
pub fn change_points(series: &[f64], chance: f64) -> Vec<usize> {
    let mut found = Vec::new();
    let mut random = Random::seeded(7);
    let mut open = vec![(0, series.len())];
    while let Some((from, to)) = open.pop() {
        let part = &series[from..to];
        let Some((at, score)) = best_split(part) else {
            continue;
        };
        let mut permuted = part.to_vec();
        // The same days in another order have the same score but for rounding.
        let as_good = score * (1.0 - 1e-9);
        let mut better = 0;
        for _ in 0..PERMUTATIONS {
            random.shuffle(&mut permuted);
            better += usize::from(best_split(&permuted).is_some_and(|(_, other)| other >= as_good));
        }
        if ((better + 1) as f64) <= chance * (PERMUTATIONS + 1) as f64 {
            found.push(from + at);
            open.extend([(from, from + at), (from + at, to)]);
        }
    }
    found.sort_unstable();
    found
}

/// Where the means of both sides differ most, in units of their common spread.
fn best_split(series: &[f64]) -> Option<(usize, f64)> {
    let splits = LEAST_DAYS..(series.len() + 1).saturating_sub(LEAST_DAYS);
    let scored = splits.map(|at| {
        let (before, after) = series.split_at(at);
        let ((a, va), (b, vb)) = (moments(before), moments(after));
        let (n, m) = (before.len() as f64, after.len() as f64);
        let pooled = (va * (n - 1.0) + vb * (m - 1.0)) / (n + m - 2.0).max(1.0);
        let error = (pooled * (1.0 / n + 1.0 / m)).sqrt();
        (at, (a - b).abs() / error.max(f64::MIN_POSITIVE))
    });
    scored.max_by(|a, b| a.1.total_cmp(&b.1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eight_days_can_show_a_step_and_six_cannot() {
        let step = [0.1, -0.1, 0.05, -0.05, 9.0, 9.1, 8.95, 9.05];
        assert_eq!(change_points(&step, 0.05), [4]);
        assert!(change_points(&step[1..7], 0.05).is_empty());
        assert_eq!(step.len(), ENOUGH_DAYS);
    }

    #[test]
    fn a_step_is_found_and_noise_is_not() {
        let noise = [0.1, -0.2, 0.15, -0.05, 0.2, -0.1, 0.05, -0.15, 0.1, 0.0];
        assert!(change_points(&noise, 0.05).is_empty());
        let step: Vec<f64> = noise
            .iter()
            .enumerate()
            .map(|(at, v)| v + if at >= 6 { 2.0 } else { 0.0 })
            .collect();
        assert_eq!(change_points(&step, 0.05), [6]);
    }
}
