//! A mergeable latency histogram with a bounded relative error, in the manner of HDR histograms.
//!
//! Values below 2^8 have buckets of their own; above, each power of two is split into 2^7 buckets,
//! so a bucket is never wider than 1/128 of its value: two to three significant digits. Sums are
//! exact.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeMap;

const LINEAR_BITS: u32 = 8;
const SUB_BITS: u32 = LINEAR_BITS - 1;

/// Counts of values by logarithmic bucket.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Histogram {
    /// Bucket index to count; see [`bucket_of`].
    // Ascending; a map in JSON.
    #[serde(serialize_with = "as_map", deserialize_with = "of_map")]
    #[cfg_attr(feature = "schema", schemars(with = "BTreeMap<u32, u64>"))]
    buckets: Vec<(u32, u64)>,
    count: u64,
    sum: u128,
    min: u64,
    max: u64,
}

/// The bucket that contains `value`.
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

/// Merges each `by` neighbouring buckets into one: first value, first value past it, count. `by` is
/// a power of two up to the 128 buckets of a doubling, so that the wider ones start where a doubling
/// does.
#[must_use]
pub fn wider(buckets: impl IntoIterator<Item = (u64, u64, u64)>, by: u32) -> Vec<(u64, u64, u64)> {
    let mut found: Vec<(u64, u64, u64)> = Vec::new();
    for (low, _, count) in buckets {
        let first = bucket_of(low) / by * by;
        let (from, to) = (bucket_range(first).0, bucket_range(first + by - 1).1);
        match found.last_mut() {
            Some(last) if last.0 == from => last.2 += count,
            _ => found.push((from, to, count)),
        }
    }
    found
}

impl Histogram {
    /// Adds one value.
    pub fn record(&mut self, value: u64) {
        self.record_many(value, 1);
    }

    /// Adds one value `times` times, for a sample that stands for that many events.
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
        let bucket = bucket_of(value);
        match self.buckets.last_mut() {
            Some((last, count)) if *last == bucket => *count += times,
            Some((last, _)) if *last > bucket => {
                add(&mut self.buckets, 0, (bucket, times));
            }
            _ => self.buckets.push((bucket, times)),
        }
        self.count += times;
        self.sum += u128::from(value) * u128::from(times);
    }

    /// Adds another histogram's values.
    pub fn merge(&mut self, other: &Self) {
        self.add(
            &other.buckets,
            other.count,
            (other.sum, other.min, other.max),
        );
    }

    /// Adds values counted elsewhere: counts by [`bucket_of`], ascending, with the exact sum, the
    /// smallest and the largest of the values.
    pub fn add_counts(&mut self, counts: &[(u32, u64)], sum: u128, min: u64, max: u64) {
        let count = counts.iter().map(|(_, count)| count).sum();
        self.add(counts, count, (sum, min, max));
    }

    fn add(&mut self, counts: &[(u32, u64)], count: u64, (sum, min, max): (u128, u64, u64)) {
        if count == 0 {
            return;
        }
        self.min = if self.count == 0 {
            min
        } else {
            self.min.min(min)
        };
        self.max = self.max.max(max);
        self.count += count;
        self.sum += sum;
        if self.buckets.is_empty() {
            self.buckets.reserve_exact(counts.len());
        }
        let mut at = 0;
        for &(bucket, count) in counts.iter().filter(|(_, count)| *count > 0) {
            at = match self.buckets.last() {
                Some((last, _)) if *last >= bucket => add(&mut self.buckets, at, (bucket, count)),
                _ => {
                    self.buckets.push((bucket, count));
                    self.buckets.len()
                }
            };
        }
    }

    /// Number of values.
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
    pub fn mean(&self) -> f64 {
        if self.count == 0 {
            0.0
        } else {
            self.sum as f64 / self.count as f64
        }
    }

    /// The value below which a share `quantile` (0 to 1) of the values lies, taken as the middle of
    /// its bucket and never outside the observed range; 0 when empty.
    #[must_use]
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a rank within a count, clamped to it"
    )]
    pub fn quantile(&self, quantile: f64) -> u64 {
        let rank = ((quantile.clamp(0.0, 1.0) * self.count as f64).ceil() as u64).max(1);
        let mut seen = 0;
        for &(bucket, count) in &self.buckets {
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
        self.buckets.iter().map(|&(bucket, count)| {
            let (low, high) = bucket_range(bucket);
            (low, high, count)
        })
    }
}

/// Adds to the count of a bucket at or after `from`. Returns its position.
fn add(buckets: &mut Vec<(u32, u64)>, from: usize, (bucket, count): (u32, u64)) -> usize {
    match buckets[from..].binary_search_by_key(&bucket, |&(bucket, _)| bucket) {
        Ok(at) => {
            buckets[from + at].1 += count;
            from + at
        }
        Err(at) => {
            buckets.insert(from + at, (bucket, count));
            from + at
        }
    }
}

fn as_map<S: Serializer>(buckets: &[(u32, u64)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(buckets.iter().copied())
}

fn of_map<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<(u32, u64)>, D::Error> {
    let buckets = BTreeMap::<u32, u64>::deserialize(deserializer)?;
    Ok(buckets.into_iter().collect())
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
        fn wider_buckets_hold_the_same_values(
            values in prop::collection::vec(any::<u64>(), 1..90), shift in 0_u32..8,
        ) {
            let mut all = Histogram::default();
            values.iter().for_each(|&value| all.record(value));
            let by = 1 << shift;
            let found = wider(all.buckets(), by);
            for &(low, past, count) in &found {
                let inside = |value: &&u64| (low..=past - 1).contains(*value);
                prop_assert_eq!(values.iter().filter(inside).count() as u64, count);
            }
            prop_assert_eq!(found.iter().map(|bucket| bucket.2).sum::<u64>(), values.len() as u64);
            prop_assert_eq!(&wider(found.iter().copied(), by), &found);
        }

        #[test]
        fn buckets_are_those_of_a_map(values in prop::collection::vec((any::<u16>(), 1_u64..5), 0..90)) {
            let mut histogram = Histogram::default();
            let mut map: BTreeMap<u32, u64> = BTreeMap::new();
            for &(value, times) in &values {
                histogram.record_many(value.into(), times);
                *map.entry(bucket_of(value.into())).or_default() += times;
            }
            prop_assert_eq!(&histogram.buckets, &map.iter().map(|(&b, &n)| (b, n)).collect::<Vec<_>>());
            let text = serde_json::to_string(&histogram).expect("numbers");
            let buckets = serde_json::to_string(&map).expect("numbers");
            prop_assert!(text.starts_with(&format!("{{\"buckets\":{buckets},")), "{}", text);
            let back: Histogram = serde_json::from_str(&text).expect("as it was written");
            prop_assert_eq!(back, histogram);
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
