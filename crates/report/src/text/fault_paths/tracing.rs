//! Corrected figures in words: their error, or why there are none.

use pagewise_model::fault_paths::{Calibration, Misfit, Source};
use pagewise_model::quantity::{duration, duration_interval, duration_within, percent};
use pagewise_model::units::Estimate;

/// A corrected time with its bounds: `6.61 µs [6.13, 7.09]`, or `at most 7.09 µs`.
pub fn corrected(value: u64, bounds: Option<(u64, u64)>) -> String {
    duration_within(value, bounds.unwrap_or((value, value)))
}

/// The same for a mean with a symmetric error.
pub fn within(value: f64, error_ns: f64) -> String {
    duration_interval(&Estimate {
        value,
        low: (value - error_ns).max(0.0),
        high: value + error_ns,
    })
}

/// The cost of tracing and its source, or why nothing is corrected: a sentence or two.
pub fn cost_of_tracing(calibration: &Calibration) -> String {
    let error = duration(calibration.error_ns);
    let origin = match calibration.source {
        Source::RootOnly => "measured against a trace of the root alone",
        Source::OwnTrace => {
            "estimated from those calls of this trace that do least; a second trace of the root \
             alone (--calibrate) measures it"
        }
        Source::Several => {
            return format!(
                "Tracing costs {} per call on average; each source's calls are corrected by their own cost, known to ± {error} or better.",
                duration(calibration.per_call_ns)
            );
        }
        Source::Nothing => {
            return "Not corrected for the tracer's own cost: too few calls inside faults to estimate it."
                .to_owned();
        }
        Source::Withdrawn => return withdrawn(calibration),
    };
    format!(
        "Tracing costs {} per call, {origin}. What was corrected for n calls is uncertain by n × \
         {error}.",
        within(calibration.per_call_ns, calibration.error_ns)
    )
}

fn withdrawn(calibration: &Calibration) -> String {
    let why = calibration.withdrawn.map_or(String::new(), |withdrawal| {
        let cost = duration(withdrawal.per_call_ns);
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
        "CAUTION: all times are as traced, with the tracer's own cost in them, since no single cost \
         fits this trace: {why}. Raw times compare numbers of calls as much as work. Capture again \
         with nothing else on the CPU (under emulation: in virtual time, tests/qemu/guest -i of Pagewise's sources), or \
         pass a trace of the same workload with the root alone to --calibrate."
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagewise_model::fault_paths::Withdrawal;

    #[test]
    fn a_figure_that_may_be_nothing_is_an_upper_bound() {
        assert_eq!(corrected(6610, Some((6130, 7090))), "6.61 µs [6.13, 7.09]");
        assert_eq!(corrected(300, Some((0, 900))), "at most 900 ns");
        assert_eq!(corrected(300, None), "300 ns");
        assert_eq!(within(300.0, 0.0), "300 ns");
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
