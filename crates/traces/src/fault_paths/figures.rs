//! Figures of a distribution, and shares.

use super::modes::modes;
use pagewise_model::fault_paths::Latency;
use pagewise_model::histogram::Histogram;

pub(super) fn figures(histogram: &Histogram) -> Latency {
    Latency {
        count: histogram.count(),
        sum_ns: u64::try_from(histogram.sum()).unwrap_or(u64::MAX),
        mean_ns: histogram.mean(),
        min_ns: histogram.min(),
        p50_ns: histogram.quantile(0.50),
        p90_ns: histogram.quantile(0.90),
        p99_ns: histogram.quantile(0.99),
        max_ns: histogram.max(),
        modes: modes(histogram),
        buckets: histogram.buckets().collect(),
    }
}

pub(super) fn ratio(part: u64, whole: u64) -> f64 {
    share(part as f64, whole as f64)
}

pub(super) fn share(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

/// A count as a figure.
pub(super) fn whole(count: u64) -> f64 {
    count as f64
}
