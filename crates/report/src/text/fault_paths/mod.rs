//! The fault paths of a function_graph trace.
//!
//! Raw figures are shown next to corrected ones everywhere, since the tracer's own cost can exceed
//! what it measures.

mod contrast;
mod locks;
mod tracing;

use super::Style;
use super::columns::{Column, Row, figures, named, words};
use super::page::{Ink, Page};
use crate::visible::visible;
use pagewise_model::fault_paths::{
    ClassFindings, Contributor, FaultPaths, Latencies, Layer, LayerFindings, Mode,
};
use pagewise_model::quantity::{count, counted, percent, percent_interval, share, signed_percent};
use pagewise_model::units::{Estimate, Nanos};
use tracing::{corrected, cost_of_tracing};

/// Lines of the longer tables.
const LINES: usize = 12;
/// Paths shown, each on lines of its own.
const PATHS: usize = 6;

/// The findings as text of at most `width` columns, clamped to 60–200.
#[must_use]
pub fn render(findings: &FaultPaths, width: usize, style: Style) -> String {
    let mut page = Page::new(width, style);
    contrast::descent(&mut page, &findings.descent);
    if findings.faults == 0 {
        no_faults(&mut page, findings);
    } else {
        headline(&mut page, findings);
        split(&mut page, findings);
        contrast::findings(&mut page, findings);
        classes(&mut page, findings);
        layers(&mut page, findings);
        contributors(&mut page, &findings.contributors);
        lock_waits(&mut page, &findings.classes);
        locks::locks(&mut page, findings);
        locks::charges(&mut page, findings);
        paths(&mut page, findings);
        contrast::trees(&mut page, findings);
    }
    others(&mut page, findings);
    missing(&mut page, findings);
    page.finish()
}

fn no_faults(page: &mut Page, findings: &FaultPaths) {
    page.marked("● trace", Ink::Caution, &visible(&findings.verdict));
    let why = match findings.bare_ends.is_empty() {
        true => {
            "Trace one of exc_page_fault, do_user_addr_fault, __do_page_fault or handle_mm_fault."
        }
        false => {
            "It contains only ends of calls, as tracing_thresh leaves them: what follows are the calls above that threshold, not all calls."
        }
    };
    page.paragraph("", Ink::Plain, why);
}

fn headline(page: &mut Page, findings: &FaultPaths) {
    page.marked("● trace", Ink::Strong, &visible(&findings.verdict));
    page.paragraph("", Ink::Plain, &cost_of_tracing(&findings.calibration));
    if findings.correction_exceeds_signal {
        page.paragraph("", Ink::Caution, super::fault_diff::DOUBTFUL);
    }
}

fn split(page: &mut Page, findings: &FaultPaths) {
    let split = &findings.split;
    let parts = [
        ("in the outermost function itself", split.self_ns),
        ("in what it called, on the CPU", split.children_ns),
        ("interrupts", split.interrupts_ns),
        ("waiting for a CPU", split.runnable_ns),
        ("asleep", split.blocked_ns),
        ("off the CPU, reason unknown", split.off_cpu_ns),
    ];
    let rows = parts
        .into_iter()
        .filter(|(_, ns)| *ns > 0)
        .map(|(name, ns)| {
            let part = percent(share(ns, split.total_ns));
            Row::new([name.to_owned(), Nanos(ns).to_string(), part])
        });
    let heads = named("", &["time", "share"]);
    let title = "Where the time went (as traced)";
    page.table(title, &heads, rows);
}

/// The heads over [`latencies`].
fn heads(findings: &FaultPaths) -> Vec<Column<'static>> {
    match findings.latency.bounds {
        Some(_) => vec![
            figures("raw p50"),
            figures("corrected p50"),
            figures("corrected p99"),
        ],
        None => vec![figures("p50 as traced"), figures("p99 as traced")],
    }
}

fn latencies(findings: &FaultPaths, latencies: &Latencies) -> Vec<String> {
    let Latencies {
        raw,
        corrected: by,
        bounds,
    } = latencies;
    let p50 = Nanos(raw.p50_ns).to_string();
    match findings.latency.bounds {
        Some(_) => vec![
            p50,
            corrected(by.p50_ns, bounds.map(|bounds| bounds.p50_ns)),
            corrected(by.p99_ns, bounds.map(|bounds| bounds.p99_ns)),
        ],
        None => vec![p50, Nanos(raw.p99_ns).to_string()],
    }
}

