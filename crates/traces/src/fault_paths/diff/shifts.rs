//! How far quantiles moved, with intervals from resampled blocks.
//!
//! A resample draws as many blocks of each trace as it has, with replacement; the interval is the
//! middle 95 % of the change over all resamples. Whole blocks are drawn because successive faults
//! are similar (Künsch, 1989).

use super::super::figures::{figures, whole};
use pagewise_model::fault_diff::{Pair, Pairs, QuantileShift, Shift};
use pagewise_model::histogram::{Histogram, bucket_of, bucket_range};
use pagewise_model::units::Estimate;
use pagewise_stats::Random;

/// Quantiles of a shift, and how many values each needs.
const QUANTILES: [(f64, usize); 15] = [
    (0.01, 100),
    (0.05, 20),
    (0.1, 10),
    (0.2, 5),
    (0.3, 5),
    (0.4, 5),
    (0.5, 1),
    (0.6, 5),
    (0.7, 5),
    (0.8, 5),
    (0.9, 10),
    (0.95, 20),
    (0.99, 100),
    (0.995, 200),
    (0.999, 1000),
];
/// Random draws of blocks, the same for every distribution of a comparison.
pub(super) struct Draws {
    /// By resample: how often each block of A and of B was drawn.
    times: [Vec<Vec<u32>>; 2],
}

impl Draws {
    pub(super) fn new(blocks: [usize; 2], resamples: u32, seed: u64) -> Self {
        let mut random = Random::seeded(seed);
        let times = blocks.map(|blocks| {
            let draw = |random: &mut Random| {
                let mut times = vec![0; blocks];
                for _ in 0..blocks {
                    times[random.below(blocks)] += 1;
                }
                times
            };
            (0..resamples).map(|_| draw(&mut random)).collect()
        });
        Self { times }
    }
}

/// The value of a fault: its block, the value as traced, corrected.
pub(super) type Value = (usize, u64, u64);

/// Both distributions and their difference; `mean` is the difference of their means with its
/// interval.
pub(super) fn shift(a: &[Value], b: &[Value], draws: &Draws, mean: Estimate) -> Shift {
    let sides = [a, b];
    let raw = sides.map(|values| histogram(values.iter().map(|value| value.1)));
    let corrected = sides.map(|values| histogram(values.iter().map(|value| value.2)));
    let fewest = a.len().min(b.len());
    let wanted: Vec<f64> = QUANTILES
        .iter()
        .filter(|(_, needs)| fewest >= *needs)
        .map(|(quantile, _)| *quantile)
        .collect();
    let intervals = intervals(sides, &wanted, draws);
    let of = |pair: &[Histogram; 2], quantile: f64| Pair {
        a: whole(pair[0].quantile(quantile)),
        b: whole(pair[1].quantile(quantile)),
    };
    let quantiles = wanted
        .iter()
        .zip(intervals)
        .map(|(&quantile, (low, high))| {
            let ns = Pairs {
                raw: of(&raw, quantile),
                corrected: of(&corrected, quantile),
            };
            let value = ns.corrected.b - ns.corrected.a;
            QuantileShift {
                quantile,
                ns,
                change: Estimate {
                    value,
                    low: low.min(value),
                    high: high.max(value),
                },
                test: None,
            }
        });
    Shift {
        quantiles: quantiles.collect(),
        mean,
        mean_test: None,
        a: figures(&corrected[0]),
        b: figures(&corrected[1]),
        a_raw: figures(&raw[0]),
        b_raw: figures(&raw[1]),
    }
}

fn histogram(values: impl Iterator<Item = u64>) -> Histogram {
    let mut histogram = Histogram::default();
    values.for_each(|value| histogram.record(value));
    histogram
}

/// Values rounded to buckets, ascending, with their block and count.
fn by_value(values: &[Value]) -> Vec<(u32, usize, u32)> {
    let mut all: Vec<(u32, usize, u32)> = values
        .iter()
        .map(|&(block, _, corrected)| (bucket_of(corrected), block, 1))
        .collect();
    all.sort_unstable();
    all.dedup_by(|next, kept| {
        let same = (next.0, next.1) == (kept.0, kept.1);
        if same {
            kept.2 += next.2;
        }
        same
    });
    all
}

