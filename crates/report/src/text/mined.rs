//! Frequent patterns, one per line with tabs between the columns.

use super::Style;
use pagewise_model::answer::Document;
use pagewise_model::fault_paths::TreePattern;
use pagewise_model::mined::Mined;
use pagewise_model::quantity::percent;
use pagewise_model::units::Nanos;

/// The whole list.
#[must_use]
pub fn render(document: &Document<Mined>, _width: usize, _style: Style) -> String {
    let mined = &document.evidence;
    let patterns = mined.patterns.iter().flatten().map(|one| match &one.tree {
        Some(found) => tree(found),
        None => pattern(&one.items.join(" "), one.support),
    });
    let sequences = mined.sequences.iter().flatten();
    let sequences = sequences.map(|items| items.join(" ") + "\n");
    patterns.chain(sequences).collect()
}

/// A pattern: its support and its items.
#[must_use]
pub fn pattern(items: &str, support: u64) -> String {
    format!("{support}\t{items}\n")
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
