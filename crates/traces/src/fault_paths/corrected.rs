//! Latencies as traced and corrected, with the error of the correction.

use super::figures::figures;
use super::tally::Tally;
use pagewise_model::fault_paths::{Bounds, Calibration, Latencies};
use pagewise_model::histogram::Histogram;

/// What remains of a subtracted interrupt, in units of a call's cost: the path of the processor and
/// the kernel to its first traced function, and tracing that from outside. It was 1.3 to 1.7 on
/// 5.10 to 6.12, compared with root-only captures.
const LEFT_BY_INTERRUPT: f64 = 2.0;

/// Durations of one kind.
#[derive(Clone, Copy)]
pub(super) struct Group<'a> {
    pub times: &'a Tally,
    /// Traced calls inside each.
    pub calls: usize,
    /// Interrupts inside each, on average.
    pub interrupts: f64,
    /// The cost of a call.
    pub cost: &'a Calibration,
}

/// The figures of groups of durations.
pub(super) fn latencies<'a>(groups: impl Iterator<Item = Group<'a>>) -> Latencies {
    let groups: Vec<Group<'_>> = groups.collect();
    let mut raw = Histogram::default();
    for group in &groups {
        group.times.add_to(&mut raw);
    }
    let corrected = figures(&less(&groups, |cost| cost.per_call_ns, 0.0));
    let corrects = groups.iter().any(|group| group.cost.corrects());
    Latencies {
        raw: figures(&raw),
        bounds: corrects.then(|| bounds(&groups, corrected.mean_ns)),
        corrected,
    }
}

/// The figures at both ends of the cost's interval: the highest cost per call gives the lowest
/// times.
fn bounds(groups: &[Group<'_>], mean: f64) -> Bounds {
    let most = |cost: &Calibration| cost.per_call_ns + cost.error_ns;
    let least = |cost: &Calibration| (cost.per_call_ns - cost.error_ns).max(0.0);
    let low = less(groups, most, LEFT_BY_INTERRUPT);
    let high = less(groups, least, 0.0);
    let quantiles = |q: f64| (low.quantile(q), high.quantile(q));
    Bounds {
        mean_ns: (low.mean().min(mean), high.mean().max(mean)),
        p50_ns: quantiles(0.50),
        p90_ns: quantiles(0.90),
        p99_ns: quantiles(0.99),
    }
}

/// All durations together, minus this cost for every call inside, and for the calls equivalent to
/// each interrupt.
fn less(
    groups: &[Group<'_>],
    per_call: impl Fn(&Calibration) -> f64,
    by_interrupt: f64,
) -> Histogram {
    let mut all = Histogram::default();
    for group in groups {
        let calls = group.calls as f64 + by_interrupt * group.interrupts;
        all.merge(&group.times.shifted(per_call(group.cost) * calls));
    }
    all
}
