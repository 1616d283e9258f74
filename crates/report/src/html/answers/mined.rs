//! The page of `pagewise mine`.

use super::sheet;
use crate::html::Error;
use crate::html::document::render_sheets;
use crate::html::sheets::{Cell, Look, Sheet, Sheets, Tone};
use pagewise_model::answer::Document;
use pagewise_model::mined::{Mined, MinedPattern};
use pagewise_model::quantity::{count, counted, percent};
use pagewise_model::units::Nanos;

/// Most rows of a page: JSON has all.
const ROWS: usize = 200;
/// Items of a pattern that are shown, the last: where longer patterns of the same beginning differ.
const ITEMS: usize = 8;

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
    let mut order = without_beginnings(found);
    let left_out = found.len() - order.len();
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
            None => vec![shortened(&one.items), support],
            Some(tree) => vec![
                outlined(&tree.outline),
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
        more: order.len().saturating_sub(ROWS),
        intro: match left_out {
            0 => String::new(),
            _ => format!(
                "{} that are the beginning of a longer one of the same support are left out; JSON has all.",
                counted(left_out as u64, "pattern")
            ),
        },
        ..sheet("patterns", "Patterns", &columns, rows.collect())
    }
}

/// All but those that the next one continues with the same support: patterns come before their
/// extensions.
fn without_beginnings(found: &[MinedPattern]) -> Vec<&MinedPattern> {
    let is_continued = |at: usize| {
        let (one, next) = (&found[at], found.get(at + 1));
        next.is_some_and(|next| {
            one.tree.is_none() && next.support == one.support && next.items.starts_with(&one.items)
        })
    };
    (0..found.len())
        .filter(|&at| !is_continued(at))
        .map(|at| &found[at])
        .collect()
}

/// The last items, and what they come after.
fn shortened(items: &[String]) -> Cell {
    let left_out = items.len().saturating_sub(ITEMS);
    let shown = Cell::from(items[left_out..].join(" "));
    match (left_out, items.first()) {
        (0, _) | (_, None) => shown,
        (1, Some(first)) => shown.with_note(format!("after {first}")),
        (_, Some(first)) => shown.with_note(format!("after {first} and {} more", left_out - 1)),
    }
}

/// The first functions of a call tree, and how many there are.
fn outlined(outline: &str) -> Cell {
    let words = || outline.split(' ');
    let functions = words().filter(|word| !matches!(*word, "{" | "}")).count();
    if functions <= ITEMS {
        return outline.into();
    }
    let (mut shown, mut open, mut met) = (Vec::new(), 0_usize, 0);
    for word in words() {
        match word {
            "{" => open += 1,
            "}" => open = open.saturating_sub(1),
            _ if met == ITEMS => break,
            _ => met += 1,
        }
        shown.push(word);
    }
    shown.push("…");
    shown.extend(std::iter::repeat_n("}", open));
    let more = counted((functions - ITEMS) as u64, "more call");
    Cell::from(shown.join(" ")).with_note(format!("{more}; JSON has all"))
}

fn sequences(found: &[Vec<String>]) -> Sheet {
    let rows = found.iter().take(ROWS).map(|items| vec![shortened(items)]);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_tree_is_shown_by_its_beginning_with_braces_that_close() {
        assert_eq!(outlined("a { b c }").text, "a { b c }");
        let large = outlined("a { b { c d e } f { g h { i j } } k }");
        assert_eq!(large.text, "a { b { c d e } f { g h { … } } }");
        assert_eq!(large.note, "3 more calls; JSON has all");
    }
}
