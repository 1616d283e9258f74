//! Converts weights into shares: scaled to the exact totals, with 95 % intervals.

mod scale;
mod split;

pub(crate) use scale::Scale;
#[cfg(test)]
pub(crate) use split::repeats;
pub(crate) use split::{Counted, Ledger, is_first, ledger};

use crate::causes::Attribution;
use pagewise_model::findings::{Share, ThreadShare};
use pagewise_model::units::{Estimate, Nanos};
use std::collections::BTreeMap;

/// Threads that a report lists.
const MOST_THREADS: usize = 50;
/// Faults come in bursts from the same place, and samples at an even distance see the same part of
/// each burst: their effective number is assumed to be half of what independent samples would have.
const DESIGN_EFFECT: f64 = 2.0;
/// Standard score of a 95 % interval.
pub(crate) const Z95: f64 = 1.96;

/// Interval of a share of `samples` independent observations (Wilson 1927), which stays within 0
/// and 1 and is valid for shares near them.
pub(crate) fn wilson(share: f64, samples: f64) -> Estimate {
    if samples <= 0.0 {
        return Estimate {
            value: share,
            low: 0.0,
            high: 1.0,
        };
    }
    let z2 = Z95 * Z95 / samples;
    let centre = (share + z2 / 2.0) / (1.0 + z2);
    let spread = (share * (1.0 - share) / samples + z2 / (4.0 * samples))
        .max(0.0)
        .sqrt();
    let half = Z95 * spread / (1.0 + z2);
    Estimate {
        value: share,
        low: (centre - half).clamp(0.0, share),
        high: (centre + half).clamp(share, 1.0),
    }
}

/// The number of independent observations that a recording's samples correspond to.
pub(crate) fn effective_samples(attribution: &Attribution) -> f64 {
    attribution.tally.all.effective_samples() / DESIGN_EFFECT
}

/// Possible errors in a kind's number of faults if they are sampled.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Doubt {
    /// Variance of their sum, if samples of the kind itself show it.
    pub(crate) variance: Option<f64>,
    /// An additional part of all faults (0 to 1), for errors of the classification.
    pub(crate) share: f64,
}

/// Faults of each kind, largest number first.
pub(crate) fn shares<K: Copy + Ord>(
    faults: &BTreeMap<K, f64>,
    attribution: &Attribution,
    scale: &Scale,
    doubt: impl Fn(K) -> Doubt,
) -> Vec<Share<K>> {
    let all = attribution.tally.all.sum.max(1.0);
    let mut shares: Vec<Share<K>> = faults
        .iter()
        .filter(|(_, sum)| **sum > 0.5)
        .map(|(&key, &sum)| Share {
            key,
            faults: scale.faults(interval(attribution, sum, doubt(key)), sum / all),
            time: None,
        })
        .collect();
    shares.sort_by(|a, b| b.faults.value.total_cmp(&a.faults.value));
    shares
}

/// Interval of a sum of weights.
pub(crate) fn interval(attribution: &Attribution, sum: f64, doubt: Doubt) -> Estimate {
    if attribution.sees_every_fault {
        return Estimate::exact(sum);
    }
    let all = attribution.tally.all.sum.max(1.0);
    let sampled = match doubt.variance {
        Some(variance) => around(sum, Z95 * variance.sqrt() + typical_weight(attribution)),
        None => wilson((sum / all).clamp(0.0, 1.0), effective_samples(attribution)).scaled(all),
    };
    let slack = doubt.share * all;
    Estimate {
        value: sum,
        low: (sampled.low - slack).max(0.0),
        high: (sampled.high + slack).min(all.max(sum)),
    }
}

fn around(value: f64, half: f64) -> Estimate {
    Estimate {
        value,
        low: value - half,
        high: value + half,
    }
}

/// The average weight of a fault's sample: the part that may be hidden before the first sample and
/// after the last.
fn typical_weight(attribution: &Attribution) -> f64 {
    let all = attribution.tally.all;
    if all.sum > 0.0 {
        all.squares / all.sum
    } else {
        0.0
    }
}

/// Faults by thread, largest number first.
pub(crate) fn threads(attribution: &Attribution, scale: &Scale) -> Vec<ThreadShare> {
    let mut threads: Vec<ThreadShare> = attribution
        .threads
        .iter()
        .filter(|thread| thread.faults > 0.0)
        .map(|thread| ThreadShare {
            pid: thread.pid,
            tid: thread.tid,
            comm: thread.comm.clone(),
            faults: thread.faults * scale.factor,
        })
        .collect();
    threads.sort_by(|a, b| b.faults.total_cmp(&a.faults));
    threads.truncate(MOST_THREADS);
    threads
}

/// Share of all faults that the busiest thread takes.
pub(crate) fn busiest_share(attribution: &Attribution) -> f64 {
    let faults = attribution.threads.iter().map(|thread| thread.faults);
    let all = attribution.tally.all.sum;
    if all > 0.0 {
        faults.fold(0.0, f64::max) / all
    } else {
        0.0
    }
}

/// A ratio of times, at most 1; `None` if the whole is unknown.
pub(crate) fn share_of(total_ns: Estimate, whole: Nanos) -> Option<Estimate> {
    let seconds = whole.as_secs_f64();
    (seconds > 0.0).then(|| {
        let share = total_ns.scaled(1e-9 / seconds);
        Estimate {
            value: share.value.min(1.0),
            low: share.low.min(1.0),
            high: share.high.min(1.0),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_covers_the_truth_as_often_as_it_says() {
        // All outcomes of 60 draws with probability 0.9, weighted by their probability.
        let (n, p) = (60_u32, 0.9_f64);
        let mut covered = 0.0;
        let mut probability = (1.0 - p).powi(60);
        for k in 0..=n {
            if wilson(f64::from(k) / f64::from(n), f64::from(n)).covers(p) {
                covered += probability;
            }
            probability *= f64::from(n - k) / f64::from(k + 1) * p / (1.0 - p);
        }
        assert!((0.92..0.99).contains(&covered), "{covered}");
    }

    #[test]
    fn an_interval_never_leaves_the_possible_range() {
        let all = wilson(1.0, 10.0);
        assert!(all.high <= 1.0 && all.low > 0.6 && all.covers(1.0));
        let none = wilson(0.0, 10.0);
        assert!(none.low >= 0.0 && none.high < 0.4 && none.covers(0.0));
    }
}
