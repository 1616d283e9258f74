//! Whether quantities measured in blocks of time differ between two sides: exchanging blocks
//! between the sides shows how large differences are when there is none.

use super::LEVEL;
use super::chance::Tested;
use crate::compare::Random;
use pagewise_model::units::Estimate;

/// Exchanges that are tried.
const ROUNDS: usize = 2_000;

/// One quantity's value in each block: first A's blocks, then B's.
pub(super) type Series = Vec<f64>;

/// Tests all quantities together. A has the first `first` blocks of each series. The largest
/// studentised difference over all quantities of each exchange is what the real ones are held
/// against (Westfall and Young's single-step maxT), so that the chance that any is called different
/// when none is stays at the level, however they depend on each other. With them comes how many
/// standard errors a difference must have.
pub(super) fn test(series: &[Series], first: usize, seed: u64) -> (Vec<Tested>, f64) {
    let blocks = series.first().map_or(0, Vec::len);
    let observed: Vec<Difference> = series.iter().map(|s| difference(s, first)).collect();
    let mut order: Vec<usize> = (0..blocks).collect();
    let mut random = Random::seeded(seed);
    let mut largest = Vec::with_capacity(ROUNDS);
    let floors: Vec<f64> = series.iter().map(|s| floor(s)).collect();
    for _ in 0..ROUNDS {
        random.shuffle(&mut order);
        let most = series
            .iter()
            .zip(&floors)
            .map(|(series, &floor)| exchanged(series, &order, first, floor))
            .fold(0.0, f64::max);
        largest.push(most);
    }
    largest.sort_by(f64::total_cmp);
    let critical = largest[quantile_place(1.0 - LEVEL, ROUNDS)];
    let tested = observed.iter().zip(&floors).map(|(difference, &floor)| {
        let statistic = difference.statistic(floor);
        let at_least = largest.len() - largest.partition_point(|&most| most < statistic);
        let error = difference.error.max(floor);
        let half = quantile(blocks.saturating_sub(2)) * error;
        Tested {
            change: Estimate {
                value: difference.mean,
                low: difference.mean - half,
                high: difference.mean + half,
            },
            error,
            p_adjusted: (at_least + 1) as f64 / (ROUNDS + 1) as f64,
            matters: true,
        }
    });
    (tested.collect(), critical)
}

/// Where a share of `count` ordered values ends.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a share of a small count"
)]
fn quantile_place(share: f64, count: usize) -> usize {
    ((share * count as f64) as usize).min(count.saturating_sub(1))
}

/// Of B's mean from A's. What is held against chance has the variance of both sides' blocks
/// pooled: when none of a few blocks happens to hold any of a rare function, their own variance is
/// zero, and such quantities would look surer than anything that grew. The interval has a variance
/// for each side (Welch), since what a stall does varies more than what there was before.
#[derive(Clone, Copy, Debug)]
struct Difference {
    mean: f64,
    error: f64,
    pooled: f64,
}

/// Mean and variance, of so many blocks.
type Side = ((f64, f64), usize);

impl Difference {
    fn of(a: Side, b: Side) -> Self {
        let (((mean_a, variance_a), count_a), ((mean_b, variance_b), count_b)) = (a, b);
        let (a, b) = (count_a.max(1) as f64, count_b.max(1) as f64);
        let squares = variance_a * (a - 1.0) + variance_b * (b - 1.0);
        let variance = squares / (a + b - 2.0).max(1.0);
        Self {
            mean: mean_b - mean_a,
            error: (variance_a / a + variance_b / b).sqrt(),
            pooled: (variance * (1.0 / a + 1.0 / b)).sqrt(),
        }
    }

    fn statistic(self, floor: f64) -> f64 {
        if self.mean == 0.0 {
            return 0.0;
        }
        self.mean.abs() / self.pooled.max(floor)
    }
}

/// The standard error below which none is believed: blocks that happen to be equal prove nothing.
/// A tenth of what all blocks together scatter, and far more than sums of fractions are off by
/// rounding.
fn floor(series: &[f64]) -> f64 {
    let (_, variance) = moments(series.iter().copied(), series.len());
    let largest = series
        .iter()
        .fold(0.0_f64, |most, value| most.max(value.abs()));
    (variance / series.len().max(1) as f64).sqrt() * 0.1 + largest * 1e-9 + f64::MIN_POSITIVE
}

