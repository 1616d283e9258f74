//! The page of `pagewise check`.

use super::sheet;
use crate::html::Error;
use crate::html::document::render_sheets;
use crate::html::sheets::{Cell, Look, Sheets, Tile, Tone};
use pagewise_model::answer::Document;
use pagewise_model::capability::{Availability, Capability, Check};

/// The page about what a machine allows.
///
/// # Errors
/// Only if it could not be encoded, which the model's types rule out.
pub fn render_check(document: &Document<Check>, text: &str) -> Result<String, Error> {
    let all = &document.evidence.capabilities;
    let of = |state: Availability| all.iter().filter(move |one| one.state == state);
    let states = [
        (Availability::Missing, "Missing"),
        (Availability::Limited, "Partial"),
        (Availability::Available, "Available"),
    ];
    let tiles = states.iter().rev().map(|&(state, name)| Tile {
        name: name.to_owned(),
        figure: of(state).count().to_string(),
        note: format!("of {}", all.len()),
    });
    let columns = [
        ("capability", Look::Code),
        ("what was found", Look::Text),
        ("how to get it", Look::Code),
    ];
    let sheets = states.iter().map(|&(state, name)| {
        let rows = of(state).map(row).collect();
        sheet(&name.to_lowercase(), name, &columns, rows)
    });
    let (badge, tone) = match (
        of(Availability::Missing).count(),
        of(Availability::Limited).count(),
    ) {
        (0, 0) => ("All available", Tone::Good),
        (0, _) => ("Some in part", Tone::Neutral),
        _ => ("Some missing", Tone::Neutral),
    };
    let sheets = Sheets {
        badge: (badge.to_owned(), tone),
        tiles: tiles.collect(),
        sheets: sheets.collect(),
    };
    render_sheets(document, "What this machine allows", &sheets, text)
}

fn row(one: &Capability) -> Vec<Cell> {
    vec![
        Cell::from(&*one.name),
        Cell::from(&*one.finding).with_note(&*one.consequence),
        one.remedy.as_deref().unwrap_or_default().into(),
    ]
}
