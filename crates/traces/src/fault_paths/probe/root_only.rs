//! The tracer's cost by comparison with faults of which only the root was traced.

use super::super::collector::Collector;
use super::super::layer::Layer;
use super::super::tally::Tally;
use super::fit::fitting;
use super::floor::floors;
use pagewise_model::fault_paths::{Calibration, Misfit, Source};
use pagewise_model::histogram::Histogram;

/// Root-only faults needed for a meaningful comparison.
const ENOUGH: u64 = 100;
/// Share of faults in a root-only trace that may have calls inside: those of an interrupt.
const MOST_WITH_CALLS: f64 = 0.05;

/// The error that remains however well groups agree: two runs are never identical.
const LEAST_ERROR: f64 = 0.005;

/// Why a trace can't be used to calibrate another.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum Refusal {
    /// The trace to correct contains nothing to correct.
    #[error("the trace to correct has no complete faults with calls inside them")]
    NothingToCorrect,
    /// The other trace has no complete faults.
    #[error("it has no complete faults")]
    NoFaults,
    /// The other is not a root-only trace.
    #[error(
        "{0:.0} % of its faults have calls inside: capture it with the fault's root alone in \
         set_ftrace_filter"
    )]
    CallsInside(f64),
    /// The time added by tracing does not grow with the number of calls.
    #[error(
        "its faults are of other kinds: by the number of calls inside, they differ by {cost:.0} ± \
         {error:.0} ns per call. Capture the same workload"
    )]
    OtherKinds {
        /// The slope, ns per call.
        cost: f64,
        /// Its error.
        error: f64,
    },
    /// The calls of the trace to correct show a different cost.
    #[error(
        "by comparison with it a call costs {measured:.0} ns, but the calls of the trace to \
         correct show {own:.0} ± {error:.0} ns: it is of another workload or kernel, or was not \
         captured with the root alone in set_ftrace_filter (max_graph_depth = 1 still costs time \
         in every call)"
    )]
    Disagrees {
        /// From the comparison, ns.
        measured: f64,
        /// From the trace's own calls, ns.
        own: f64,
        /// Largest expected difference between the two, ns.
        error: f64,
    },
    /// The correction does not fit the trace.
    #[error(
        "the {cost:.0} ns per call that it shows do not fit the trace to correct ({what}): one of \
         them is of another workload, or the cost was not the same throughout"
    )]
    DoesNotFit {
        /// The cost, ns per call.
        cost: f64,
        /// What does not fit.
        what: &'static str,
    },
}

/// The cost by comparison with a trace of the same workload in which only the root was traced.
///
/// Faults of both are ranked by latency (the traced ones by what would remain after a first
/// correction) and compared in groups of equal rank; the cost is the median slope of the time added
/// by tracing over the number of calls. Nothing in the two traces shows that the workload and the
/// kernel were the same, so the calls of the first trace must show the same cost
/// ([`super::estimate()`]), and its error covers the difference between the two.
///
/// # Errors
/// When the traces can't be compared, or contradict each other.
pub fn calibrate(full: &Collector, root_only: &Collector) -> Result<Calibration, Refusal> {
    let plain = traced_faults(root_only);
    let all: f64 = plain.iter().map(|fault| fault.weight).sum();
    let with_calls = plain.iter().filter(|fault| fault.calls > 0.0);
    let share = with_calls.map(|fault| fault.weight).sum::<f64>() / all.max(1.0);
    if share > MOST_WITH_CALLS {
        return Err(Refusal::CallsInside(100.0 * share));
    }
    against(full, plain, Origin::Other)
}

/// The same, using what the capture recorded about its own root-only stretches
/// ([`Collector::root_only`]). `None` also if these contain too few faults to compare.
#[must_use]
pub fn calibrate_by_notes(full: &Collector) -> Option<Calibration> {
    calibrate_by_histogram(full, full.root_only())
}

/// The same, from a histogram of root-only latencies in nanoseconds.
#[must_use]
pub fn calibrate_by_histogram(full: &Collector, root_only: &Histogram) -> Option<Calibration> {
    let enough = root_only.count() >= ENOUGH;
    enough.then(|| against(full, faults_of(root_only, 0.0), Origin::SameRun).ok())?
}

