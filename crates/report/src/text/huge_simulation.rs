//! Simulations as text.

use super::Style;
use super::columns::{Row, figures, named, words};
use super::page::{Ink, Page};
use crate::visible::visible;
use pagewise_model::answer::Document;
use pagewise_model::huge_simulation::{Controlled, HugeSimulation, ReuseCurve};
use pagewise_model::quantity::{percent, relative_change};
use pagewise_model::units::Bytes;

/// The result in words and tables, of at most `width` columns.
#[must_use]
pub fn render(document: &Document<HugeSimulation>, width: usize, style: Style) -> String {
    let result = &document.evidence;
    let mut page = Page::new(width, style);
    let of = format!("{}: {}", result.machine, result.workloads.join(", "));
    page.indented(0, Ink::Strong, &visible(&of));
    page.gap();
    if !document.verdict.is_empty() {
        page.marked("● huge", Ink::Strong, &visible(&document.verdict));
    }
    configurations(&mut page, result);
    sweep(&mut page, result);
    for curve in &result.reuse {
        reuse(&mut page, curve);
    }
    controlled(&mut page, &result.controlled);
    page.gap();
    page.list("Notes", document.notes.iter().map(|note| visible(note)));
    page.finish()
}

fn configurations(page: &mut Page, result: &HugeSimulation) {
    let heads = named(
        "configuration",
        &["speed", "ns/access", "refills", "small", "huge"],
    );
    for workload in &result.workloads {
        let rows = result.configurations.iter();
        let rows = rows.filter(|row| row.workload == *workload).map(|row| {
            Row::new([
                row.name.clone(),
                format!("{:.2}×", row.speed),
                format!("{:.2}", row.ns_per_access),
                percent(row.refill_share),
                format!("{:.3}", row.small_per_1000),
                format!("{:.3}", row.huge_per_1000),
            ])
        });
        page.table(&visible(workload), &heads, rows);
    }
    if !result.configurations.is_empty() {
        page.gap();
        let key = "refills: share of the time that goes into TLB refills; small, huge: refills of \
                   small and of huge pages per 1,000 accesses";
        page.indented(2, Ink::Faint, key);
    }
}

fn sweep(page: &mut Page, result: &HugeSimulation) {
    let heads = [
        figures("huge pages"),
        figures("ns/access"),
        figures("small"),
        figures("huge"),
    ];
    let rows = result.sweep.iter().map(|point| {
        Row::new([
            point.huge.to_string(),
            format!("{:.2}", point.ns_per_access),
            format!("{:.3}", point.small_per_1000),
            format!("{:.3}", point.huge_per_1000),
        ])
    });
    page.table("Cost by number of huge pages", &heads, rows);
}

/// TLB sizes for which misses are shown.
const ENTRIES: [u64; 6] = [16, 64, 256, 1024, 2048, 4096];

fn reuse(page: &mut Page, curve: &ReuseCurve) {
    let title = format!(
        "Misses of a fully associative LRU TLB, {} pages (1 in {:.0}, ± {})",
        Bytes(curve.page_bytes),
        1.0 / curve.sampled,
        percent(curve.error)
    );
    let points = ENTRIES.iter().filter_map(|&entries| {
        let point = curve.points.iter().rev().find(|(n, _)| *n <= entries);
        point.map(|(_, misses)| (entries.to_string(), percent(*misses)))
    });
    let (sizes, misses): (Vec<_>, Vec<_>) = points.unzip();
    let heads: Vec<_> = std::iter::once(words("entries"))
        .chain(sizes.iter().map(|size| figures(size)))
        .collect();
    let cells = std::iter::once("misses".to_owned()).chain(misses);
    page.table(&title, &heads, [Row::new(cells.collect::<Vec<_>>())]);
}

fn controlled(page: &mut Page, rows: &[Controlled]) {
    let heads = [
        words("program"),
        words("by"),
        figures("at rest"),
        figures("whole run"),
        figures("huge pages"),
        figures("split"),
        figures("built"),
    ];
    let lines = rows.iter().map(|row| {
        let reason = row.reason.as_ref();
        Row::new([
            visible(&row.workload).into_owned(),
            row.controller.clone(),
            relative_change(1.0 + row.gain),
            relative_change(1.0 + row.gain_whole),
            format!("{} of {}", row.huge, row.possible),
            row.split.to_string(),
            row.built.to_string(),
        ])
        .with_below(reason.map_or(String::new(), |reason| format!("last: {}", visible(reason))))
    });
    page.table("Under a controller", &heads, lines);
    fairness(page, rows);
}

fn fairness(page: &mut Page, rows: &[Controlled]) {
    let shares: Vec<f64> = rows.iter().filter_map(|row| row.against_alone).collect();
    if shares.len() < 2 {
        return;
    }
    // Jain, Chiu and Hawe (1984): 1 if all slow down alike, 1/n if one has everything.
    let sum: f64 = shares.iter().sum();
    let squares: f64 = shares.iter().map(|share| share * share).sum();
    let jain = sum * sum / (shares.len() as f64 * squares);
    page.gap();
    for row in rows {
        let share = row.against_alone.unwrap_or(1.0);
        let text = format!("{}: {share:.2}× as fast as alone", visible(&row.workload));
        page.indented(2, Ink::Plain, &text);
    }
    let text = format!("fairness {jain:.3} (Jain's index, 1 is even)");
    page.indented(2, Ink::Plain, &text);
}
