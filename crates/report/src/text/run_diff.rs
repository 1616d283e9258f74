//! The differences between two whole runs: time, faults and memory, causes of faults, settings.

use super::Style;
use super::columns::{Row, named};
use super::page::{Ink, Page};
use super::sides::sides;
use crate::visible::visible;
use pagewise_model::answer::Document;
use pagewise_model::quantity::{relative_change, rounded};
use pagewise_model::run_diff::{Quantity, RunDiff};
use pagewise_model::side::SettingChange;
use pagewise_model::units::{Bytes, Nanos};

/// Causes shown.
const CAUSES: usize = 6;
/// Ratios this near to one are written as no change.
const SAME: f64 = 0.0005;
/// Settings shown.
const SETTINGS: usize = 12;

/// Two runs without samples, as text of at most `width` columns, clamped to 60–200.
#[must_use]
pub fn render(diff: &Document<RunDiff>, width: usize, style: Style) -> String {
    let mut page = Page::new(width, style);
    let ink = match diff.differs() {
        true => Ink::Caution,
        false => Ink::Good,
    };
    page.marked("● diff", ink, &visible(&diff.verdict));
    page.gap();
    sides(&mut page, &diff.a, &diff.b, |_| Vec::new());
    for note in &diff.notes {
        page.paragraph("Note", Ink::Faint, &visible(note));
    }
    runs(&mut page, diff);
    settings(&mut page, &diff.settings);
    page.finish()
}

/// The table of both runs.
pub(super) fn runs(page: &mut Page, diff: &RunDiff) {
    page.heading("Both runs (* where they differ by more than two runs of one program do)");
    let figure_rows = diff.figures.iter().filter_map(|figure| {
        let (name, write) = column(figure.quantity);
        let is_there = figure.a != 0.0 || figure.b != 0.0;
        is_there.then(|| row([figure.a, figure.b], write, figure.differs, name))
    });
    let causes = || diff.causes.iter().filter(|cause| cause.differs);
    let cause_rows = causes().take(CAUSES).map(|cause| {
        let name = format!("faults: {}", cause.label);
        row([cause.a.value, cause.b.value], rounded, true, &name)
    });
    let heads = named("", &["A", "B", "change"]);
    page.rows(&heads, figure_rows.chain(cause_rows));
    page.more(causes().count(), CAUSES);
}

fn row([a, b]: [f64; 2], write: fn(f64) -> String, differs: bool, name: &str) -> Row {
    let change = match (a > 0.0, b > 0.0) {
        (true, true) if (b / a - 1.0).abs() < SAME => "same".to_owned(),
        (true, true) => relative_change(b / a),
        (true, false) => "gone".to_owned(),
        _ => "new".to_owned(),
    };
    let mark = if differs { "*" } else { " " };
    Row::new([format!("{mark} {name}"), write(a), write(b), change])
}

/// A figure's name and format.
fn column(quantity: Quantity) -> (&'static str, fn(f64) -> String) {
    let time = |ns: f64| Nanos::from_secs_f64(ns / 1e9).to_string();
    match quantity {
        Quantity::CpuTime => ("CPU time", time),
        Quantity::ElapsedTime => ("elapsed time", time),
        Quantity::Faults => ("page faults", rounded),
        Quantity::MajorFaults => ("page faults that needed I/O", rounded),
        Quantity::Refaults => ("refaults (waits for the store)", rounded),
        Quantity::PagesWritten => ("pages written to the store", rounded),
        Quantity::PeakMemory => ("peak memory", |bytes| Bytes::rounded(bytes).to_string()),
    }
}

fn settings(page: &mut Page, settings: &[SettingChange]) {
    if settings.is_empty() {
        return;
    }
    page.heading("Settings that differ");
    for setting in settings.iter().take(SETTINGS) {
        page.bullet("", &super::sides::setting_line(setting));
    }
    page.more(settings.len(), SETTINGS);
}