/// The source of root-only faults.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Origin {
    /// The same run, in alternation: the same workload and kernel, and certainly root-only. In it,
    /// the calls that do least may have been left out of the trace.
    SameRun,
    /// A file that the user claims to be of the same workload and kernel.
    Other,
}

fn against(
    full: &Collector,
    mut plain: Vec<Fault>,
    origin: Origin,
) -> Result<Calibration, Refusal> {
    let mut traced = traced_faults(full);
    let whole = (0.0, 1.0);
    let a = mean(&traced, whole).filter(|traced| traced.calls > 0.0);
    let a = a.ok_or(Refusal::NothingToCorrect)?;
    let b = mean(&plain, whole).ok_or(Refusal::NoFaults)?;
    plain.sort_by(|x, y| x.ns.total_cmp(&y.ns));
    let own = floors(full).map(|floors| floors.calibration().per_call_ns);
    let mut cost = own.unwrap_or((a.ns - b.ns) / a.calls);
    let mut error = 0.0;
    for _ in 0..4 {
        traced.sort_by(|x, y| (x.ns - cost * x.calls).total_cmp(&(y.ns - cost * y.calls)));
        (cost, error) = slope(&traced, &plain).ok_or(Refusal::NoFaults)?;
    }
    if cost <= error {
        return Err(Refusal::OtherKinds { cost, error });
    }
    let measured = Calibration {
        per_call_ns: cost,
        inside_ns: cost / 2.0,
        error_ns: error.max(LEAST_ERROR * cost),
        source: Source::RootOnly,
        withdrawn: None,
    };
    fits(full, agreed(full, measured, origin)?)
}

/// The measured cost, if the calls of the trace itself show the same.
fn agreed(full: &Collector, measured: Calibration, origin: Origin) -> Result<Calibration, Refusal> {
    let Some(floors) = floors(full) else {
        return Ok(measured);
    };
    let own = floors.calibration();
    // The cost that a trace's calls show is an upper limit: it may include real work.
    let below = own.per_call_ns - measured.per_call_ns;
    let apart = match origin {
        Origin::SameRun => -below.min(0.0),
        Origin::Other => below.abs(),
    };
    let error = measured.error_ns + own.error_ns;
    if apart > error {
        return Err(Refusal::Disagrees {
            measured: measured.per_call_ns,
            own: own.per_call_ns,
            error,
        });
    }
    Ok(Calibration {
        inside_ns: own.inside_ns.min(measured.per_call_ns),
        error_ns: measured.error_ns.max(apart),
        ..measured
    })
}

fn fits(full: &Collector, measured: Calibration) -> Result<Calibration, Refusal> {
    let fitted = fitting(full, measured, None);
    let what = match fitted.withdrawn.map(|withdrawal| withdrawal.misfit) {
        None => return Ok(fitted),
        Some(Misfit::Clamped(_)) => "faults would take no time",
        Some(Misfit::Unbalanced(_)) => "the calls of a fault would not add up to it",
        Some(Misfit::Uneven(_)) => "its cost changes",
    };
    Err(Refusal::DoesNotFit {
        cost: measured.per_call_ns,
        what,
    })
}

/// Groups of equal rank. The first and last twentieth are left out: the fastest and the slowest
/// faults of two runs do not correspond.
const GROUPS: u32 = 40;

fn slope(traced: &[Fault], plain: &[Fault]) -> Option<(f64, f64)> {
    let mut points = Vec::new();
    for group in GROUPS / 20..GROUPS - GROUPS / 20 {
        let range = (
            f64::from(group) / f64::from(GROUPS),
            f64::from(group + 1) / f64::from(GROUPS),
        );
        let (full, root) = (mean(traced, range)?, mean(plain, range)?);
        points.push((full.calls, full.ns - root.ns));
    }
    // Individual slow faults differ between two runs: use the median of the groups' slopes.
    let slopes = points.iter().filter(|(calls, _)| *calls > 0.0);
    let slopes: Vec<(f64, f64)> = slopes.map(|(calls, ns)| (ns / calls, *calls)).collect();
    let cost = weighted_median(slopes.clone())?;
    let apart = slopes
        .iter()
        .map(|(slope, calls)| ((slope - cost).abs(), *calls));
    let deviation = 1.4826 * weighted_median(apart.collect())?;
    let groups = f64::from(u32::try_from(slopes.len()).ok()?);
    Some((cost, 2.0 * deviation / groups.sqrt()))
}

