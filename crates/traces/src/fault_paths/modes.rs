//! The peaks of a latency distribution, found without prior knowledge of their positions.
//!
//! Latencies are put into bins of equal width on a logarithmic axis (8 %) and smoothed; a mode is a
//! local maximum that stands out from the adjacent valleys, and extends up to them.

pub use pagewise_model::fault_paths::Mode;
use pagewise_model::histogram::Histogram;

/// Width of a bin: a factor of 1.08.
const BIN: f64 = 0.076_961_041_136_128_3;
/// A mode contains at least this share of all values.
const LEAST_SHARE: f64 = 0.01;
/// A valley is at most this fraction of its lower adjacent peak; otherwise the two peaks are one.
const VALLEY: f64 = 0.6;

/// The modes of a distribution, from fast to slow.
#[must_use]
pub fn modes(histogram: &Histogram) -> Vec<Mode> {
    let bins = bins(histogram);
    let smooth = smoothed(&bins);
    let mut borders = vec![0];
    borders.extend(valleys(&smooth));
    borders.push(bins.len());
    let ranges = borders.windows(2).map(|pair| (pair[0], pair[1]));
    let found = ranges.filter_map(|range| mode(&bins, &smooth, range, histogram.count()));
    found.filter(|mode| mode.share >= LEAST_SHARE).collect()
}

#[derive(Clone, Copy, Default)]
struct Bin {
    count: f64,
    low: u64,
    high: u64,
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "logarithms of durations are small and positive"
)]
fn bins(histogram: &Histogram) -> Vec<Bin> {
    let first = (histogram.min().max(1) as f64).ln();
    let place = |value: u64| (((value.max(1) as f64).ln() - first).max(0.0) / BIN) as usize;
    let mut bins = vec![Bin::default(); place(histogram.max()) + 1];
    for (low, high, count) in histogram.buckets() {
        let middle = low + (high - low) / 2;
        let last = bins.len() - 1;
        let bin = &mut bins[place(middle).min(last)];
        bin.low = if bin.count == 0.0 {
            low
        } else {
            bin.low.min(low)
        };
        bin.high = bin.high.max(high - 1);
        bin.count += count as f64;
    }
    bins
}

/// Weights 1 2 3 2 1 around each bin.
fn smoothed(bins: &[Bin]) -> Vec<f64> {
    let at = |place: usize, offset: isize| {
        let place = place.checked_add_signed(offset);
        place.and_then(|p| bins.get(p)).map_or(0.0, |bin| bin.count)
    };
    let around = |place: usize| {
        let sides = at(place, -2) + at(place, 2) + 2.0 * (at(place, -1) + at(place, 1));
        (sides + 3.0 * at(place, 0)) / 9.0
    };
    (0..bins.len()).map(around).collect()
}

/// Positions between peaks where the distribution falls well below both.
fn valleys(smooth: &[f64]) -> Vec<usize> {
    let mut found = Vec::new();
    let mut peak = 0.0_f64;
    let mut valley = (f64::INFINITY, 0);
    for (place, &height) in smooth.iter().enumerate() {
        if height < valley.0 {
            valley = (height, place);
        }
        let risen = valley.0 < VALLEY * height && valley.0 < VALLEY * peak;
        if risen {
            found.push(valley.1);
            peak = height;
            valley = (height, place);
        } else if height > peak {
            peak = height;
            valley = (height, place);
        }
    }
    found
}

fn mode(bins: &[Bin], smooth: &[f64], (from, to): (usize, usize), all: u64) -> Option<Mode> {
    let inside = bins.get(from..to)?;
    let count: f64 = inside.iter().map(|bin| bin.count).sum();
    if count == 0.0 {
        return None;
    }
    let by_height = |a: &usize, b: &usize| smooth[*a].total_cmp(&smooth[*b]);
    let filled = (from..to).filter(|&place| bins[place].count > 0.0);
    let peak = bins[filled.max_by(by_height)?];
    let mut seen = 0.0;
    let (mut low, mut high) = (None, 0);
    for bin in inside.iter().filter(|bin| bin.count > 0.0) {
        if seen < 0.95 * count {
            high = bin.high;
        }
        seen += bin.count;
        if seen > 0.05 * count {
            low.get_or_insert(bin.low);
        }
    }
    Some(Mode {
        peak_ns: peak.low + (peak.high - peak.low) / 2,
        low_ns: low.unwrap_or(peak.low),
        high_ns: high,
        share: count / all as f64,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn around(histogram: &mut Histogram, middle: u64, count: u64) {
        for i in 0..count {
            // A triangle of ±10 % around the middle.
            let offset = (i * 7919 % 100 + i * 104_729 % 100) * middle / 1000;
            histogram.record(middle * 9 / 10 + offset);
        }
    }

    #[test]
    fn two_peaks_and_their_shares() {
        let mut histogram = Histogram::default();
        around(&mut histogram, 1_000, 3_000);
        around(&mut histogram, 20_000, 1_000);
        let found = modes(&histogram);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!((found[0].share - 0.75).abs() < 0.01, "{found:?}");
        assert!((found[1].share - 0.25).abs() < 0.01, "{found:?}");
        assert!((900..1100).contains(&found[0].peak_ns), "{found:?}");
        assert!((18_000..22_000).contains(&found[1].peak_ns), "{found:?}");
        assert!(
            found[1].low_ns > 17_000 && found[1].high_ns < 23_000,
            "{found:?}"
        );
    }

    #[test]
    fn one_broad_peak_stays_one() {
        let mut histogram = Histogram::default();
        around(&mut histogram, 5_000, 5_000);
        assert_eq!(modes(&histogram).len(), 1);
        assert!(modes(&Histogram::default()).is_empty());
    }
}
