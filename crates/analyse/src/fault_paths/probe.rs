//! What the tracer itself costs, and latencies without it.
//!
//! function_graph makes every traced call slower by a constant: half of it lands inside the call,
//! half in its caller. A fault with 46 calls inside takes ten times its real time, and since
//! paths differ in their number of calls, comparisons of raw latencies can turn around. The cost
//! of the root's own tracing stays in, as in a trace of the root alone:
//!
//! ```text
//! corrected = raw − cost × calls inside
//! ```

use super::collector::Collector;
use super::layer::Layer;
use super::tally::Tally;
pub use pagewise_model::fault_paths::{Calibration, Source};
use pagewise_model::histogram::Histogram;

/// Leaves and callers needed before their least values mean anything.
const ENOUGH: u64 = 100;

/// The cost as the trace itself shows it.
///
/// The shortest leaves do nothing but be traced: their duration is what lands inside a call. What
/// lands in its caller is at most the least own time that callers spend on a call, and was found
/// equal to the part inside where it could be measured (6.1: 0.669 µs inside, 1.338 µs in all,
/// against 1.337 to 1.344 by comparison with the root alone). The smaller of the two counts; how
/// far they are apart is the error.
#[must_use]
#[allow(clippy::cast_precision_loss, reason = "nanoseconds of short calls")]
pub fn estimate(full: &Collector) -> Calibration {
    let leaf = full.probe.leaf.histogram();
    let caller = full.probe.own_per_child.histogram();
    if leaf.count() < ENOUGH || caller.count() < ENOUGH {
        return Calibration::nothing();
    }
    let inside = leaf.quantile(0.01) as f64;
    let outside = caller.quantile(0.01) as f64;
    Calibration {
        per_call_ns: inside + outside.min(inside),
        inside_ns: inside,
        error_ns: (outside - inside).abs(),
        source: Source::OwnTrace,
    }
}

/// The cost by comparing with a trace of the same workload in which only the root was traced.
///
/// Faults of both are ranked by latency (the traced ones by what would remain after a first
/// correction) and compared in groups of equal rank; the slope of what tracing added over the
/// number of calls, through zero, is the cost. `None` when one of them has no faults or the first
/// has no calls inside, and when the slope is no larger than its error: then the faults of the two
/// were of other kinds, and their difference is not what tracing added.
#[must_use]
pub fn calibrate(full: &Collector, root_only: &Collector) -> Option<Calibration> {
    against(full, traced_faults(root_only))
}

/// The same by what the capture noted of its own stretches with the root alone
/// ([`Collector::root_only`]). `None` also when there are too few faults in them to compare.
#[must_use]
pub fn calibrate_by_notes(full: &Collector) -> Option<Calibration> {
    calibrate_by_histogram(full, full.root_only())
}

/// The same by latencies of faults with the root alone, in nanoseconds.
#[must_use]
pub fn calibrate_by_histogram(full: &Collector, root_only: &Histogram) -> Option<Calibration> {
    let enough = root_only.count() >= ENOUGH;
    enough.then(|| against(full, faults_of(root_only, 0.0)))?
}

fn against(full: &Collector, mut plain: Vec<Fault>) -> Option<Calibration> {
    let mut traced = traced_faults(full);
    let whole = (0.0, 1.0);
    let (a, b) = (mean(&traced, whole)?, mean(&plain, whole)?);
    if a.calls <= 0.0 {
        return None;
    }
    plain.sort_by(|x, y| x.ns.total_cmp(&y.ns));
    let mut cost = (a.ns - b.ns) / a.calls;
    let mut error = 0.0;
    for _ in 0..4 {
        traced.sort_by(|x, y| (x.ns - cost * x.calls).total_cmp(&(y.ns - cost * y.calls)));
        (cost, error) = slope(&traced, &plain)?;
    }
    let inside = estimate(full).inside_ns;
    (cost > error).then(|| Calibration {
        per_call_ns: cost,
        inside_ns: inside.min(cost),
        error_ns: error,
        source: Source::RootOnly,
    })
}

/// Groups of equal rank. The first and last twentieth are left out: the fastest and the slowest
/// faults of two runs are not the same faults.
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
    let xx: f64 = points.iter().map(|(x, _)| x * x).sum();
    let xy: f64 = points.iter().map(|(x, y)| x * y).sum();
    let cost = xy / xx;
    let residual: f64 = points.iter().map(|(x, y)| (y - cost * x).powi(2)).sum();
    let freedom = f64::from(u32::try_from(points.len()).ok()?) - 1.0;
    Some((cost, 2.0 * (residual / freedom / xx).sqrt()))
}

#[derive(Clone, Copy, Debug)]
struct Fault {
    ns: f64,
    calls: f64,
    weight: f64,
}

#[allow(clippy::cast_precision_loss, reason = "latencies and counts")]
fn traced_faults(collector: &Collector) -> Vec<Fault> {
    let mut faults = Vec::new();
    for shape in &collector.shapes.all {
        let tally: &Tally = &shape.latency[Layer::Fault as usize];
        faults.extend(faults_of(&tally.histogram(), shape.calls_inside() as f64));
    }
    faults
}

#[allow(clippy::cast_precision_loss, reason = "latencies and counts")]
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
    use super::*;
    use pagewise_model::formats::function_graph::read_bytes;
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

    fn of(latencies: impl IntoIterator<Item = u64>) -> Histogram {
        let mut histogram = Histogram::default();
        for latency in latencies {
            histogram.record(latency);
        }
        histogram
    }

    #[test]
    fn the_same_faults_with_the_root_alone_tell_the_cost() {
        let plain = of((0..200).map(|_| 5_000));
        let found = calibrate_by_histogram(&traced(), &plain).expect("comparable");
        assert_eq!(found.source, Source::RootOnly);
        assert!((found.per_call_ns - 1000.0).abs() < 50.0, "{found:?}");
        assert!(found.error_ns < 100.0, "{found:?}");
    }

    /// As when a program faults on memory first, and reads files while only the root is traced.
    #[test]
    fn slower_faults_of_another_kind_tell_nothing() {
        let plain = of((0..200).map(|at| 100_000 + at * 1000));
        assert_eq!(calibrate_by_histogram(&traced(), &plain), None);
        let estimated = estimate(&traced());
        assert!(estimated.per_call_ns > 0.0, "{estimated:?}");
    }
}
