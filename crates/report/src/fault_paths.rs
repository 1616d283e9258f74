//! The fault paths of a function_graph trace as terminal text and as JSON.
//!
//! Raw figures stand beside corrected ones everywhere, since the tracer's own cost can exceed what
//! it measures.

use crate::corrected::{cost_of_tracing, interval};
use crate::lines::line;
use crate::text::Style;
use crate::visible::visible;
use pagewise_model::fault_paths::{
    ClassFindings, Contributor, FaultPaths, Latencies, Layer, LayerFindings, Mode, Path,
};
use pagewise_model::quantity::{count, counted, percent, signed_percent};
use pagewise_model::units::Nanos;

/// Lines of the longer tables.
const LINES: usize = 12;
/// Paths shown, each on lines of its own.
const PATHS: usize = 6;

/// The findings as text of at most `width` columns where names allow.
#[must_use]
pub fn render(findings: &FaultPaths, width: usize, _style: Style) -> String {
    let mut text = String::new();
    text.push_str(&crate::fault_contrast::descent(&findings.descent));
    if findings.faults == 0 {
        no_faults(&mut text, findings);
    } else {
        headline(&mut text, findings);
        probe(&mut text, findings);
        split(&mut text, findings);
        let corrects = findings.latency.bounds.is_some();
        classes(&mut text, findings, corrects);
        layers(&mut text, findings, corrects);
        contributors(&mut text, &findings.contributors);
        lock_waits(&mut text, &findings.classes);
        paths(&mut text, findings, width);
        text.push_str(&crate::fault_contrast::render(findings, width));
    }
    others(&mut text, findings);
    missing(&mut text, findings);
    if findings.faults > 0 {
        text.push_str(&crate::fault_contrast::reading(findings));
    }
    text
}

fn no_faults(text: &mut String, findings: &FaultPaths) {
    line!(text, "No complete page fault is in this trace.");
    if findings.bare_ends.is_empty() {
        line!(
            text,
            "Trace one of exc_page_fault, do_user_addr_fault, __do_page_fault or handle_mm_fault."
        );
    } else {
        line!(
            text,
            "It holds ends of calls only, as tracing_thresh leaves them: what follows are the \
             calls above that threshold, not all calls."
        );
    }
}

/// What was counted: faults, or the calls inside them that a descent has left.
pub(crate) fn counted_as(findings: &FaultPaths) -> &'static str {
    match findings.descent.is_empty() {
        true => "fault",
        false => "call",
    }
}

fn headline(text: &mut String, findings: &FaultPaths) {
    let over = findings
        .duration_ns
        .map_or(String::new(), |ns| format!(" in {}", Nanos(ns)));
    let faults = match findings.descent.last() {
        None => counted(findings.faults, "page fault"),
        Some(step) => {
            let calls = counted(findings.faults, "call");
            format!("{calls} of {} inside page faults", visible(&step.name))
        }
    };
    line!(
        text,
        "{faults}{over}, {}.",
        counted(findings.distinct_paths, "different path")
    );
    let Latencies {
        raw,
        corrected,
        bounds,
    } = &findings.latency;
    match bounds {
        None => line!(
            text,
            "On the CPU, a {} takes {} at the median and {} at the 99th percentile, as traced.",
            counted_as(findings),
            Nanos(raw.p50_ns),
            Nanos(raw.p99_ns)
        ),
        Some(bounds) => line!(
            text,
            "On the CPU, a {} takes {} at the median and {} at the 99th percentile \
             ({} and {} as traced).",
            counted_as(findings),
            interval(corrected.p50_ns, Some(bounds.p50_ns)),
            interval(corrected.p99_ns, Some(bounds.p99_ns)),
            Nanos(raw.p50_ns),
            Nanos(raw.p99_ns)
        ),
    }
}

fn probe(text: &mut String, findings: &FaultPaths) {
    line!(text, "{}", cost_of_tracing(&findings.calibration));
    if findings.correction_exceeds_signal {
        line!(
            text,
            "CAUTION: more than half of the traced latency is the tracer's own; raw latencies \
             compare numbers of calls, not times."
        );
    }
}

