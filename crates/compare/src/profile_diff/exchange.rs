//! Whether amounts differ between two sides that were cut into blocks of time: blocks are exchanged
//! ([`blocks`]) to find out how large differences are by chance.

use super::chance::Tested;
use pagewise_model::units::Estimate;
use pagewise_stats::blocks::{self, Asked, Exchanges, Figure};
use pagewise_stats::student;

/// Most exchanges.
const ROUNDS: u32 = 2_000;

/// A change that matters, as a part of the larger amount: two unwinders differ by half of this in stacks that
/// they copied alike.
const LEAST_PART: f64 = 0.02;

/// One quantity's value in each block: first A's blocks, then B's.
pub(super) type Series = Vec<f64>;

/// Tests all quantities together. A has the first `first` blocks of each series. Also returns how
/// many standard errors a difference must have.
pub(super) fn test(series: Vec<Series>, first: usize, seed: u64) -> (Vec<Tested>, f64) {
    let count = series.first().map_or(0, Vec::len);
    let each = vec![1.0; count];
    let figures: Vec<Figure> = series
        .into_iter()
        .map(|numerators| Figure {
            numerators,
            denominator: 0,
        })
        .collect();
    let exchanges = Exchanges {
        asked: Asked::Programs,
        number: ROUNDS,
        seed,
    };
    let denominators = [each];
    let tested = blocks::compare_blocks(&figures, &denominators, first, exchanges);
    let outcomes = figures.iter().enumerate().map(|(at, figure)| {
        let (change, error) = match first < count {
            true => blocks::difference(&figure.numerators, &denominators[0], first),
            false => (0.0, 0.0),
        };
        let half = student(0.025, count.saturating_sub(2).max(1)) * error;
        Tested {
            change: Estimate {
                value: change,
                low: change - half,
                high: change + half,
            },
            error,
            p_adjusted: tested
                .outcomes
                .get(at)
                .map_or(1.0, |outcome| outcome.p_adjusted),
            matters: change.abs() >= LEAST_PART * larger(&figure.numerators, first),
        }
    });
    (outcomes.collect(), tested.critical)
}

/// The larger of the mean amounts of both sides.
fn larger(series: &[f64], first: usize) -> f64 {
    let (a, b) = series.split_at(first.min(series.len()));
    let mean = |side: &[f64]| side.iter().sum::<f64>() / side.len().max(1) as f64;
    mean(a).max(mean(b))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagewise_stats::Random;

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
        let tested = test(series, 20, 1).0;
        assert!(tested[7].p_adjusted < 0.01);
        assert!((0.7..1.3).contains(&tested[7].change.value));
        let others = tested.iter().enumerate().filter(|&(at, _)| at != 7);
        assert!(others.clone().all(|(_, t)| t.p_adjusted > 0.05));
    }

    #[test]
    fn growth_in_a_short_stretch_differs_from_chance() {
        let mut random = Random::seeded(5);
        let mut rare = || -> Series {
            let draw = |_| f64::from(u8::from(random.below(10) == 0));
            (0..118).map(draw).chain([0.0; 6]).collect()
        };
        let mut series: Vec<Series> = (0..60).map(|_| rare()).collect();
        let grown = (0..118).map(|at| f64::from(at % 5 == 0));
        series.push(grown.chain([0.0, 9.0, 90.0, 60.0, 10.0, 30.0]).collect());
        let tested = test(series, 118, 1).0;
        assert!(tested[60].p_adjusted < 0.01, "{:?}", tested[60]);
        assert!(tested[..60].iter().all(|t| t.p_adjusted > 0.05));
    }
}
