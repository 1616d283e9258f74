//! The last messages of `trace`: what was captured, what it cost, what is missing.

use pagewise_model::capture_summary::{CallCost, CaptureSummary, TracingCost};
use pagewise_model::run::{Ending, signal_name};
use pagewise_model::units::Nanos;

/// The messages, one per line.
#[must_use]
pub fn lines(found: &CaptureSummary) -> Vec<String> {
    let path = found.path.display();
    let mut lines = vec![format!(
        "{} with {} in {path} ({})",
        plural(found.faults, "fault"),
        plural(found.calls, "call"),
        found.size
    )];
    if let Some(choice) = &found.choice {
        lines.push(format!(
            "after the first phase {} of {} were traced: {} (of {} that the kernel can trace)",
            choice.traced,
            plural(found.candidates as u64, "function"),
            choice.reason,
            found.available
        ));
    }
    lines.extend(cost(found));
    lines.extend(warnings(found));
    if let Some(Ending::Killed(signal)) = found.ending {
        lines.push(format!(
            "the program was killed by {}; what was recorded until then is kept",
            signal_name(signal)
        ));
    }
    lines.push(format!("view it with: pagewise report {path}"));
    lines
}

fn cost(found: &CaptureSummary) -> Vec<String> {
    let Some(of_call) = found.cost.of_call else {
        return vec![format!(
            "what tracing cost cannot be determined from {}; reading and writing it took {} of CPU time",
            plural(found.faults, "fault"),
            found.own_cpu
        )];
    };
    let mut text = format!(
        "tracing cost {} ± {} per call ({}), {:.2} s in all",
        nanos(of_call.ns),
        nanos(of_call.error_ns),
        source(&of_call, &found.cost),
        of_call.total_s,
    );
    if let Some(used) = found.program_cpu_s {
        text += &format!(" (the program and its children used {used:.2} s of CPU time)");
    }
    text += &format!(
        "; reading and writing the trace took another {}",
        found.own_cpu
    );
    let mut lines = vec![text];
    if let Some([traced, plain]) = found.cost.beside {
        lines.push(format!(
            "a fault took {} with its path traced and {} without; {:.0} and {:.0} faults per \
             second, in {:.1} s and {:.1} s",
            nanos(traced.mean_ns),
            nanos(plain.mean_ns),
            traced.per_s,
            plain.per_s,
            traced.during_s,
            plain.during_s,
        ));
    }
    lines
}

/// The source of the cost of a call.
fn source(of_call: &CallCost, cost: &TracingCost) -> String {
    let alone = plural(cost.root_only_faults, "fault");
    match (of_call.is_measured, cost.root_only_faults) {
        (true, _) => format!("measured against {alone} with the roots alone"),
        (false, 0) => "estimated from the calls that do least".to_owned(),
        (false, _) => format!(
            "estimated from the calls that do least: {alone} with the roots alone are too few or \
             too different to measure it"
        ),
    }
}

fn warnings(found: &CaptureSummary) -> Vec<String> {
    let mut lines = Vec::new();
    if !found.rejected.is_empty() {
        lines.push(format!(
            "the kernel refused {}: {}",
            plural(found.rejected.len() as u64, "function"),
            found.rejected.join(", ")
        ));
    }
    for (cpu, events) in &found.lost {
        lines.push(format!(
            "CPU {cpu} lost {} for lack of buffer space ({} per CPU): try a larger --buffer",
            plural(*events, "event"),
            found.buffer
        ));
    }
    for difference in &found.differences {
        lines.push(format!("tracefs is not as before: {difference}"));
    }
    lines
}

fn nanos(ns: f64) -> Nanos {
    Nanos::from_secs_f64(ns / 1e9)
}

/// `1 fault`, `2 faults`.
fn plural(count: u64, what: &str) -> String {
    let ending = if count == 1 { "" } else { "s" };
    format!("{count} {what}{ending}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagewise_model::units::Bytes;

    fn found() -> CaptureSummary {
        CaptureSummary {
            path: "t.txt".into(),
            size: Bytes(2048),
            faults: 1,
            calls: 12,
            choice: None,
            candidates: 9,
            available: 7,
            cost: TracingCost {
                of_call: None,
                root_only_faults: 0,
                beside: None,
            },
            own_cpu: Nanos(5_000_000),
            program_cpu_s: Some(0.5),
            rejected: Vec::new(),
            lost: vec![(3, 1)],
            buffer: Bytes(1 << 20),
            differences: Vec::new(),
            ending: Some(Ending::Killed(9)),
        }
    }

    #[test]
    fn what_cannot_be_told_and_what_was_lost_is_said() {
        assert_eq!(
            lines(&found()),
            [
                "1 fault with 12 calls in t.txt (2.00 KiB)",
                "what tracing cost cannot be determined from 1 fault; reading and writing it took \
                 5.00 ms of CPU time",
                "CPU 3 lost 1 event for lack of buffer space (1.00 MiB per CPU): try a larger --buffer",
                "the program was killed by SIGKILL (signal 9); what was recorded until then is kept",
                "view it with: pagewise report t.txt",
            ]
        );
    }

    #[test]
    fn a_measured_cost_says_against_what() {
        let mut found = found();
        found.cost.root_only_faults = 40;
        let of_call = CallCost {
            ns: 250.0,
            error_ns: 20.0,
            total_s: 0.125,
            is_measured: true,
        };
        found.cost.of_call = Some(of_call);
        let measured = lines(&found);
        assert!(
            measured[1].starts_with(
                "tracing cost 250 ns ± 20 ns per call (measured against 40 faults with the roots \
                 alone), 0.12 s in all (the program and its children used 0.50 s of CPU time)"
            ),
            "{}",
            measured[1]
        );
    }
}
