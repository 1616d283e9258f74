//! What distinguishes slow faults, when faults changed, and their common call trees.

use super::tracing::within;
use crate::text::columns::{Row, figures, named, words};
use crate::text::page::{Ink, Page};
use crate::visible::visible;
use pagewise_model::fault_paths::{
    ChangePoint, Changed, Contrast, DescentStep, FaultPaths, Overrepresented, SleepTime,
    TreePattern,
};
use pagewise_model::quantity::{
    count, counted, duration, duration_change, percent, rounded, share, signed_percent,
};
use pagewise_model::units::{Estimate, Nanos};

/// Lines of each list.
const LINES: usize = 5;
/// Changes shown.
const CHANGES: usize = 12;

/// What distinguishes the slowest faults, and when faults changed.
pub fn findings(page: &mut Page, findings: &FaultPaths) {
    let contrasts = findings.contrasts.iter();
    for found in contrasts.filter(|found| found.class.is_none()) {
        contrast(page, found, findings.counted_as());
    }
    changes(page, findings);
}

/// The part of the faults that the report covers, outermost function first; nothing if it covers
/// whole faults.
pub fn descent(page: &mut Page, steps: &[DescentStep]) {
    if steps.is_empty() {
        return;
    }
    page.heading("Inside the faults, from the outside in");
    for (place, step) in steps.iter().enumerate() {
        let class = step.class.map_or(String::new(), |class| {
            format!(", of faults of the kind \"{}\"", class.describe())
        });
        let range = match (step.from_ns, step.to_ns) {
            (None, None) => String::new(),
            (from, to) => format!(
                ", that take {} to {}",
                from.map_or("0".to_owned(), |ns| Nanos(ns).to_string()),
                to.map_or("any".to_owned(), |ns| Nanos(ns).to_string())
            ),
        };
        let text = format!(
            "{}{class}{range}: {} of {} calls, {} in all",
            visible(&step.name),
            count(step.calls),
            count(step.met),
            Nanos(step.time_ns)
        );
        page.indented(2 * (place + 1), Ink::Plain, &text);
    }
    page.gap();
}

/// The assumptions, in sentences.
pub fn reading(page: &mut Page, findings: &FaultPaths) {
    let reading = &findings.reading;
    let (ink, sleep) = match reading.sleep_time {
        SleepTime::Assumed => (
            Ink::Plain,
            "Durations are assumed to include time asleep, as is the tracer's default \
             (sleep-time); the trace does not say.",
        ),
        SleepTime::Included => (
            Ink::Plain,
            "Durations include time asleep (sleep-time), as waits in the trace show.",
        ),
        SleepTime::Excluded => (
            Ink::Caution,
            "CAUTION: durations leave out time asleep (nosleep-time): waits in the trace are longer \
             than the calls around them.",
        ),
    };
    page.indented(0, ink, sleep);
    if let Some(depth) = reading.depth_limit {
        let text = format!(
            "CAUTION: the trace looks cut {} below the fault (max_graph_depth): calls further down \
             cost time too, which is not corrected for, and kinds may be missed.",
            counted(depth.into(), "level")
        );
        page.indented(0, Ink::Caution, &text);
    }
    if reading.interrupts_by_place > 0 {
        let text = format!(
            "{} calls of functions that are not known as an interrupt's stand where only interrupts \
             do: removed as such.",
            count(reading.interrupts_by_place)
        );
        page.indented(0, Ink::Plain, &text);
    }
}