/// The middle 95 % of each quantile's change.
fn intervals(sides: [&[Value]; 2], wanted: &[f64], draws: &Draws) -> Vec<(f64, f64)> {
    let values = sides.map(by_value);
    let mut changes: Vec<Vec<f64>> = vec![Vec::new(); wanted.len()];
    for (times_a, times_b) in draws.times[0].iter().zip(&draws.times[1]) {
        let a = quantiles(&values[0], times_a, wanted);
        let b = quantiles(&values[1], times_b, wanted);
        let (Some(a), Some(b)) = (a, b) else { continue };
        for ((changes, a), b) in changes.iter_mut().zip(a).zip(b) {
            changes.push(b - a);
        }
    }
    let interval = |mut changes: Vec<f64>| {
        changes.sort_by(f64::total_cmp);
        let cut = changes.len() / 40;
        match &changes[..] {
            // Nothing was resampled: no interval.
            [] => (f64::INFINITY, f64::NEG_INFINITY),
            all => (all[cut], all[all.len() - 1 - cut]),
        }
    };
    changes.into_iter().map(interval).collect()
}

/// Quantiles of a resample; `None` if it drew no value.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a rank within a count"
)]
fn quantiles(values: &[(u32, usize, u32)], times: &[u32], wanted: &[f64]) -> Option<Vec<f64>> {
    let weight =
        |&(_, block, count): &(u32, usize, u32)| u64::from(count) * u64::from(times[block]);
    let all: u64 = values.iter().map(weight).sum();
    if all == 0 {
        return None;
    }
    let mut found = Vec::with_capacity(wanted.len());
    let mut seen = 0;
    let mut values = values.iter();
    let mut bucket = 0;
    for quantile in wanted {
        let rank = ((quantile * whole(all)).ceil() as u64).max(1);
        while seen < rank {
            let Some(value) = values.next() else { break };
            bucket = value.0;
            seen += weight(value);
        }
        let (low, high) = bucket_range(bucket);
        found.push(whole(low + (high - low - 1) / 2));
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(shift: u64) -> Vec<Value> {
        let mut random = Random::seeded(shift + 9);
        let value = |at: usize, random: &mut Random| {
            let ns = 1000 + random.below(200) as u64 + shift;
            (at / 50, ns + 500, ns)
        };
        (0..2000).map(|at| value(at, &mut random)).collect()
    }

    #[test]
    fn intervals_hold_what_was_planted() {
        let draws = Draws::new([40, 40], 400, 1);
        for planted in [0, 300] {
            let found = shift(&values(0), &values(planted), &draws, Estimate::default());
            assert_eq!(found.quantiles.len(), QUANTILES.len());
            let holds = |shift: &&QuantileShift| shift.change.covers(whole(planted));
            let middle: Vec<_> = found
                .quantiles
                .iter()
                .filter(|q| (0.1..=0.9).contains(&q.quantile))
                .collect();
            let held = middle.iter().copied().filter(holds).count();
            assert!(held + 1 >= middle.len(), "{:#?}", found.quantiles);
            let width = found.quantiles[6].change;
            assert!(width.high - width.low < 60.0, "{width:?}");
            assert!(
                (found.quantiles[6].ns.raw.a - found.quantiles[6].ns.corrected.a - 500.0).abs()
                    < 20.0
            );
        }
    }

    #[test]
    fn few_values_have_few_quantiles() {
        let draws = Draws::new([1, 1], 400, 1);
        let few = [(0, 10, 10), (0, 20, 20)];
        let found = shift(&few, &few, &draws, Estimate::default());
        assert_eq!(found.quantiles.len(), 1);
        assert_eq!(shift(&[], &few, &draws, Estimate::default()).quantiles, []);
    }
}
