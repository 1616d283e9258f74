//! The page of one function's lines and instructions.

use super::sheet;
use crate::html::Error;
use crate::html::document::render_sheets_of;
use crate::html::sheets::{Cell, Look, Said, Sheets, Tile, Tone};
use crate::text::annotated::{place, sampled, verdict, with_callees};
use pagewise_model::annotated::{Annotated, AnnotatedEvent};
use pagewise_model::quantity::{percent, share};

/// The page about a function.
///
/// # Errors
/// Only if it could not be encoded, which the model's types rule out.
pub fn render_annotated(found: &Annotated, text: &str) -> Result<String, Error> {
    let events = sampled(found);
    let cell = |part: u64, event: &AnnotatedEvent| match part {
        0 => Cell::default(),
        part => Cell::figure(percent(share(part, event.all)), share(part, event.all)),
    };
    let lines = found.lines.iter().map(|line| {
        let source = line.text.as_deref().unwrap_or_default().trim();
        let mut cells = vec![Cell::from(place(line.place.as_ref())), source.into()];
        for &(at, event) in &events {
            cells.push(cell(line.own[at], event));
            cells.push(cell(line.with_callees[at], event));
        }
        cells
    });
    let mut columns = vec![("line", Look::Text), ("source", Look::Code)];
    columns.extend(
        events
            .iter()
            .flat_map(|(_, event)| [(&*event.name, Look::Bar), ("with callees", Look::Bar)]),
    );
    let mut lines = sheet("lines", "Lines", &columns, lines.collect());
    lines.intro = "Shares of all samples of an event, in the order of the source.".to_owned();
    let instructions = found.instructions.iter().map(|one| {
        let mut cells = vec![
            Cell::from(format!("+{:#x}", one.into)),
            place(one.place.as_ref()).into(),
        ];
        cells.extend(events.iter().map(|&(at, event)| cell(one.own[at], event)));
        cells
    });
    let mut columns = vec![("instruction", Look::Code), ("line", Look::Text)];
    columns.extend(events.iter().map(|(_, event)| (&*event.name, Look::Bar)));
    let instructions = sheet(
        "instructions",
        "Instructions",
        &columns,
        instructions.collect(),
    );
    let tiles = events.iter().map(|(_, event)| Tile {
        name: event.name.clone(),
        figure: percent(share(event.own, event.all)),
        note: with_callees(event),
    });
    let sheets = Sheets {
        badge: ("One function".to_owned(), Tone::Neutral),
        tiles: tiles.collect(),
        sheets: vec![lines, instructions],
    };
    let said = Said {
        subject: &found.function,
        verdict: &verdict(found),
        losses: found.missing.iter().cloned().collect(),
        notes: &[],
        text,
    };
    render_sheets_of(&said, &sheets, &[])
}