fn split(text: &mut String, findings: &FaultPaths) {
    let split = &findings.split;
    line!(text);
    line!(text, "Where the time went (as traced)");
    let parts = [
        ("in the outermost function itself", split.self_ns),
        ("in what it called, on the CPU", split.children_ns),
        ("interrupts", split.interrupts_ns),
        ("waiting for a CPU", split.runnable_ns),
        ("asleep", split.blocked_ns),
        ("off the CPU, reason unknown", split.off_cpu_ns),
    ];
    for (name, ns) in parts.into_iter().filter(|(_, ns)| *ns > 0) {
        line!(
            text,
            "  {name:<36} {:>10} {:>7}",
            Nanos(ns).to_string(),
            percent(share(ns, split.total_ns))
        );
    }
}

#[allow(
    clippy::cast_precision_loss,
    reason = "a share is shown with few digits"
)]
fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        0.0
    } else {
        part as f64 / whole as f64
    }
}

/// The heads over [`latencies`].
fn heads(corrects: bool) -> String {
    match corrects {
        true => format!(
            "{:>10} {:>20} {:>20}",
            "raw p50", "corrected p50", "corrected p99"
        ),
        false => format!("{:>14} {:>14}", "p50 as traced", "p99 as traced"),
    }
}

fn latencies(latencies: &Latencies, corrects: bool) -> String {
    let Latencies {
        raw,
        corrected,
        bounds,
    } = latencies;
    let p50 = Nanos(raw.p50_ns).to_string();
    match corrects {
        true => format!(
            "{p50:>10} {:>20} {:>20}",
            interval(corrected.p50_ns, bounds.map(|bounds| bounds.p50_ns)),
            interval(corrected.p99_ns, bounds.map(|bounds| bounds.p99_ns))
        ),
        false => format!("{p50:>14} {:>14}", Nanos(raw.p99_ns).to_string()),
    }
}

fn classes(text: &mut String, findings: &FaultPaths, corrects: bool) {
    line!(text);
    line!(
        text,
        "{:<38} {:>9} {:>7} {:>7} {}  {}",
        "Kinds of faults",
        format!("{}s", counted_as(findings)),
        "share",
        "time",
        heads(corrects),
        if corrects {
            "peaks, corrected (± as beside)"
        } else {
            "peaks, as traced"
        }
    );
    for class in &findings.classes {
        line!(
            text,
            "  {:<36} {:>9} {:>7} {:>7} {}  {}",
            class.class.describe(),
            count(class.faults),
            percent(class.share),
            percent(class.time_share),
            latencies(&class.latency, corrects),
            peaks(&class.latency.corrected.modes)
        );
    }
}

/// `6.40 µs (92 %), 11.9 µs (6 %)`
fn peaks(modes: &[Mode]) -> String {
    let mut largest: Vec<&Mode> = modes.iter().collect();
    largest.sort_by(|a, b| b.share.total_cmp(&a.share));
    largest.truncate(3);
    largest.sort_by_key(|mode| mode.peak_ns);
    let each = largest.iter();
    let each = each.map(|mode| format!("{} ({})", Nanos(mode.peak_ns), percent(mode.share)));
    each.collect::<Vec<_>>().join(", ")
}

fn layers(text: &mut String, findings: &FaultPaths, corrects: bool) {
    let each = counted_as(findings);
    line!(text);
    line!(
        text,
        "{:<38} {:>9}{:16} {}",
        format!("Layers (time per {each} that has it)"),
        format!("{each}s"),
        "",
        heads(corrects)
    );
    for layer in &findings.layers {
        line!(
            text,
            "  {:<36} {:>9} {:15} {}",
            layer_name(layer, each),
            count(layer.latency.raw.count),
            "",
            latencies(&layer.latency, corrects)
        );
        if !layer.stood_for_by.is_empty() {
            let names: Vec<_> = layer
                .stood_for_by
                .iter()
                .map(|name| visible(name))
                .collect();
            line!(text, "      here: {}", names.join(", "));
        }
    }
}

fn layer_name(layer: &LayerFindings, each: &str) -> String {
    match layer.layer {
        Layer::Fault => format!("whole {each}"),
        layer => layer.describe().to_owned(),
    }
}

fn contributors(text: &mut String, contributors: &[Contributor]) {
    line!(text);
    line!(
        text,
        "{:<38} {:>9} {:>12} {:>18} {:>11}",
        "Functions by their own time",
        "calls",
        "time",
        "corrected",
        "variance"
    );
    for found in contributors.iter().take(LINES) {
        line!(
            text,
            "  {:<36} {:>9} {:>12} {:>18} {:>11}",
            visible(&found.function),
            count(found.calls),
            percent(found.time_share),
            corrected_share(found),
            signed_percent(found.variance_share)
        );
    }
}

