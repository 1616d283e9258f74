//! A histogram for the many small distributions of a trace: one per path and layer.

use pagewise_model::histogram::{Histogram, bucket_of, bucket_range};
use serde::{Deserialize, Serialize};

/// Counts by bucket, sorted; small if values are similar.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Tally {
    buckets: Vec<(u32, u64)>,
    pub count: u64,
    pub sum: u128,
    min: u64,
    max: u64,
}

impl Tally {
    pub(super) fn record(&mut self, value: u64) {
        let bucket = bucket_of(value);
        match self
            .buckets
            .binary_search_by_key(&bucket, |&(bucket, _)| bucket)
        {
            Ok(at) => self.buckets[at].1 += 1,
            Err(at) => self.buckets.insert(at, (bucket, 1)),
        }
        self.min = if self.count == 0 {
            value
        } else {
            self.min.min(value)
        };
        self.max = self.max.max(value);
        self.count += 1;
        self.sum += u128::from(value);
    }

    /// Whether buckets are in order and in range, as recorded ones are.
    pub(super) fn is_sound(&self) -> bool {
        let last = self.buckets.last().map_or(0, |&(bucket, _)| bucket);
        last <= bucket_of(u64::MAX) && self.buckets.is_sorted_by(|a, b| a.0 < b.0)
    }

    /// Adds the values of another tally.
    pub(super) fn merge(&mut self, other: &Self) {
        if other.count == 0 {
            return;
        }
        for &(bucket, count) in &other.buckets {
            match self.buckets.binary_search_by_key(&bucket, |&(b, _)| b) {
                Ok(at) => self.buckets[at].1 += count,
                Err(at) => self.buckets.insert(at, (bucket, count)),
            }
        }
        self.min = match self.count {
            0 => other.min,
            _ => self.min.min(other.min),
        };
        self.max = self.max.max(other.max);
        self.count += other.count;
        self.sum += other.sum;
    }

    /// The distribution.
    pub(super) fn histogram(&self) -> Histogram {
        let mut histogram = Histogram::default();
        self.add_to(&mut histogram);
        histogram
    }

    /// Adds the distribution to another one.
    pub(super) fn add_to(&self, histogram: &mut Histogram) {
        histogram.add_counts(&self.buckets, self.sum, self.min, self.max);
    }

    /// Values that are at most this.
    pub(super) fn count_below(&self, ns: f64) -> u64 {
        let buckets = self.buckets.iter();
        let below = buckets.filter(|&&(bucket, _)| reduce(self.middle(bucket), ns) == 0);
        below.map(|&(_, count)| count).sum()
    }

    fn middle(&self, bucket: u32) -> u64 {
        let (low, high) = bucket_range(bucket);
        (low + (high - low - 1) / 2).clamp(self.min, self.max)
    }

    /// The distribution with `less` subtracted from every value, clamped at zero.
    pub(super) fn shifted(&self, less: f64) -> Histogram {
        let mut shifted = Histogram::default();
        for &(bucket, count) in &self.buckets {
            shifted.record_many(reduce(self.middle(bucket), less), count);
        }
        shifted
    }
}

/// A duration with `less` nanoseconds subtracted, clamped at zero.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "nanoseconds of one call, far below 2^53, clamped to zero"
)]
pub(super) fn reduce(ns: u64, less: f64) -> u64 {
    (ns as f64 - less).max(0.0).round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_tally_is_the_histogram_of_its_values(values in prop::collection::vec(any::<u32>(), 0..80)) {
            let mut tally = Tally::default();
            let mut histogram = Histogram::default();
            for value in values {
                tally.record(u64::from(value));
                histogram.record(u64::from(value));
            }
            prop_assert_eq!(tally.histogram(), histogram);
        }

        #[test]
        fn merging_equals_recording_together(a in prop::collection::vec(any::<u32>(), 0..50),
                                             b in prop::collection::vec(any::<u32>(), 0..50)) {
            let of = |values: &[u32]| {
                let mut tally = Tally::default();
                values.iter().for_each(|&value| tally.record(u64::from(value)));
                tally
            };
            let mut merged = of(&a);
            merged.merge(&of(&b));
            prop_assert_eq!(merged, of(&[a, b].concat()));
        }
    }
}
