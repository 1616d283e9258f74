//! Corrected figures in words: how sure they are, and why there are none.

use pagewise_model::fault_paths::{Calibration, Misfit, Source};
use pagewise_model::quantity::percent;
use pagewise_model::units::Nanos;

/// `6.61 µs ± 480 ns`; where nothing may be left after correcting, `≤ 7.09 µs`.
pub(crate) fn interval(value: u64, bounds: Option<(u64, u64)>) -> String {
    match bounds {
        None => Nanos(value).to_string(),
        Some((0, high)) if high > 0 => format!("≤ {}", Nanos(high)),
        Some((low, high)) => {
            let error = value.saturating_sub(low).max(high.saturating_sub(value));
            format!("{} ± {}", Nanos(value), Nanos(error))
        }
    }
}

/// The same of a mean that may be off by as much either way; 0: it is as exact as it stands.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "nanoseconds, not negative"
)]
pub(crate) fn within(ns: f64, error_ns: f64) -> String {
    let bounds =
        (error_ns > 0.0).then(|| ((ns - error_ns).max(0.0) as u64, (ns + error_ns) as u64));
    interval(ns as u64, bounds)
}

/// What tracing costs and how that is known, or why nothing is corrected: a sentence or two.
pub(crate) fn cost_of_tracing(calibration: &Calibration) -> String {
    let cost = nanos(calibration.per_call_ns);
    let error = nanos(calibration.error_ns);
    let origin = match calibration.source {
        Source::RootOnly => "measured against a trace of the root alone",
        Source::OwnTrace => {
            "estimated from those calls of this trace that do least; a second trace of the root \
             alone (--calibrate) measures it"
        }
        Source::Several => {
            return format!(
                "Tracing costs {cost} per call on average, each source's calls at most ± {error} \
                 about a cost of their own, by which they are corrected."
            );
        }
        Source::Nothing => {
            return "Not corrected for the tracer's own cost: too few calls inside faults show it."
                .to_owned();
        }
        Source::Withdrawn => return withdrawn(calibration),
    };
    format!(
        "Tracing costs {cost} ± {error} per call, {origin}. What was corrected for n calls is \
         uncertain by n × {error}."
    )
}

fn withdrawn(calibration: &Calibration) -> String {
    let why = calibration.withdrawn.map_or(String::new(), |withdrawal| {
        let cost = nanos(withdrawal.per_call_ns);
        match withdrawal.misfit {
            Misfit::Clamped(share) => format!(
                "the calls that do least show {cost} per call, but {} of the faults took less than \
                 that for their calls",
                percent(share)
            ),
            Misfit::Unbalanced(ratio) => format!(
                "with {cost} per call taken off, the calls of the faults add up to {ratio:.2} times \
                 the faults"
            ),
            Misfit::Uneven(ratio) => format!(
                "the cost of a call changed during the trace, ×{ratio:.1} from the tenth to the \
                 ninetieth percentile of the calls that do least"
            ),
        }
    });
    format!(
        "CAUTION: all times are as traced, with the tracer's own cost in them, since no one cost \
         fits this trace: {why}. Raw times compare numbers of calls as much as work. Capture again \
         with nothing else on the CPU (under emulation: in virtual time, tests/qemu/guest -i of Pagewise's sources), or \
         pass a trace of the same workload with the root alone to --calibrate."
    )
}

fn nanos(ns: f64) -> Nanos {
    Nanos::from_secs_f64(ns / 1e9)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagewise_model::fault_paths::Withdrawal;

    #[test]
    fn a_figure_that_may_be_nothing_is_an_upper_bound() {
        assert_eq!(interval(6610, Some((6130, 7090))), "6.61 µs ± 480 ns");
        assert_eq!(interval(300, Some((0, 900))), "≤ 900 ns");
        assert_eq!(interval(300, None), "300 ns");
    }

    #[test]
    fn a_withdrawal_says_why_and_what_to_do() {
        let text = cost_of_tracing(&Calibration::withdrawn(Withdrawal {
            misfit: Misfit::Clamped(0.41),
            per_call_ns: 1340.0,
        }));
        for part in ["41 %", "1.34 µs", "--calibrate", "-i"] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}