fn classes(page: &mut Page, findings: &FaultPaths) {
    let each = format!("{}s", findings.counted_as());
    let peaks_head = match findings.latency.bounds {
        Some(_) => "peaks, corrected (as uncertain)",
        None => "peaks, as traced",
    };
    let first = [
        words("kind"),
        figures(&each),
        figures("share"),
        figures("time"),
    ];
    let heads = [&first[..], &heads(findings), &[words(peaks_head)]].concat();
    let rows = findings.classes.iter().map(|class| {
        let first = [
            class.class.describe().to_owned(),
            count(class.faults),
            percent(class.share),
            percent(class.time_share),
        ];
        let peaks = peaks(&class.latency.corrected.modes);
        let latencies = latencies(findings, &class.latency);
        Row::new([&first[..], &latencies, &[peaks]].concat())
    });
    page.table("Kinds of faults", &heads, rows);
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

fn layers(page: &mut Page, findings: &FaultPaths) {
    let each = findings.counted_as();
    let all = format!("{each}s");
    let first = [words("layer"), figures(&all)];
    let heads = [&first[..], &heads(findings)].concat();
    let rows = findings.layers.iter().map(|layer| {
        let first = [layer_name(layer, each), count(layer.latency.raw.count)];
        let names = layer.stood_for_by.iter().map(|name| visible(name));
        let names = names.collect::<Vec<_>>().join(", ");
        let row = Row::new([&first[..], &latencies(findings, &layer.latency)].concat());
        match names.is_empty() {
            true => row,
            false => row.with_below(format!("here: {names}")),
        }
    });
    let title = format!("Layers (time per {each} that has it)");
    page.table(&title, &heads, rows);
}

fn layer_name(layer: &LayerFindings, each: &str) -> String {
    match layer.layer {
        Layer::Fault => format!("whole {each}"),
        layer => layer.describe().to_owned(),
    }
}

fn contributors(page: &mut Page, contributors: &[Contributor]) {
    let heads = named("function", &["calls", "time", "corrected", "variance"]);
    let rows = contributors.iter().take(LINES).map(|found| {
        Row::new([
            visible(&found.function).into_owned(),
            count(found.calls),
            percent(found.time_share),
            corrected_share(found),
            signed_percent(found.variance_share),
        ])
    });
    let title = "Functions by their own time";
    page.table(title, &heads, rows);
}

/// `12 % [9.0, 15]`
fn corrected_share(found: &Contributor) -> String {
    let value = found.corrected_time_share;
    let error = value * found.error_ns as f64 / found.corrected_self_ns.max(1) as f64;
    match (found.error_ns, found.corrected_self_ns) {
        (0, _) => percent(value),
        (_, 0) => "lost in the error".to_owned(),
        _ => percent_interval(&Estimate {
            value,
            low: (value - error).max(0.0),
            high: (value + error).min(1.0),
        }),
    }
}

fn lock_waits(page: &mut Page, classes: &[ClassFindings]) {
    let heads = named("kind", &["faults", "median", "99th percentile", "longest"]);
    let rows = classes.iter().filter_map(|class| {
        let wait = class.lock_before.as_ref()?;
        Some(Row::new([
            class.class.describe().to_owned(),
            count(wait.count),
            Nanos(wait.p50_ns).to_string(),
            Nanos(wait.p99_ns).to_string(),
            Nanos(wait.max_ns).to_string(),
        ]))
    });
    let title = "Getting the lock before the fault (as traced)";
    page.table(title, &heads, rows);
}

fn paths(page: &mut Page, findings: &FaultPaths) {
    page.heading("Most frequent paths (three levels, repeats merged)");
    for path in findings.paths.iter().take(PATHS) {
        let text = format!(
            "{} ({}), {}: {:.0} calls on average, median {}",
            counted(path.faults, findings.counted_as()),
            percent(path.share),
            path.class.describe(),
            path.mean_calls,
            median(&path.latency)
        );
        page.indented(2, Ink::Plain, &text);
        page.indented(6, Ink::Faint, &visible(&path.outline));
    }
}

fn median(latency: &Latencies) -> String {
    let raw = Nanos(latency.raw.p50_ns);
    match latency.bounds {
        None => format!("{raw} as traced"),
        Some(bounds) => format!(
            "{} corrected, {raw} as traced",
            corrected(latency.corrected.p50_ns, Some(bounds.p50_ns))
        ),
    }
}

fn others(page: &mut Page, findings: &FaultPaths) {
    let heads = named(
        "function",
        &["calls", "median", "99th percentile", "longest"],
    );
    let tables = [
        ("Calls outside faults (as traced)", &findings.other_calls),
        ("Ends of calls without a start", &findings.bare_ends),
    ];
    for (title, calls) in tables {
        let rows = calls.iter().take(LINES).map(|call| {
            Row::new([
                visible(&call.function).into_owned(),
                count(call.latency.count),
                Nanos(call.latency.p50_ns).to_string(),
                Nanos(call.latency.p99_ns).to_string(),
                Nanos(call.latency.max_ns).to_string(),
            ])
        });
        page.table(title, &heads, rows);
    }
}

fn missing(page: &mut Page, findings: &FaultPaths) {
    let checked = &findings.conservation;
    let each = findings.counted_as();
    page.gap();
    let sums = match (checked.faults, checked.violations) {
        (0, _) => "No complete fault: there are no times to add up.".to_owned(),
        (faults, 0) => format!("Times add up in every call of {}.", counted(faults, each)),
        (faults, wrong) => format!(
            "In {} of {} the parts exceed the whole by more than the printed precision.",
            counted(wrong, "call"),
            counted(faults, each)
        ),
    };
    page.indented(0, Ink::Plain, &sums);
    if checked.without_durations > 0 {
        let text = format!(
            "{} without a duration for every call: times come from the time column.",
            counted(checked.without_durations, each)
        );
        page.indented(0, Ink::Plain, &text);
    }
    for lost in findings.losses.descriptions() {
        page.indented(0, Ink::Caution, &format!("Left out: {lost}."));
    }
    for note in &findings.notes {
        page.indented(0, Ink::Caution, &format!("Note: {}.", visible(note)));
    }
    if findings.faults > 0 {
        contrast::reading(page, findings);
    }
}
