//! The result for a person.

use super::scatter::{bytes, scatter};
use super::search::{Found, Winner};
use pagewise_analyse::compare::{percent_change, sentence};
use pagewise_analyse::tune::Point;
use pagewise_model::proof::{Comparison, Verdict};
use pagewise_model::units::Nanos;
use pagewise_report::settings_export::{command_line, exports};
use std::ffi::OsString;

/// Columns of the terminal; 80 where it cannot be told.
pub fn width() -> usize {
    crossterm::terminal::size().map_or(80, |(columns, _)| usize::from(columns).max(40))
}

/// The whole answer.
pub fn text(command: &[OsString], found: &Found, width: usize) -> String {
    let mut text = match &found.winner {
        Some(winner) => answer(winner, command, width),
        None => no_winner(found, width),
    };
    text += &table(found, width);
    text += "\nTime against memory (letters as in the table, * beaten by no other)\n";
    text += &scatter(&found.points, &letters(found.points.len()), width);
    if !found.notes.is_empty() {
        text += "\nNotes\n";
        for note in &found.notes {
            text += &wrapped(note, "  • ", "    ", width);
        }
    }
    text
}

fn answer(winner: &Winner, command: &[OsString], width: usize) -> String {
    let mut text = wrapped(
        &format!("Best: {}: {}.", winner.name, sentence(&winner.confirmation)),
        "",
        "      ",
        width,
    );
    text += &wrapped(&format!("Price: {}.", winner.price), "", "      ", width);
    if let Some((won, smallest)) = winner.value.filter(|(won, smallest)| smallest < won) {
        let line = format!("Value: {smallest} suffices; {won} gains no more.");
        text += &wrapped(&line, "", "      ", width);
    }
    let words: Vec<String> = command
        .iter()
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    for export in exports(&winner.settings) {
        let shown = match export.label {
            "One command" => command_line(&winner.settings, &words),
            _ => export.text,
        };
        text += &format!("\n{}\n", export.label);
        for line in shown.lines() {
            text += &format!("  {line}\n");
        }
    }
    text + "\n"
}

fn no_winner(found: &Found, width: usize) -> String {
    let undecided = found
        .comparisons
        .iter()
        .any(|c| c.verdict == Verdict::Undecided);
    let line = if undecided {
        "No setting made the command faster beyond doubt. Some are undecided: a larger --budget \
         or a quieter machine can tell."
    } else {
        "Nothing to gain here: no setting made the command faster. Leave it as it is."
    };
    wrapped(line, "", "", width) + "\n"
}

/// One line for each arm, the fastest first; the baseline where it belongs.
fn table(found: &Found, width: usize) -> String {
    let names = found.points.iter().map(|point| point.arm.chars().count());
    let name_width = names.max().unwrap_or(8).max(8);
    let mut text = format!(
        "  {:name_width$}  {:>8}  {:>17}  {:>9}  {:>9}  {:>5}{}\n",
        "  setting",
        "time",
        "speed-up [95 %]",
        "faults",
        "memory",
        "pairs",
        if width >= name_width + 74 {
            "  verdict"
        } else {
            ""
        }
    );
    let mut order: Vec<usize> = (0..found.points.len()).collect();
    order.sort_by(|&a, &b| found.points[a].seconds.total_cmp(&found.points[b].seconds));
    let letters = letters(found.points.len());
    for at in order {
        let point = &found.points[at];
        let comparison = found
            .comparisons
            .iter()
            .find(|found| found.arm == point.arm);
        text += &row(point, comparison, letters[at], name_width, width);
    }
    text
}

fn row(
    point: &Point,
    comparison: Option<&Comparison>,
    letter: char,
    name_width: usize,
    width: usize,
) -> String {
    let mark = if point.on_front { '*' } else { ' ' };
    let time = Nanos::from_secs_f64(point.seconds).to_string();
    let memory = bytes(point.peak_bytes);
    let (speed, faults, pairs, verdict) = match comparison {
        None => (String::new(), String::new(), String::new(), String::new()),
        Some(comparison) => (
            speed_up(comparison),
            percent_change(comparison.fault_ratio.value),
            comparison.pairs.to_string(),
            word(comparison.verdict).to_owned(),
        ),
    };
    let verdict = if width >= name_width + 74 {
        format!("  {verdict}")
    } else {
        String::new()
    };
    let line = format!(
        "{letter}{mark} {:name_width$}  {time:>8}  {speed:>17}  {faults:>9}  {memory:>9}  {pairs:>5}{verdict}",
        point.arm
    );
    line.trim_end().to_owned() + "\n"
}

fn speed_up(comparison: &Comparison) -> String {
    let ratio = &comparison.wall_speedup;
    if comparison.pairs < 2 {
        return format!("×{:.2}", ratio.value);
    }
    let high = if ratio.high > 999.0 {
        "…".to_owned()
    } else {
        format!("{:.2}", ratio.high)
    };
    format!("×{:.2} [{:.2}, {high}]", ratio.value, ratio.low)
}

fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Faster => "faster",
        Verdict::NoDifference => "no difference",
        Verdict::Slower => "slower",
        Verdict::TooMuchMemory => "too much memory",
        Verdict::Undecided => "undecided",
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

/// Words in lines of at most `width` columns.
pub fn wrapped(words: &str, first: &str, rest: &str, width: usize) -> String {
    let mut text = String::new();
    let mut line = first.to_owned();
    let mut empty = true;
    for word in words.split_whitespace() {
        if !empty && line.chars().count() + 1 + word.chars().count() > width {
            text += &line;
            text.push('\n');
            rest.clone_into(&mut line);
            empty = true;
        }
        if !empty {
            line.push(' ');
        }
        line += word;
        empty = false;
    }
    text + &line + "\n"
}
