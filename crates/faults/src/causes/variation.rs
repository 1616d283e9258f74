//! How far sums over sampled faults may be off by chance: because of which faults were sampled, and
//! because of the rests between windows, when none were.

use super::window_weights::WindowWeights;
use std::collections::BTreeMap;

/// How unevenly one kind's share of the samples is distributed over the recording.
///
/// Samples are taken at even distances in a stream of faults that stays similar for long stretches,
/// so the sum of a kind is far more certain than independent samples would make it. Its variance is
/// estimated from successive differences, half the sum of (yᵢ − yᵢ₋₁)², where yᵢ is the sample's
/// weight if it is of the kind and otherwise 0 (Wolter, Introduction to Variance Estimation,
/// chapter 8): kinds that alternate vary as much as if drawn at random, a kind that comes in one
/// stretch varies only at its two ends. Windows with rests between them are clusters, to which the
/// same applies: how much a rest hides is estimated from the difference between the windows on its
/// two sides. The larger of both variances counts.
#[derive(Clone, Debug)]
pub struct Variation<K> {
    by_kind: BTreeMap<K, f64>,
    last: Option<(K, f64)>,
    rests: Rests<K>,
}

impl<K> Default for Variation<K> {
    fn default() -> Self {
        Self {
            by_kind: BTreeMap::new(),
            last: None,
            rests: Rests::default(),
        }
    }
}

impl<K: Copy + Ord> Variation<K> {
    /// Records the next sample.
    pub(super) fn next(&mut self, kind: K, weight: f64, windows: &WindowWeights) {
        self.rests.next(kind, weight, windows);
        let previous = match self.last.replace((kind, weight)) {
            Some((same, previous)) if same == kind => previous,
            Some((other, previous)) => {
                *self.by_kind.entry(other).or_default() += previous * previous / 2.0;
                0.0
            }
            None => 0.0,
        };
        let step = weight - previous;
        if step != 0.0 {
            *self.by_kind.entry(kind).or_default() += step * step / 2.0;
        }
    }

    /// No more samples follow.
    pub(super) fn finish(&mut self, windows: &WindowWeights) {
        self.rests.finish(windows);
    }

    /// Variance of the sum of some kinds; `None` if no sample was of any of them. If sums are
    /// scaled to a known total, `part` is the share of these kinds in it: variation of the other
    /// kinds moves them as well (delta method for a ratio).
    #[must_use]
    pub fn variance(&self, kinds: &[K], part: Option<f64>) -> Option<f64> {
        let known: Vec<f64> = kinds
            .iter()
            .filter_map(|kind| self.by_kind.get(kind).copied())
            .collect();
        if known.is_empty() {
            return None;
        }
        let known: f64 = known.iter().sum();
        let drawn = match part {
            Some(part) => {
                let others = (self.by_kind.values().sum::<f64>() - known).max(0.0);
                (1.0 - part).powi(2) * known + part * part * others
            }
            None => known,
        };
        Some(drawn.max(self.rests.variance(kinds, part)))
    }
}

/// The uncertainty from the rests between windows.
#[derive(Clone, Debug)]
struct Rests<K> {
    /// The window of the current samples.
    window: usize,
    /// Faults per nanosecond in it, by kind.
    rates: BTreeMap<K, f64>,
    /// The same in the previous window.
    before: BTreeMap<K, f64>,
    /// By kind: sums over the rests of the squared step, and of the product of the step and that of
    /// all kinds.
    steps: BTreeMap<K, (f64, f64)>,
    /// Sum of the squared steps of all kinds together.
    all: f64,
}

impl<K> Default for Rests<K> {
    fn default() -> Self {
        Self {
            window: 0,
            rates: BTreeMap::new(),
            before: BTreeMap::new(),
            steps: BTreeMap::new(),
            all: 0.0,
        }
    }
}

impl<K: Copy + Ord> Rests<K> {
    fn next(&mut self, kind: K, weight: f64, windows: &WindowWeights) {
        self.advance(windows.at(), windows);
        if let Some(stands_for) = windows.stretch(self.window) {
            *self.rates.entry(kind).or_default() += weight / stands_for;
        }
    }

    /// Closes all windows before `to`.
    fn advance(&mut self, to: usize, windows: &WindowWeights) {
        while self.window < to {
            if let Some(before) = self.window.checked_sub(1) {
                self.step(windows.rest_behind(before));
            }
            self.before = std::mem::take(&mut self.rates);
            self.window += 1;
        }
    }

