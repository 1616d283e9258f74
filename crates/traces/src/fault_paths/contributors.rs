//! Which functions the time and its variance come from.
//!
//! A fault's latency is the sum of the self times of all its calls, so its variance is the sum of
//! their covariances with it: Var(T) = Σ Cov(own_f, T). Shares by covariance add up to one; shares
//! by each function's own variance do not.

use super::contexts::Context;
use super::probe::{Calibration, Costs};
use pagewise_formats::function_graph::{NameId, Names};
use pagewise_model::fault_paths::Contributor;
use rustc_hash::FxHashMap;

#[derive(Default)]
struct Sums {
    calls: u64,
    own: f64,
    corrected: f64,
    by_fault: f64,
    error: f64,
}

/// The contributors to `faults` faults with the given call paths, the largest first by corrected
/// time.
pub(super) fn contributors<'a>(
    contexts: impl Iterator<Item = (u32, &'a Context)>,
    faults: u64,
    costs: Costs<'_>,
    names: &Names,
) -> Vec<Contributor> {
    let mut by_name: FxHashMap<u32, Sums> = FxHashMap::default();
    for (index, context) in contexts {
        let sums = by_name.entry(context.name).or_default();
        sums.calls += context.calls;
        sums.own += context.own as f64;
        let cost = costs.calibration(context.source);
        sums.corrected += corrected(index, context, *cost);
        sums.error += cost.own_error(inner(index, context), context.direct_calls as f64);
        sums.by_fault += context.own_by_fault as f64;
    }
    let all = Totals::new(&by_name, faults);
    let mut found: Vec<Contributor> = by_name
        .iter()
        .map(|(&name, sums)| all.contributor(names.text(NameId(name)), sums))
        .collect();
    found.sort_by(|a, b| {
        let by_time = b.corrected_self_ns.cmp(&a.corrected_self_ns);
        by_time.then_with(|| a.function.cmp(&b.function))
    });
    found
}

/// A path's self time minus the tracer's cost: inside each call (except the root's) and around each
/// call made.
pub(super) fn corrected(index: u32, context: &Context, calibration: Calibration) -> f64 {
    let outside = calibration.per_call_ns - calibration.inside_ns;
    let inner = inner(index, context);
    let cost = inner * calibration.inside_ns + context.direct_calls as f64 * outside;
    (context.own as f64 - cost).max(0.0)
}

/// Calls whose own tracing cost is subtracted: all but the outermost, as in a root-only trace.
pub(super) fn inner(index: u32, context: &Context) -> f64 {
    match context.parent == index {
        true => 0.0,
        false => context.calls as f64,
    }
}

struct Totals {
    faults: f64,
    own: f64,
    corrected: f64,
    variance: f64,
}

impl Totals {
    fn new(by_name: &FxHashMap<u32, Sums>, faults: u64) -> Self {
        let faults = faults.max(1) as f64;
        let own: f64 = by_name.values().map(|sums| sums.own).sum();
        let squares: f64 = by_name.values().map(|sums| sums.by_fault).sum();
        Self {
            faults,
            own,
            corrected: by_name.values().map(|sums| sums.corrected).sum(),
            variance: squares / faults - (own / faults).powi(2),
        }
    }

    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "sums of durations, not negative"
    )]
    fn contributor(&self, function: &str, sums: &Sums) -> Contributor {
        let covariance =
            sums.by_fault / self.faults - sums.own / self.faults * (self.own / self.faults);
        Contributor {
            function: function.to_owned(),
            calls: sums.calls,
            self_ns: sums.own as u64,
            corrected_self_ns: sums.corrected as u64,
            error_ns: sums.error.ceil() as u64,
            time_share: ratio(sums.own, self.own),
            corrected_time_share: ratio(sums.corrected, self.corrected),
            variance_share: ratio(covariance, self.variance),
        }
    }
}

fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}
