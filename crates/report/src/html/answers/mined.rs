//! The page of `pagewise mine`.

use super::sheet;
use crate::html::Error;
use crate::html::document::render_sheets;
use crate::html::sheets::{Cell, Look, Sheet, Sheets, Tone};
use pagewise_model::answer::Document;
use pagewise_model::mined::{Mined, MinedPattern};
use pagewise_model::quantity::{count, percent};
use pagewise_model::units::Nanos;

/// Most rows of a page: JSON has all.
const ROWS: usize = 1000;

/// The page about frequent patterns.
///
/// # Errors
/// Only if it could not be encoded, which the model's types rule out.
pub fn render_mined(document: &Document<Mined>, _text: &str) -> Result<String, Error> {
    let mined = &document.evidence;
    let sheets = mined.patterns.iter().map(|found| patterns(found));
    let sequences = mined.sequences.iter().map(|found| sequences(found));
    let sheets = Sheets {
        badge: ("Patterns".to_owned(), Tone::Neutral),
        tiles: Vec::new(),
        sheets: sheets.chain(sequences).collect(),
    };
    // There may be millions of lines of text.
    render_sheets(document, "Frequent patterns", &sheets, &document.verdict)
}

/// Those of most support first; of trees, those that take most time.
fn patterns(found: &[MinedPattern]) -> Sheet {
    let mut order: Vec<&MinedPattern> = found.iter().collect();
    let time = |one: &MinedPattern| {
        one.tree
            .as_ref()
            .map_or(0.0, |tree| tree.corrected_time_share)
    };
    order.sort_by(|a, b| time(b).total_cmp(&time(a)).then(b.support.cmp(&a.support)));
    let are_trees = found.iter().any(|one| one.tree.is_some());
    let rows = order.iter().take(ROWS).map(|one| {
        let support = Cell::figure(count(one.support), one.support as f64);
        match &one.tree {
            None => vec![one.items.join(" ").into(), support],
            Some(tree) => vec![
                Cell::from(&*tree.outline),
                support,
                Cell::figure(
                    percent(tree.corrected_time_share),
                    tree.corrected_time_share,
                ),
                Nanos::from_secs_f64(tree.mean_ns / 1e9).to_string().into(),
                Nanos(tree.p99_ns).to_string().into(),
            ],
        }
    });
    let (name, unit) = if are_trees {
        ("call tree", "faults")
    } else {
        ("pattern", "support")
    };
    let times = [
        ("share of time", Look::Bar),
        ("mean", Look::Number),
        ("99th percentile", Look::Number),
    ];
    let columns = [(name, Look::Code), (unit, Look::Bar)];
    let columns: Vec<(&str, Look)> = columns
        .into_iter()
        .chain(times.into_iter().filter(|_| are_trees))
        .collect();
    Sheet {
        more: found.len().saturating_sub(ROWS),
        ..sheet("patterns", "Patterns", &columns, rows.collect())
    }
}

fn sequences(found: &[Vec<String>]) -> Sheet {
    let rows = found
        .iter()
        .take(ROWS)
        .map(|items| vec![Cell::from(items.join(" "))]);
    Sheet {
        more: found.len().saturating_sub(ROWS),
        ..sheet(
            "sequences",
            "Projected sequences",
            &[("sequence", Look::Code)],
            rows.collect(),
        )
    }
}