    /// Nothing is known after the last window, so its faults may have ended with it.
    fn finish(&mut self, windows: &WindowWeights) {
        let count = windows.count();
        self.advance(count, windows);
        if let Some(last) = count.checked_sub(1) {
            self.step(windows.rest_behind(last));
        }
    }

    /// A rest of `rest` nanoseconds between the previous window and this one.
    fn step(&mut self, rest: f64) {
        let all = (self.rates.values().sum::<f64>() - self.before.values().sum::<f64>()) * rest;
        self.all += all * all;
        let gone = self
            .before
            .keys()
            .filter(|kind| !self.rates.contains_key(kind));
        for &kind in self.rates.keys().chain(gone) {
            let rate = |rates: &BTreeMap<K, f64>| rates.get(&kind).copied().unwrap_or(0.0);
            let step = (rate(&self.rates) - rate(&self.before)) * rest;
            let (squares, products) = self.steps.entry(kind).or_default();
            *squares += step * step;
            *products += step * all;
        }
    }

    /// The steps of several kinds are assumed to have the same sign.
    fn variance(&self, kinds: &[K], part: Option<f64>) -> f64 {
        let steps = || kinds.iter().filter_map(|kind| self.steps.get(kind));
        let squares = steps()
            .map(|(squares, _)| squares.sqrt())
            .sum::<f64>()
            .powi(2);
        let products: f64 = steps().map(|(_, products)| products).sum();
        let part = part.unwrap_or(0.0);
        (squares - 2.0 * part * products + part * part * self.all).max(0.0) / 2.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagewise_model::units::Nanos;

    #[test]
    fn a_kind_in_one_stretch_varies_only_at_its_ends() {
        let none = WindowWeights::default();
        let (mut stretch, mut mixed) = (Variation::default(), Variation::default());
        for i in 0..100 {
            stretch.next(i >= 50, 10.0, &none);
            mixed.next(i % 2 == 0, 10.0, &none);
        }
        assert_eq!(stretch.variance(&[true], None), Some(50.0));
        // The variance of 50 independent samples of weight 10, within two of them.
        assert!((mixed.variance(&[true], None).unwrap() - 5000.0).abs() < 100.1);
    }

    /// Ten windows of 10 ns with rests of 90 ns between them, with `faults` of two kinds in each.
    fn windowed(faults: impl Fn(usize) -> [usize; 2]) -> Variation<bool> {
        let begins = (0..10).map(|at| Nanos(at * 100));
        let windows: Vec<_> = begins.map(|at| (at, at + Nanos(10))).collect();
        let mut weights = WindowWeights::new(&windows);
        let mut variation = Variation::default();
        for (at, &(begin, _)) in windows.iter().enumerate() {
            for (kind, count) in [false, true].into_iter().zip(faults(at)) {
                for _ in 0..count {
                    let stands_for = u32::try_from(weights.stands_for(1_000, begin)).unwrap();
                    variation.next(kind, f64::from(stands_for) / 1_000.0, &weights);
                }
            }
        }
        variation.finish(&weights);
        variation
    }

    #[test]
    fn where_windows_differ_the_rests_may_hide_as_much() {
        // In one rest between windows of 20 faults and of none, there may be up to 180 more.
        let changes = windowed(|at| [20, if at < 5 { 20 } else { 0 }]);
        let deviation = changes.variance(&[true], None).unwrap().sqrt();
        assert!(deviation > 180.0 / 2.0_f64.sqrt() - 1.0, "{deviation}");
        let steady = changes.rests.variance(&[false], None);
        assert!(steady < 1.0, "{steady}");
    }

    #[test]
    fn kinds_that_vary_together_keep_their_parts_of_a_total() {
        let bursts = windowed(|at| if at % 2 == 0 { [30, 10] } else { [0, 0] });
        let alone = bursts.rests.variance(&[true], None).sqrt();
        let of_total = bursts.rests.variance(&[true], Some(0.25)).sqrt();
        assert!(alone > 150.0, "{alone}");
        assert!(of_total < 0.01 * alone, "{of_total}");
    }

    #[test]
    fn a_program_without_rests_varies_by_its_samples_alone() {
        let none = WindowWeights::default();
        let mut variation = Variation::default();
        variation.next(true, 10.0, &none);
        variation.next(false, 10.0, &none);
        variation.finish(&none);
        assert_eq!(variation.variance(&[true], None), Some(100.0));
        assert_eq!(variation.variance(&[false, true], None), Some(150.0));
    }
}
