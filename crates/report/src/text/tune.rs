//! The results of trying settings, for a person.

use super::Style;
use super::columns::{Row, figures, words};
use super::page::{Ink, Page};
pub(crate) use super::scatter::bytes;
use super::scatter::scatter;
use crate::settings_export::{command_line, exports};
use crate::visible::visible;
use pagewise_model::answer::Document;
use pagewise_model::proof::{Clock, Comparison, Verdict};
use pagewise_model::quantity::{percent_change, shown_factor};
use pagewise_model::tuning::{Point, Tuning, Winner};
use pagewise_model::units::Nanos;

/// The whole answer, of at most `width` columns except for settings to be copied.
#[must_use]
pub fn render(document: &Document<Tuning>, width: usize, style: Style) -> String {
    let found = &document.evidence;
    let mut page = Page::new(width, style);
    let verdict = visible(&document.verdict);
    match &found.winner {
        Some(winner) => {
            page.marked("● best", Ink::Good, &verdict);
            settings(&mut page, winner, &document.subject.command);
        }
        None => page.marked("● tune", Ink::Strong, &verdict),
    }
    if !found.time_and_memory.is_empty() {
        table(&mut page, found);
    }
    if found.time_and_memory.len() > 1 {
        plot(&mut page, &found.time_and_memory);
    }
    page.list("Notes", document.notes.iter().map(|note| visible(note)));
    page.finish()
}

fn plot(page: &mut Page, points: &[Point]) {
    page.heading("Time against memory (letters as in the table; * beaten by no other)");
    for line in scatter(points, &letters(points.len()), page.width).lines() {
        page.line(line);
    }
    page.gap();
}

fn settings(page: &mut Page, winner: &Winner, command: &[String]) {
    page.gap();
    let price = format!("{}.", visible(&winner.price));
    page.paragraph("Price", Ink::Plain, &price);
    let values = winner.won_at_value.zip(winner.smallest_sufficient_value);
    if let Some((won, smallest)) = values.filter(|(won, smallest)| smallest < won) {
        let line = format!("{smallest} is enough; {won} gains no more.");
        page.paragraph("Value", Ink::Plain, &line);
    }
    for export in exports(&winner.settings) {
        let shown = match export.label {
            "One command" if !command.iter().any(|word| word.contains('\n')) => {
                command_line(&winner.settings, command)
            }
            _ => export.text,
        };
        page.heading(export.label);
        page.verbatim("", &shown);
    }
}

/// One line for each arm, the fastest first; the baseline at its rank.
fn table(page: &mut Page, found: &Tuning) {
    let time = match found.clock {
        Clock::Wall => "time",
        Clock::Cpu => "CPU time",
    };
    let heads = [
        words("setting"),
        figures(time),
        figures("speed-up [95 %]"),
        figures("faults"),
        figures("memory"),
        figures("pairs"),
        words("verdict"),
    ];
    let points = &found.time_and_memory;
    let mut order: Vec<usize> = (0..points.len()).collect();
    order.sort_by(|&a, &b| points[a].seconds.total_cmp(&points[b].seconds));
    let letters = letters(points.len());
    let rows = order.into_iter().map(|at| {
        let mut comparisons = found.comparisons.iter();
        let comparison = comparisons.find(|found| found.arm == points[at].arm);
        row(&points[at], comparison, letters[at], found.clock)
    });
    let confirmed = found.winner.as_ref().map(|winner| {
        let confirmation = &winner.confirmation;
        let none = String::new;
        Row::new([
            format!("   {}", visible(&winner.name)),
            none(),
            speed_up(confirmation, found.clock),
            percent_change(confirmation.fault_ratio.value),
            none(),
            confirmation.pairs.to_string(),
            "confirmed".to_owned(),
        ])
    });
    page.table("Settings tried", &heads, rows.chain(confirmed));
}

fn row(point: &Point, comparison: Option<&Comparison>, letter: char, clock: Clock) -> Row {
    let mark = if point.on_front { '*' } else { ' ' };
    let name = format!("{letter}{mark} {}", visible(&point.arm));
    let time = Nanos::from_secs_f64(point.seconds).to_string();
    let memory = bytes(point.peak_bytes);
    let none = String::new;
    match comparison {
        None => Row::new([name, time, none(), none(), memory, none(), none()]),
        Some(comparison) => Row::new([
            name,
            time,
            speed_up(comparison, clock),
            percent_change(comparison.fault_ratio.value),
            memory,
            comparison.pairs.to_string(),
            word(comparison.verdict).to_owned(),
        ]),
    }
}

/// Two pairs give an interval too wide to be useful.
pub(crate) fn speed_up(comparison: &Comparison, clock: Clock) -> String {
    let ratio = clock.speed_up(comparison);
    match shown_factor(ratio).filter(|_| comparison.pairs >= 3) {
        Some(found) => found,
        None => format!("×{:.2}, too few", ratio.value),
    }
}

pub(crate) fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Faster => "faster",
        Verdict::NoDifference => "no difference",
        Verdict::Slower => "slower",
        Verdict::TooMuchMemory => "too much memory",
        Verdict::Undecided => "undecided",
        Verdict::NotReached => "no effect",
        Verdict::TriedOnce => "no more runs",
    }
}

/// `a` to `z`, then `A` to `Z`, then `+`.
fn letters(count: usize) -> Vec<char> {
    ('a'..='z')
        .chain('A'..='Z')
        .chain(std::iter::repeat('+'))
        .take(count)
        .collect()
}