fn contrast(page: &mut Page, found: &Contrast, each: &str) {
    page.heading(&format!(
        "The slowest {} (beyond {}): {} of {} on average, others {}, waits included",
        percent(1.0 - found.quantile),
        Nanos(found.threshold_ns),
        counted(found.tail, each),
        within(found.tail_mean_ns, found.error_ns[0]),
        within(found.body_mean_ns, found.error_ns[1])
    ));
    let rows = found.excess.iter().take(LINES).map(|excess| {
        let more = Estimate {
            value: excess.ns,
            low: excess.ns - excess.error_ns,
            high: excess.ns + excess.error_ns,
        };
        Row::new([
            visible(&excess.name).into_owned(),
            duration_change(&more),
            signed_percent(excess.share),
        ])
    });
    let heads = named("of the difference", &["more each", "share"]);
    page.rows(&heads, rows);
    if found.functions.is_empty() {
        return;
    }
    let title = format!(
        "More frequent there, beyond chance ({} tests)",
        count(found.tests)
    );
    let (slow, with) = (format!("of slow {each}s"), "with");
    let heads = [
        words("function"),
        figures(&slow),
        figures("of others"),
        words(with),
    ];
    let rows = found.functions.iter().take(LINES).map(|function| {
        Row::new([
            visible(&function.name).into_owned(),
            percent(function.tail_share),
            percent(function.body_share),
            along(function),
        ])
    });
    page.table(&title, &heads, rows);
}

fn along(found: &Overrepresented) -> String {
    let names = found.along.iter().take(3).map(|name| visible(name));
    names.collect::<Vec<_>>().join(", ")
}

fn changes(page: &mut Page, findings: &FaultPaths) {
    let each = findings.counted_as();
    let changes = &findings.timeline.changes;
    let rows = changes.iter().take(CHANGES).map(|change| {
        let at = match change.at_ns {
            Some(ns) => format!("after {}", Nanos(ns)),
            None => format!("after {}", counted(change.faults_before, each)),
        };
        let (what, written) = changed(change, each);
        let change = format!("{} → {}", written(change.before), written(change.after));
        Row::new([at, what, change])
    });
    let title = format!(
        "Moments at which {each}s changed ({} in all)",
        changes.len()
    );
    let heads = [words("when"), words("what"), words("change")];
    page.table(&title, &heads, rows);
}

/// What changed, and the format of its figures.
fn changed(change: &ChangePoint, each: &str) -> (String, fn(f64) -> String) {
    match change.what {
        Changed::Rate => (format!("{each}s per second"), rounded),
        Changed::Mix => {
            let class = change.class.map_or("", |class| class.describe());
            (format!("share of \"{class}\""), percent)
        }
        Changed::Median => ("median".to_owned(), duration),
        Changed::Tail => ("90th percentile".to_owned(), duration),
    }
}

/// Call trees, by their share of time.
pub fn trees(page: &mut Page, findings: &FaultPaths) {
    let trees = &findings.trees;
    if trees.is_empty() {
        return;
    }
    let each = findings.counted_as();
    let all = trees.len() as u64 + findings.trees_left_out;
    page.heading(&format!(
        "Call trees that {each}s share, by their share of time (repeats folded; {} of {})",
        trees.len().min(LINES),
        count(all)
    ));
    for tree in trees.iter().take(LINES) {
        self::tree(page, tree, each);
    }
}

/// Lines of an outline.
const OUTLINE_LINES: usize = 4;

fn tree(page: &mut Page, tree: &TreePattern, each: &str) {
    let whole = match (tree.complete, tree.class) {
        (true, Some(class)) => format!("all of it: {}", class.describe()),
        (true, None) => "all of it".to_owned(),
        (false, Some(class)) => format!("part of: {}", class.describe()),
        (false, None) => "part of several kinds".to_owned(),
    };
    let (least, most) = tree.calls;
    let calls = match least == most {
        true => counted(least, "call"),
        false => format!("{}–{} calls", count(least), count(most)),
    };
    let text = format!(
        "{} of time, {}, {whole}",
        percent(tree.corrected_time_share),
        counted(tree.faults, each)
    );
    page.indented(2, Ink::Plain, &text);
    let text = format!(
        "{calls}; mean {}, 99th percentile {}, itself {} ({} of time as traced)",
        within(tree.mean_ns, tree.error_ns),
        within(tree.p99_ns as f64, tree.error_ns),
        percent(share(tree.corrected_self_ns, tree.corrected_total_ns)),
        percent(tree.time_share)
    );
    page.indented(6, Ink::Plain, &text);
    page.indented_lines(6, OUTLINE_LINES, &visible(&tree.outline));
}
