//! Intervals by resampling hosts: the bootstrap (Efron, 1979).

use pagewise_model::units::Estimate;
use pagewise_stats::{Random, hosts::quantile};

/// Resamples behind each interval: enough for its ends to vary by less than a tenth of its width.
const RESAMPLES: usize = 400;
/// Any fixed number, so that the same data have the same interval.
const SEED: u64 = 20;

/// How often each host is drawn in each resample.
pub struct Resamples {
    counts: Vec<Vec<u8>>,
}

impl Resamples {
    /// Resamples of this many hosts.
    pub fn new(hosts: usize) -> Self {
        let mut random = Random::seeded(SEED);
        let counts = (0..RESAMPLES).map(|_| {
            let mut counts = vec![0_u8; hosts];
            for _ in 0..hosts {
                let drawn = &mut counts[random.below(hosts)];
                *drawn = drawn.saturating_add(1);
            }
            counts
        });
        Self {
            counts: counts.collect(),
        }
    }

    /// A sum over hosts, with the interval of what other such hosts would have.
    pub fn sum(&self, values: &[f64]) -> Estimate {
        self.sum_within(values, values, values)
    }

    /// The mean over hosts, with its interval.
    pub fn mean(&self, values: &[f64]) -> Estimate {
        self.sum(values).scaled(1.0 / values.len().max(1) as f64)
    }

    /// A sum over hosts, where each host's value has an interval of its own.
    pub fn sum_within(&self, values: &[f64], lows: &[f64], highs: &[f64]) -> Estimate {
        let sums = |values: &[f64]| {
            let weighted = |counts: &Vec<u8>| {
                let pairs = counts.iter().zip(values);
                pairs.map(|(&count, value)| f64::from(count) * value).sum()
            };
            let mut sums: Vec<f64> = self.counts.iter().map(weighted).collect();
            sums.sort_by(f64::total_cmp);
            sums
        };
        let (low, high) = match (values == lows, values == highs) {
            (true, true) => {
                let sums = sums(values);
                (quantile(&sums, 0.025), quantile(&sums, 0.975))
            }
            _ => (quantile(&sums(lows), 0.025), quantile(&sums(highs), 0.975)),
        };
        Estimate {
            value: values.iter().sum(),
            low,
            high,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_is_that_of_theory() {
        // A sum of 400 values with a standard deviation of 1: 2 × 1.96 × √400 wide.
        let values: Vec<f64> = (0..400)
            .map(|at| if at % 2 == 0 { 1.0 } else { 3.0 })
            .collect();
        let sum = Resamples::new(400).sum(&values);
        assert!((sum.value - 800.0).abs() < 1e-9);
        let width = sum.high - sum.low;
        assert!((width - 78.4).abs() < 12.0, "{width}");
        assert!(sum.low < 800.0 && sum.high > 800.0);
    }
}
