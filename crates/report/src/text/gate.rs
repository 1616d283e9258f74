//! The answer of `pagewise gate`.

use super::Style;
use super::columns::{Row, figures, words};
use super::page::{Ink, LABEL, Page, chain};
use crate::gate::{cause, cells, function, runs, side, stack};
use crate::visible::visible;
use pagewise_model::answer::Document;
use pagewise_model::gate::{Culprit, Gate, GateVerdict, Judged};

/// The answer as text of at most `width` columns, clamped to 60–200.
#[must_use]
pub fn render(document: &Document<Gate>, width: usize, style: Style) -> String {
    let gate = &document.evidence;
    let mut page = Page::new(width, style);
    match gate.passed {
        true => page.marked("● passed", Ink::Good, &visible(&document.verdict)),
        false => page.marked("● failed", Ink::Bad, &visible(&document.verdict)),
    }
    page.gap();
    page.paragraph("Old", Ink::Plain, &side(&gate.old));
    page.paragraph("New", Ink::Plain, &side(&gate.new));
    let heads = [
        words(""),
        figures("old"),
        figures("new"),
        figures("change"),
        figures("allowed"),
        words(""),
    ];
    let rows = gate.figures.iter();
    let rows = rows.map(|figure| Row::new(cells(figure)).in_ink(ink(figure)));
    let title = format!("Figures ({})", runs(gate));
    page.table(&title, &heads, rows);
    page.gap();
    if let Some(found) = &gate.culprit {
        culprit(&mut page, found);
    }
    notes(&mut page, document);
    page.finish()
}

fn ink(figure: &Judged) -> Ink {
    match figure.verdict {
        GateVerdict::Grown => Ink::Bad,
        GateVerdict::Within => Ink::Plain,
        GateVerdict::Unsure => Ink::Caution,
        GateVerdict::NotJudged => Ink::Faint,
    }
}

fn culprit(page: &mut Page, found: &Culprit) {
    let mut label = "Behind it";
    let mut tell = |page: &mut Page, text: &str| {
        page.bullet(label, text);
        label = "";
    };
    for grown in &found.causes {
        tell(page, &cause(grown));
    }
    for grown in &found.functions {
        tell(
            page,
            &format!("{}: {}", visible(&grown.name), function(grown)),
        );
    }
    for grown in &found.stacks {
        tell(
            page,
            &format!("{}: {}", visible(&grown.culprit), stack(grown)),
        );
        let room = page.width.saturating_sub(LABEL + 4);
        let frames = page.paint(Ink::Faint, &chain(&grown.stack, room));
        page.line(&format!("{}    {frames}", " ".repeat(LABEL)));
    }
    for missing in &found.missing {
        tell(page, &visible(missing));
    }
    page.gap();
}

fn notes(page: &mut Page, document: &Document<Gate>) {
    let figures = document.evidence.figures.iter();
    let not_judged = figures.filter(|figure| !figure.reason.is_empty());
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for figure in not_judged {
        match reasons
            .iter_mut()
            .find(|(reason, _)| *reason == figure.reason)
        {
            Some((_, names)) => names.push(figure.metric.label()),
            None => reasons.push((&figure.reason, vec![figure.metric.label()])),
        }
    }
    let reasons = reasons
        .into_iter()
        .map(|(reason, names)| format!("Not judged: {}: {}.", names.join(", "), visible(reason)));
    let mut label = "Notes";
    let notes = document.notes.iter();
    for note in reasons.chain(notes.map(|note| visible(note).into_owned())) {
        page.bullet(label, &note);
        label = "";
    }
}