/// The weighted median: half of the weights are at lower values.
fn weighted_median(mut values: Vec<(f64, f64)>) -> Option<f64> {
    values.sort_by(|a, b| a.0.total_cmp(&b.0));
    let half = values.iter().map(|(_, weight)| weight).sum::<f64>() / 2.0;
    let mut below = 0.0;
    let middle = values.iter().find(|(_, weight)| {
        below += weight;
        below >= half
    });
    middle.map(|(value, _)| *value)
}

#[derive(Clone, Copy, Debug)]
struct Fault {
    ns: f64,
    calls: f64,
    weight: f64,
}

fn traced_faults(collector: &Collector) -> Vec<Fault> {
    let mut faults = Vec::new();
    for shape in &collector.shapes.all {
        let tally: &Tally = &shape.latency[Layer::Fault as usize];
        faults.extend(faults_of(&tally.histogram(), shape.calls_inside() as f64));
    }
    faults
}

fn faults_of(latencies: &Histogram, calls: f64) -> Vec<Fault> {
    let buckets = latencies.buckets();
    let faults = buckets.map(|(low, high, count)| Fault {
        ns: (low + (high - low) / 2) as f64,
        calls,
        weight: count as f64,
    });
    faults.collect()
}

/// Means over the faults with ranks in a range of shares.
fn mean(faults: &[Fault], (from, to): (f64, f64)) -> Option<Fault> {
    let all: f64 = faults.iter().map(|fault| fault.weight).sum();
    let (from, to) = (from * all, to * all);
    let mut sum = Fault {
        ns: 0.0,
        calls: 0.0,
        weight: 0.0,
    };
    let mut rank = 0.0;
    for fault in faults {
        let part = (rank + fault.weight).min(to) - rank.max(from);
        rank += fault.weight;
        if part > 0.0 {
            sum.ns += fault.ns * part;
            sum.calls += fault.calls * part;
            sum.weight += part;
        }
    }
    (sum.weight > 0.0).then(|| Fault {
        ns: sum.ns / sum.weight,
        calls: sum.calls / sum.weight,
        weight: sum.weight,
    })
}

#[cfg(test)]
mod tests {
    use super::super::estimate;
    use super::*;
    use pagewise_formats::function_graph::read_bytes;
    use std::fmt::Write;

    /// Faults with one to ten calls inside; each takes 5 µs, and 1 µs more for every call.
    fn traced() -> Collector {
        let mut text = String::new();
        for fault in 0..1000 {
            let calls = fault % 10 + 1;
            text += " 0)  a-1   |               |  handle_mm_fault() {\n";
            for _ in 0..calls {
                text += " 0)  a-1   |   0.500 us    |    _raw_spin_lock();\n";
            }
            writeln!(text, " 0)  a-1   | {:3}.000 us    |  }}", 5 + calls).expect("a string");
        }
        let mut collector = Collector::default();
        read_bytes(text.as_bytes(), &mut collector);
        collector
    }

    fn histogram(latencies: impl IntoIterator<Item = u64>) -> Histogram {
        let mut histogram = Histogram::default();
        for latency in latencies {
            histogram.record(latency);
        }
        histogram
    }

    #[test]
    fn the_same_faults_with_the_root_alone_tell_the_cost() {
        let plain = histogram((0..200).map(|_| 5_000));
        let found = calibrate_by_histogram(&traced(), &plain).expect("comparable");
        assert_eq!(found.source, Source::RootOnly);
        assert!((found.per_call_ns - 1000.0).abs() < 50.0, "{found:?}");
        assert!(found.error_ns < 100.0, "{found:?}");
        // The root-only times do not show how much of it is inside a call: about half is assumed.
        let inside = found.inside_ns / found.per_call_ns;
        assert!((0.49..0.51).contains(&inside), "{found:?}");
    }

    /// For example, a program that first faults on memory, and reads files while only the root is
    /// traced.
    #[test]
    fn slower_faults_of_another_kind_tell_nothing() {
        let plain = histogram((0..200).map(|at| 100_000 + at * 1000));
        assert_eq!(calibrate_by_histogram(&traced(), &plain), None);
        let estimated = estimate(&traced());
        assert!(estimated.per_call_ns > 0.0, "{estimated:?}");
    }
}