/// `12 % ± 3 %`
#[allow(
    clippy::cast_precision_loss,
    reason = "shares are shown with few digits"
)]
fn corrected_share(found: &Contributor) -> String {
    let share = found.corrected_time_share;
    let error = share * found.error_ns as f64 / found.corrected_self_ns.max(1) as f64;
    match (found.error_ns, found.corrected_self_ns) {
        (0, _) => percent(share),
        (_, 0) => "lost in the error".to_owned(),
        _ => format!("{} ± {}", percent(share), percent(error)),
    }
}

fn lock_waits(text: &mut String, classes: &[ClassFindings]) {
    let waits = classes
        .iter()
        .filter_map(|class| Some((class, class.lock_before.as_ref()?)));
    for (place, (class, wait)) in waits.enumerate() {
        if place == 0 {
            line!(text);
            line!(text, "Getting the lock before the fault (as traced)");
        }
        line!(
            text,
            "  {:<36} {:>9} faults, median {}, 99th percentile {}, longest {}",
            class.class.describe(),
            count(wait.count),
            Nanos(wait.p50_ns),
            Nanos(wait.p99_ns),
            Nanos(wait.max_ns)
        );
    }
}

fn paths(text: &mut String, findings: &FaultPaths, width: usize) {
    line!(text);
    line!(text, "Most frequent paths (three levels, repeats merged)");
    for path in findings.paths.iter().take(PATHS) {
        let Path {
            faults,
            share,
            mean_calls,
            latency,
            ..
        } = path;
        line!(
            text,
            "  {} ({}), {}: {mean_calls:.0} calls on average, median {}",
            counted(*faults, counted_as(findings)),
            percent(*share),
            path.class.describe(),
            median(latency)
        );
        for part in wrapped(&visible(&path.outline), width.saturating_sub(6).max(40)) {
            line!(text, "      {part}");
        }
    }
}

fn median(latency: &Latencies) -> String {
    let raw = Nanos(latency.raw.p50_ns);
    match latency.bounds {
        None => format!("{raw} as traced"),
        Some(bounds) => format!(
            "{} corrected, {raw} as traced",
            interval(latency.corrected.p50_ns, Some(bounds.p50_ns))
        ),
    }
}

/// Words on lines of at most `width` columns, where words allow.
pub(crate) fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let last = lines.len() - 1;
        if !lines[last].is_empty() && lines[last].len() + 1 + word.len() > width {
            lines.push(word.to_owned());
            continue;
        }
        if !lines[last].is_empty() {
            lines[last].push(' ');
        }
        lines[last].push_str(word);
    }
    lines
}

fn others(text: &mut String, findings: &FaultPaths) {
    let tables = [
        ("Calls outside faults (as traced)", &findings.other_calls),
        ("Ends of calls without a beginning", &findings.bare_ends),
    ];
    for (title, calls) in tables.into_iter().filter(|(_, calls)| !calls.is_empty()) {
        line!(text);
        line!(text, "{title}");
        for call in calls.iter().take(LINES) {
            line!(
                text,
                "  {:<36} {:>15}, median {}, 99th percentile {}, longest {}",
                visible(&call.function),
                counted(call.latency.count, "call"),
                Nanos(call.latency.p50_ns),
                Nanos(call.latency.p99_ns),
                Nanos(call.latency.max_ns)
            );
        }
    }
}

fn missing(text: &mut String, findings: &FaultPaths) {
    let checked = &findings.conservation;
    line!(text);
    if checked.faults == 0 {
        line!(text, "No complete fault: there are no times to add up.");
    } else if checked.violations == 0 {
        line!(
            text,
            "Times add up in every call of {}.",
            counted(checked.faults, counted_as(findings))
        );
    } else {
        line!(
            text,
            "In {} of {} the parts exceed the whole by more than the printed precision.",
            counted(checked.violations, "call"),
            counted(checked.faults, counted_as(findings))
        );
    }
    if checked.without_durations > 0 {
        line!(
            text,
            "{} without a duration for every call: times come from the time column.",
            counted(checked.without_durations, counted_as(findings))
        );
    }
    for missing in &findings.missing {
        // What is missing is named in the plural: "calls that never ended".
        let (first, rest) = missing.what.split_once(' ').unwrap_or((&missing.what, ""));
        let first = match missing.count {
            1 => first.strip_suffix('s').unwrap_or(first),
            _ => first,
        };
        line!(text, "Left out: {} {first} {rest}.", count(missing.count));
    }
}
