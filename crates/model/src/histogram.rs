//! A mergeable latency histogram with a bounded relative error, in the manner of HDR histograms.
//!
//! Values below 2^8 have buckets of their own; above, each power of two is split into 2^7
//! buckets, so a bucket is never wider than 1/128 of its value: two to three significant digits. Sums are kept exactly.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

const LINEAR_BITS: u32 = 8;
const SUB_BITS: u32 = LINEAR_BITS - 1;

/// Counts of values by logarithmic bucket.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Histogram {
    /// Bucket index to count; see [`bucket_of`].
    buckets: BTreeMap<u32, u64>,
    count: u64,
    sum: u128,
    min: u64,
    max: u64,
}

/// The bucket that holds `value`.
#[must_use]
pub fn bucket_of(value: u64) -> u32 {
    let bits = 64 - value.leading_zeros();
    if bits <= LINEAR_BITS {
        return u32::try_from(value).unwrap_or(u32::MAX);
    }
    let shift = bits - LINEAR_BITS;
    let top = u32::try_from(value >> shift).unwrap_or(u32::MAX);
    (shift << SUB_BITS) + top
}

/// First value of a bucket and the first value past it (saturating).
#[must_use]
pub fn bucket_range(bucket: u32) -> (u64, u64) {
    if bucket < 1 << LINEAR_BITS {
        return (u64::from(bucket), u64::from(bucket) + 1);
    }
    let shift = (bucket >> SUB_BITS) - 1;
    let top = u64::from(bucket) - (u64::from(shift) << SUB_BITS);
    let low = top << shift;
    (low, low.saturating_add(1 << shift))
}

impl Histogram {
    /// A histogram counted elsewhere: counts by [`bucket_of`], with the exact sum, the smallest
    /// and the largest of the values.
    #[must_use]
    pub fn from_counts(
        counts: impl IntoIterator<Item = (u32, u64)>,
        sum: u128,
        min: u64,
        max: u64,
    ) -> Self {
        let filled = counts.into_iter().filter(|&(_, count)| count > 0);
        let buckets: BTreeMap<u32, u64> = filled.collect();
        Self {
            count: buckets.values().sum(),
            buckets,
            sum,
            min,
            max,
        }
    }

    /// Adds one value.
    pub fn record(&mut self, value: u64) {
        self.record_many(value, 1);
    }

    /// Adds one value `times` times, as a sample that stands for so many events.
    pub fn record_many(&mut self, value: u64, times: u64) {
        if times == 0 {
            return;
        }
        self.min = if self.count == 0 {
            value
        } else {
            self.min.min(value)
        };
        self.max = self.max.max(value);
        *self.buckets.entry(bucket_of(value)).or_default() += times;
        self.count += times;
        self.sum += u128::from(value) * u128::from(times);
    }

    /// Adds another histogram's values.
    pub fn merge(&mut self, other: &Self) {
        if other.count == 0 {
            return;
        }
        self.min = if self.count == 0 {
            other.min
        } else {
            self.min.min(other.min)
        };
        self.max = self.max.max(other.max);
        for (&bucket, &count) in &other.buckets {
            *self.buckets.entry(bucket).or_default() += count;
        }
        self.count += other.count;
        self.sum += other.sum;
    }

    /// How many values.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Exact sum of the values.
    #[must_use]
    pub fn sum(&self) -> u128 {
        self.sum
    }

    /// Smallest value; 0 when empty.
    #[must_use]
    pub fn min(&self) -> u64 {
        self.min
    }

    /// Largest value; 0 when empty.
    #[must_use]
    pub fn max(&self) -> u64 {
        self.max
    }

    /// Arithmetic mean; 0 when empty.
    #[must_use]
    #[allow(
        clippy::cast_precision_loss,
        reason = "a mean is shown with three digits"
    )]
    pub fn mean(&self) -> f64 {
        if self.count == 0 {
            0.0
        } else {
            self.sum as f64 / self.count as f64
        }
    }

    /// The value below which a share `quantile` (0 to 1) of the values lies, by the middle of
    /// its bucket and never outside the observed range; 0 when empty.
    #[must_use]
    #[allow(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a rank within a count, clamped to it"
    )]
    pub fn quantile(&self, quantile: f64) -> u64 {
        let rank = ((quantile.clamp(0.0, 1.0) * self.count as f64).ceil() as u64).max(1);
        let mut seen = 0;
        for (&bucket, &count) in &self.buckets {
            seen += count;
            if seen >= rank {
                let (low, high) = bucket_range(bucket);
                return (low + (high - low - 1) / 2).clamp(self.min, self.max);
            }
        }
        self.max
    }

    /// Each filled bucket as (first value, first value past it, count), ascending.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64, u64)> + '_ {
        self.buckets.iter().map(|(&bucket, &count)| {
            let (low, high) = bucket_range(bucket);
            (low, high, count)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_value_lies_in_its_bucket(value in any::<u64>()) {
            let (low, high) = bucket_range(bucket_of(value));
            prop_assert!(low <= value && (value < high || high == u64::MAX));
        }

        #[test]
        fn a_bucket_is_narrower_than_a_hundredth(value in 256_u64..u64::MAX / 2) {
            let (low, high) = bucket_range(bucket_of(value));
            prop_assert!((high - low) * 100 < low);
        }

        #[test]
        fn merging_equals_recording_together(a in prop::collection::vec(any::<u32>(), 0..50),
                                             b in prop::collection::vec(any::<u32>(), 0..50)) {
            let of = |values: &[u32]| {
                let mut h = Histogram::default();
                values.iter().for_each(|&v| h.record(u64::from(v)));
                h
            };
            let mut merged = of(&a);
            merged.merge(&of(&b));
            prop_assert_eq!(merged, of(&[a, b].concat()));
        }

        #[test]
        fn quantiles_stay_within_one_percent(mut values in prop::collection::vec(1_u64..1 << 40, 1..200)) {
            let mut h = Histogram::default();
            values.iter().for_each(|&v| h.record(v));
            values.sort_unstable();
            let exact = values[(values.len() - 1) / 2];
            let got = h.quantile(0.5);
            prop_assert!(got.abs_diff(exact) * 100 <= exact, "{got} against {exact}");
        }
    }
}
