//! How two whole runs differ: time, faults and memory, causes of faults, settings.

use super::Style;
use super::page::{Ink, Page};
use crate::visible::visible;
use pagewise_model::profile_diff::SettingChange;
use pagewise_model::quantity::{relative_change, rounded};
use pagewise_model::run_diff::{Quantity, RunDiff};
use pagewise_model::units::{Bytes, Nanos};

/// Causes shown.
const CAUSES: usize = 6;
/// Ratios this near to one are written as no change.
const SAME: f64 = 0.0005;
/// Settings shown.
const SETTINGS: usize = 12;

/// Two runs without samples, as text of at most `width` columns, clamped to 60–200.
#[must_use]
pub fn render(diff: &RunDiff, width: usize, style: Style) -> String {
    let mut page = Page::new(width.clamp(super::WIDTHS.0, super::WIDTHS.1), style);
    match &*diff.headline {
        "" => page.marked("● diff", Ink::Good, &alike(diff)),
        headline => page.marked("● diff", Ink::Caution, &visible(headline)),
    }
    page.gap();
    for (label, side) in [("A", &diff.a), ("B", &diff.b)] {
        let line = format!(
            "{}: {}",
            visible(&side.name),
            visible(&side.command.join(" "))
        );
        page.paragraph(label, Ink::Plain, &line);
    }
    runs(&mut page, diff);
    settings(&mut page, &diff.settings);
    page.finish()
}

fn alike(diff: &RunDiff) -> String {
    format!(
        "{} and {} differ by no more than two runs of one program do.",
        visible(&diff.a.name),
        visible(&diff.b.name)
    )
}

/// The table of both runs.
pub(super) fn runs(page: &mut Page, diff: &RunDiff) {
    page.heading("Both runs (* where they differ by more than two runs of one program do)");
    page.line(&format!("  {:>12} {:>12} {:>12}", "A", "B", "change"));
    for figure in &diff.figures {
        if figure.a == 0.0 && figure.b == 0.0 {
            continue;
        }
        let (name, write) = of(figure.quantity);
        row(page, [figure.a, figure.b], write, figure.differs, name);
    }
    let causes = || diff.causes.iter().filter(|cause| cause.differs);
    for cause in causes().take(CAUSES) {
        let name = format!("faults: {}", cause.label);
        row(page, [cause.a.value, cause.b.value], rounded, true, &name);
    }
    page.more(causes().count(), CAUSES);
}

fn row(page: &mut Page, [a, b]: [f64; 2], write: fn(f64) -> String, differs: bool, name: &str) {
    let change = match (a > 0.0, b > 0.0) {
        (true, true) if (b / a - 1.0).abs() < SAME => "same".to_owned(),
        (true, true) => relative_change(b / a),
        (true, false) => "gone".to_owned(),
        _ => "new".to_owned(),
    };
    let mark = if differs { "*" } else { " " };
    let (a, b) = (write(a), write(b));
    page.line(&format!("  {a:>12} {b:>12} {change:>12} {mark} {name}"));
}

/// A figure's name, and how it is written.
fn of(quantity: Quantity) -> (&'static str, fn(f64) -> String) {
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
        page.bullet("", &super::profile_diff::setting_line(setting));
    }
    page.more(settings.len(), SETTINGS);
}
