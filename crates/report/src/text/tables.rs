//! Short tables below the answer: shares with bars, and the heaviest call paths.

use super::page::{Ink, Page, chain, clip, shorten};
use super::wrap::columns;
use crate::visible::visible;
use pagewise_model::findings::{Findings, Share, Site};
use pagewise_model::quantity::{percent, percent_interval, rounded};
use pagewise_model::units::Estimate;

/// Most lines of one table.
const LINES: usize = 6;
/// Columns of a full bar, on pages that are wide enough for names and bars.
const BAR: usize = 20;
/// Columns of a line except name and bar.
const FIGURES: usize = 36;
/// Columns of a share.
const SHARE: usize = 7;

/// Relative width of an interval from which a share shows it.
const WIDE: f64 = 0.3;
/// Shares below this are shown without an interval: they hardly matter.
const SMALL: f64 = 0.02;

/// One line of a table of shares.
struct Row {
    name: String,
    faults: f64,
    /// The interval, if it is wide.
    doubt: Option<Estimate>,
    time: String,
    ink: Ink,
}

pub fn causes(page: &mut Page, findings: &Findings) {
    let rows = findings.by_cause.iter().map(|share| Row {
        ink: if share.key.is_churn() {
            Ink::Caution
        } else {
            Ink::Plain
        },
        ..row(share, share.key.label())
    });
    shares(page, "Faults by cause", rows.collect());
}

pub fn regions(page: &mut Page, findings: &Findings) {
    let rows = findings.by_region.iter();
    let rows = rows.map(|share| row(share, share.key.label()));
    shares(page, "Faults by kind of memory", rows.collect());
}

pub fn threads(page: &mut Page, findings: &Findings) {
    if findings.by_thread.len() < 2 {
        return;
    }
    let rows = findings.by_thread.iter().map(|thread| Row {
        name: format!("{} {}", visible(&thread.comm), thread.tid),
        faults: thread.faults,
        doubt: None,
        time: String::new(),
        ink: Ink::Plain,
    });
    shares(page, "Faults by thread", rows.collect());
}

fn row<K>(share: &Share<K>, label: &str) -> Row {
    Row {
        name: label.to_owned(),
        faults: share.faults.value,
        doubt: Some(share.faults).filter(|faults| faults.high - faults.low > WIDE * faults.value),
        time: share.time.map_or_else(String::new, |time| time.to_string()),
        ink: Ink::Plain,
    }
}

fn shares(page: &mut Page, title: &str, rows: Vec<Row>) {
    let total: f64 = rows.iter().map(|row| row.faults).sum();
    if rows.is_empty() || total <= 0.0 {
        return;
    }
    page.heading(title);
    let shown = &rows[..rows.len().min(LINES)];
    let bar_room = if page.width >= 90 { BAR } else { 0 };
    let message: Vec<String> = shown.iter().map(|row| share_of(row, total)).collect();
    let share_room = message
        .iter()
        .map(|share| columns(share))
        .max()
        .unwrap_or(0);
    let name_room = (page.width - FIGURES - bar_room + SHARE).saturating_sub(share_room.max(SHARE));
    for (row, share) in shown.iter().zip(message) {
        let share = format!(
            "{}{share}",
            " ".repeat(share_room.max(SHARE) - columns(&share))
        );
        let line = share_line(page, row, total, &share, (name_room.min(42), bar_room));
        page.line(&line);
    }
    page.more(rows.len(), LINES);
}

fn share_of(row: &Row, total: f64) -> String {
    match row.doubt {
        Some(faults) if row.faults >= SMALL * total => {
            let share = faults.scaled(1.0 / total);
            percent_interval(&Estimate {
                high: share.high.min(1.0),
                ..share
            })
        }
        _ => percent(row.faults / total),
    }
}

fn share_line(page: &Page, row: &Row, total: f64, message: &str, room: (usize, usize)) -> String {
    let (name_room, bar_room) = room;
    let share = row.faults / total;
    let name = clip(&row.name, name_room);
    let padding = " ".repeat(name_room - columns(&name));
    let filled = cells(share, bar_room);
    let bar = page.paint(row.ink, &"█".repeat(filled));
    let gap = " ".repeat(bar_room - filled);
    let faults = rounded(row.faults);
    let time = page.paint(Ink::Faint, &row.time);
    format!("  {name}{padding} {faults:>12} {message}  {bar}{gap} {time}")
}

/// Cells of a bar for a share; a nonzero share gets a cell only if it rounds to one.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a share between 0 and 1 of a small constant"
)]
fn cells(share: f64, room: usize) -> usize {
    ((share.clamp(0.0, 1.0) * room as f64).round() as usize).min(room)
}

pub fn sites(page: &mut Page, findings: &Findings) {
    let total: f64 = findings
        .by_cause
        .iter()
        .map(|share| share.faults.value)
        .sum();
    let total = if total > 0.0 {
        total
    } else {
        findings.flame.total
    };
    if findings.sites.is_empty() || total <= 0.0 {
        return;
    }
    page.heading("Where they happen");
    for site in findings.sites.iter().take(LINES) {
        site_lines(page, site, total);
    }
    page.more(findings.sites.len(), LINES);
}

fn site_lines(page: &mut Page, site: &Site, total: f64) {
    let share = percent(site.faults / total);
    let room = page
        .width
        .saturating_sub(12 + columns(site.main_cause.label()) + 4);
    let culprit = page.paint(Ink::Strong, &shorten(&visible(&site.culprit), room));
    let cause = page.paint(Ink::Faint, site.main_cause.label());
    page.line(&format!("  {share:>7}  {culprit}  {cause}"));
    let chain = chain(&site.stack, page.width.saturating_sub(11));
    let chain = page.paint(Ink::Faint, &chain);
    page.line(&format!("           {chain}"));
}
