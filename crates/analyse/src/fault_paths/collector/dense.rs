//! Distributions met at every node.

use pagewise_model::histogram::Histogram;
use serde::{Deserialize, Serialize};

/// A histogram for values met at every node.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(in super::super) struct Dense {
    counts: Vec<u64>,
    total: u64,
}

impl Dense {
    /// Whether all buckets are in range.
    pub(in super::super) fn is_sound(&self) -> bool {
        self.counts.len() <= pagewise_model::histogram::bucket_of(u64::MAX) as usize + 1
    }

    pub(in super::super) fn add(&mut self, other: &Self) {
        let len = self.counts.len().max(other.counts.len());
        self.counts.resize(len, 0);
        for (count, more) in self.counts.iter_mut().zip(&other.counts) {
            *count += more;
        }
        self.total += other.total;
    }

    #[inline]
    pub(super) fn record(&mut self, value: u64) {
        let bucket = pagewise_model::histogram::bucket_of(value) as usize;
        if bucket >= self.counts.len() {
            self.counts.resize(bucket + 1, 0);
        }
        self.counts[bucket] += 1;
        self.total += 1;
    }

    /// The distribution; its sum is rounded to buckets.
    pub(in super::super) fn histogram(&self) -> Histogram {
        let mut histogram = Histogram::default();
        for (bucket, &count) in (0..).zip(&self.counts) {
            histogram.record_many(pagewise_model::histogram::bucket_range(bucket).0, count);
        }
        histogram
    }
}
