//! How many faults a trace has, and how long they take.

use crate::answer::{Evidence, Kind};
use crate::fault_paths::{Latencies, TracedFaults};
use crate::quantity::{count, counted, duration_within, percent};
use crate::units::Nanos;

impl Evidence for TracedFaults {
    const KIND: Kind = Kind::FaultPaths;

    fn verdict(&self) -> String {
        verdict(self)
    }
}

/// The number of faults, their latencies and their most frequent kind.
fn verdict(found: &TracedFaults) -> String {
    if found.faults == 0 {
        return "No complete page fault is in this trace.".to_owned();
    }
    let over = found
        .duration_ns
        .map_or(String::new(), |ns| format!(" in {}", Nanos(ns)));
    let faults = match found.descent.last() {
        None => counted(found.faults, "page fault"),
        Some(step) => {
            let calls = counted(found.faults, "call");
            format!("{calls} of {} inside page faults", step.name)
        }
    };
    let kind = match found.classes.first() {
        Some(most) if found.descent.is_empty() => format!(
            "; {} are of the kind \"{}\"",
            percent(most.share),
            most.class.describe()
        ),
        _ => String::new(),
    };
    let paths = match found.distinct_paths {
        1 => "1 path".to_owned(),
        many => format!("{} different paths", count(many)),
    };
    format!("{faults}{over}, on {paths}{kind}. {}", latency(found))
}

fn latency(found: &TracedFaults) -> String {
    let Latencies {
        raw,
        corrected: by,
        bounds,
    } = &found.latency;
    let each = found.counted_as();
    let (p50, p99) = (Nanos(raw.p50_ns), Nanos(raw.p99_ns));
    match bounds {
        None => format!(
            "On the CPU, a {each} takes {p50} at the median and {p99} at the 99th percentile, as \
             traced."
        ),
        Some(bounds) => format!(
            "On the CPU, a {each} takes {} at the median and {} at the 99th percentile ({p50} and \
             {p99} as traced).",
            duration_within(by.p50_ns, bounds.p50_ns),
            duration_within(by.p99_ns, bounds.p99_ns),
        ),
    }
}