fn difference(series: &[f64], first: usize) -> Difference {
    let (a, b) = series.split_at(first.min(series.len()));
    let side = |side: &[f64]| (moments(side.iter().copied(), side.len()), side.len());
    Difference::of(side(a), side(b))
}

fn exchanged(series: &[f64], order: &[usize], first: usize, floor: f64) -> f64 {
    let (a, b) = order.split_at(first.min(order.len()));
    let side = |chosen: &[usize]| {
        let (mut sum, mut squares) = (0.0, 0.0);
        for &at in chosen {
            let value = series[at];
            sum += value;
            squares += value * value;
        }
        let count = chosen.len().max(1) as f64;
        let mean = sum / count;
        let variance = ((squares - count * mean * mean) / (count - 1.0).max(1.0)).max(0.0);
        ((mean, variance), chosen.len())
    };
    Difference::of(side(a), side(b)).statistic(floor)
}

/// Mean and variance (of a sample).
fn moments(values: impl Iterator<Item = f64> + Clone, count: usize) -> (f64, f64) {
    let mean = values.clone().sum::<f64>() / count.max(1) as f64;
    let squares: f64 = values.map(|value| (value - mean).powi(2)).sum();
    (mean, squares / count.saturating_sub(1).max(1) as f64)
}

/// Two-sided 95 % point of Student's t: Cornish–Fisher's expansion about the normal's, within
/// 0.5 % from 4 degrees of freedom on (Abramowitz and Stegun, 26.7.5).
pub(super) fn quantile(freedom: usize) -> f64 {
    const Z: f64 = 1.959_964;
    let v = freedom.max(1) as f64;
    let (z3, z5) = (Z.powi(3), Z.powi(5));
    let z7 = Z.powi(7);
    Z + (z3 + Z) / (4.0 * v)
        + (5.0 * z5 + 16.0 * z3 + 3.0 * Z) / (96.0 * v * v)
        + (3.0 * z7 + 19.0 * z5 + 17.0 * z3 - 15.0 * Z) / (384.0 * v.powi(3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn students_quantiles_are_those_of_the_table() {
        for (freedom, known) in [(4, 2.776), (10, 2.228), (30, 2.042)] {
            assert!((quantile(freedom) / known - 1.0).abs() < 0.01, "{freedom}");
        }
    }

    #[test]
    fn a_clear_difference_is_found_among_many_that_are_none() {
        let mut random = Random::seeded(3);
        let mut noise = || random.below(1_000) as f64 / 1_000.0;
        let mut series: Vec<Series> = (0..50)
            .map(|_| (0..40).map(|_| noise()).collect())
            .collect();
        for value in &mut series[7][20..] {
            *value += 1.0;
        }
        let tested = test(&series, 20, 1).0;
        assert!(tested[7].p_adjusted < 0.01);
        assert!((0.7..1.3).contains(&tested[7].change.value));
        let others = tested.iter().enumerate().filter(|&(at, _)| at != 7);
        assert!(others.clone().all(|(_, t)| t.p_adjusted > 0.05));
    }

    #[test]
    fn what_grew_in_a_short_stretch_stands_out_from_what_happens_to_miss_in_it() {
        let mut random = Random::seeded(5);
        let mut rare = || -> Series {
            let draw = |_| f64::from(u8::from(random.below(10) == 0));
            (0..118).map(draw).chain([0.0; 6]).collect()
        };
        let mut series: Vec<Series> = (0..60).map(|_| rare()).collect();
        let grown = (0..118).map(|at| f64::from(at % 5 == 0));
        series.push(grown.chain([0.0, 9.0, 90.0, 60.0, 10.0, 30.0]).collect());
        let tested = test(&series, 118, 1).0;
        assert!(tested[60].p_adjusted < 0.01, "{:?}", tested[60]);
        assert!(tested[..60].iter().all(|t| t.p_adjusted > 0.05));
    }
}
