//! Frequent patterns, one per line with tabs between the columns.

use super::Style;
use pagewise_model::answer::Document;
use pagewise_model::fault_paths::TreePattern;
use pagewise_model::mined::Mined;
use pagewise_model::quantity::percent;
use pagewise_model::units::Nanos;
use std::fmt::Write;

/// The whole list.
#[must_use]
pub fn render(document: &Document<Mined>, _width: usize, _style: Style) -> String {
    let mined = &document.evidence;
    let mut text = String::new();
    for one in mined.patterns.iter().flatten() {
        match &one.tree {
            Some(found) => text += &tree(found),
            None => pattern(one.items.iter().map(String::as_str), one.support, &mut text),
        }
    }
    for items in mined.sequences.iter().flatten() {
        text += &items.join(" ");
        text.push('\n');
    }
    text
}

/// Appends a pattern: its support and its items. There may be millions, so nothing is allocated.
pub fn pattern<'a>(items: impl Iterator<Item = &'a str>, support: u64, line: &mut String) {
    // Writing to a String cannot fail.
    let _ = write!(line, "{support}");
    for (place, item) in items.enumerate() {
        line.push(if place == 0 { '\t' } else { ' ' });
        line.push_str(item);
    }
    line.push('\n');
}

/// A tree: the faults that contain it, its share of the time, mean, 99th percentile, and the tree
/// itself.
#[must_use]
pub fn tree(tree: &TreePattern) -> String {
    let share = percent(tree.corrected_time_share);
    let mean = Nanos::from_secs_f64(tree.mean_ns / 1e9);
    let (faults, p99, outline) = (tree.faults, Nanos(tree.p99_ns), &tree.outline);
    format!("{faults}\t{share}\t{mean}\t{p99}\t{outline}\n")
}
