//! Whether a single cost per call fits a trace.

use super::super::collector::Collector;
use super::super::contributors::corrected;
use super::super::layer::Layer;
use super::floor::{Floors, floors};
use pagewise_model::fault_paths::{Calibration, Misfit, Withdrawal};

/// Share of faults whose corrected time may be zero: a few odd ones are no reason to withdraw the
/// correction.
const MOST_CLAMPED: f64 = 0.03;
/// Ratio of the corrected self times of all calls to the corrected time of the faults. They are
/// equal except for times clamped at zero: 0.98 to 1.01 on traces that a constant fits.
const BALANCED: std::ops::RangeInclusive<f64> = 0.95..=1.05;
/// Clamped time, relative to the traced time, from which it matters: if faults consist mostly of
/// the tracer's time, little remains, and a few odd calls are a large part of the rest.
const LEAST_CUT: f64 = 0.03;
/// Ratio of the ninetieth to the tenth percentile of a call's cost.
const MOST_UNEVEN: f64 = 2.0;

/// The cost estimated from the trace itself; none if the trace has too few calls, and withdrawn if
/// it does not fit the trace's faults.
#[must_use]
pub fn estimate(full: &Collector) -> Calibration {
    match floors(full) {
        Some(floors) => fitting(full, floors.calibration(), Some(&floors)),
        None => Calibration::nothing(),
    }
}

/// The calibration, or its withdrawal if it does not fit.
pub(super) fn fitting(
    full: &Collector,
    calibration: Calibration,
    floors: Option<&Floors>,
) -> Calibration {
    let misfit = clamped(full, &calibration)
        .or_else(|| floors.and_then(uneven))
        .or_else(|| unbalanced(full, &calibration));
    match misfit {
        Some(misfit) => Calibration::withdrawn(Withdrawal {
            misfit,
            per_call_ns: calibration.per_call_ns,
        }),
        None => calibration,
    }
}

/// Faults with calls inside that take no longer than the least cost of tracing these.
fn clamped(full: &Collector, calibration: &Calibration) -> Option<Misfit> {
    let (mut all, mut none_left) = (0, 0);
    for shape in &full.shapes.all {
        let calls = shape.calls_inside();
        let latency = &shape.latency[Layer::Fault as usize];
        if calls > 0 {
            all += latency.count;
            none_left += latency.count_below(calibration.cost(calls));
        }
    }
    let share = none_left as f64 / all.max(1) as f64;
    (share > MOST_CLAMPED).then_some(Misfit::Clamped(share))
}

fn uneven(floors: &Floors) -> Option<Misfit> {
    let low = floors.inside.p10 + floors.outside.p10;
    let high = floors.inside.p90 + floors.outside.p90;
    let ratio = high / low;
    (low > 0.0 && ratio > MOST_UNEVEN).then_some(Misfit::Uneven(ratio))
}

fn unbalanced(full: &Collector, calibration: &Calibration) -> Option<Misfit> {
    let contexts = (0..).zip(&full.contexts.all);
    let own: f64 = contexts
        .map(|(index, context)| corrected(index, context, *calibration))
        .sum();
    let of_shape = |shape: &super::super::shapes::Shape| {
        let latency = &shape.latency[Layer::Fault as usize];
        let cost = calibration.cost(shape.calls_inside()) * latency.count as f64;
        (latency.sum as f64 - cost).max(0.0)
    };
    let whole: f64 = full.shapes.all.iter().map(of_shape).sum();
    let shapes = full.shapes.all.iter();
    let raw = shapes.map(|shape| shape.latency[Layer::Fault as usize].sum);
    let raw = raw.sum::<u128>() as f64;
    let ratio = own / whole;
    let matters = whole > 0.0 && (own - whole).abs() > LEAST_CUT * raw;
    (matters && !BALANCED.contains(&ratio)).then_some(Misfit::Unbalanced(ratio))
}
