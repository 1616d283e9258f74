//! The page of `pagewise gate`.

use super::sheet;
use crate::gate::{cause, cells, function, runs, side, stack};
use crate::html::Error;
use crate::html::document::render_sheets;
use crate::html::sheets::{Cell, Look, Sheet, Sheets, Tile, Tone};
use pagewise_model::answer::Document;
use pagewise_model::gate::{Culprit, Gate, GateVerdict, Judged};

/// The page about two versions of a program.
///
/// # Errors
/// Only if it could not be encoded, which the model's types rule out.
pub fn render_gate(document: &Document<Gate>, text: &str) -> Result<String, Error> {
    let gate = &document.evidence;
    let (badge, tone) = match gate.passed {
        true => ("Passed", Tone::Good),
        false => ("Failed", Tone::Bad),
    };
    let sides = [("Old", &gate.old), ("New", &gate.new)]
        .map(|(name, of)| vec![Cell::from(name), side(of).into()]);
    let mut figures = sheet(
        "figures",
        "Figures",
        &[
            ("", Look::Text),
            ("old", Look::Number),
            ("new", Look::Number),
            ("change", Look::Number),
            ("allowed", Look::Number),
            ("verdict", Look::Text),
        ],
        gate.figures.iter().map(figure).collect(),
    );
    figures.intro = format!("Figures are {}.", runs(gate));
    let mut sheets = vec![figures];
    sheets.extend(gate.culprit.as_ref().map(culprit));
    let columns = [("side", Look::Text), ("command", Look::Code)];
    sheets.push(sheet(
        "sides",
        "What was compared",
        &columns,
        sides.to_vec(),
    ));
    let grown = gate
        .figures
        .iter()
        .filter(|figure| figure.verdict == GateVerdict::Grown);
    let tiles = grown.map(|figure| {
        let [name, old, new, change, ..] = cells(figure);
        Tile {
            name,
            figure: change,
            note: format!("{old} → {new}"),
        }
    });
    let sheets = Sheets {
        badge: (badge.to_owned(), tone),
        tiles: tiles.collect(),
        sheets,
    };
    let subject = crate::visible::command_line(&gate.new.command);
    render_sheets(document, &subject, &sheets, text)
}

fn figure(figure: &Judged) -> Vec<Cell> {
    let mut row: Vec<Cell> = cells(figure).into_iter().map(Cell::from).collect();
    if let Some(verdict) = row.pop() {
        let tone = match figure.verdict {
            GateVerdict::Grown => Tone::Bad,
            GateVerdict::Within => Tone::Good,
            _ => Tone::Neutral,
        };
        row.push(verdict.toned(tone).with_note(&*figure.reason));
    }
    row
}

fn culprit(found: &Culprit) -> Sheet {
    let causes = found
        .causes
        .iter()
        .map(|grown| vec!["cause".into(), cause(grown).into()]);
    let functions = found.functions.iter().map(|grown| {
        vec![
            "function".into(),
            Cell::from(&*grown.name).with_note(function(grown)),
        ]
    });
    let stacks = found.stacks.iter().map(|grown| {
        let frames = grown
            .stack
            .iter()
            .map(|frame| &**frame)
            .collect::<Vec<&str>>();
        let frames = frames.join(" › ");
        vec![
            "stack".into(),
            Cell::from(&*grown.culprit).with_note(format!("{}: {frames}", stack(grown))),
        ]
    });
    let missing = found
        .missing
        .iter()
        .map(|why| vec!["not known".into(), Cell::from(&**why)]);
    let rows = causes.chain(functions).chain(stacks).chain(missing);
    sheet(
        "behind",
        "Behind it",
        &[("", Look::Text), ("what grew", Look::Text)],
        rows.collect(),
    )
}
