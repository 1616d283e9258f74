//! The result for a person.

use super::scatter::{bytes, scatter};
use super::search::{Found, Winner, speed_up};
use crate::terminal;
use pagewise_analyse::compare::{Clock, percent_change, sentence};
use pagewise_analyse::tune::Point;
use pagewise_model::proof::{Comparison, Verdict};
use pagewise_model::units::Nanos;
use pagewise_report::settings_export::{command_line, exports};
use std::ffi::OsString;

/// Columns of the terminal; 80 where it cannot be told.
pub fn width() -> usize {
    terminal::columns().unwrap_or(80).max(40)
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
            "One command" if !words.iter().any(|word| word.contains('\n')) => {
                command_line(&winner.settings, &words)
            }
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
    let undecided = |c: &&Comparison| c.verdict == Verdict::Undecided;
    let looks = |c: &Comparison| *speed_up(c, found.clock);
    let undecided: Vec<&Comparison> = found.comparisons.iter().filter(undecided).collect();
    let best = undecided
        .iter()
        .filter(|c| looks(c).low > 1.0)
        .max_by(|a, b| looks(a).low.total_cmp(&looks(b).low));
    let line = if found.luck {
        "Luck decides here: the best settings make the command faster, but so does a meaningless \
         variable of the same length, because the faults depend on the exact layout of the heap. \
         No setting can claim the gain; see the notes."
            .to_owned()
    } else if let Some(best) = best {
        format!(
            "Not proved in this time: '{}' looks {:.2} times as fast, but too few runs say so. A \
             larger --budget can tell.",
            best.arm,
            looks(best).value
        )
    } else if !undecided.is_empty() {
        "No setting made the command faster beyond doubt. Some are undecided: a larger --budget \
         or a quieter machine can tell."
            .to_owned()
    } else {
        "Nothing to gain here: no setting made the command faster. Leave it as it is.".to_owned()
    };
    wrapped(&line, "", "", width) + "\n"
}

/// One line for each arm, the fastest first; the baseline where it belongs.
fn table(found: &Found, width: usize) -> String {
    let time = match found.clock {
        Clock::Wall => "time",
        Clock::Cpu => "CPU time",
    };
    let head = [
        "  setting",
        time,
        "speed-up",
        "95 %",
        "faults",
        "memory",
        "pairs",
        "verdict",
    ];
    let mut order: Vec<usize> = (0..found.points.len()).collect();
    order.sort_by(|&a, &b| found.points[a].seconds.total_cmp(&found.points[b].seconds));
    let letters = letters(found.points.len());
    let mut rows = vec![head.map(str::to_owned)];
    rows.extend(order.into_iter().map(|at| {
        let point = &found.points[at];
        let comparison = found
            .comparisons
            .iter()
            .find(|found| found.arm == point.arm);
        row(point, comparison, letters[at], found.clock)
    }));
    aligned(&rows, width)
}

fn row(point: &Point, comparison: Option<&Comparison>, letter: char, clock: Clock) -> [String; 8] {
    let mark = if point.on_front { '*' } else { ' ' };
    let name = format!("{letter}{mark} {}", point.arm);
    let time = Nanos::from_secs_f64(point.seconds).to_string();
    let memory = bytes(point.peak_bytes);
    let none = String::new;
    match comparison {
        None => [name, time, none(), none(), none(), memory, none(), none()],
        Some(comparison) => [
            name,
            time,
            format!("×{:.2}", speed_up(comparison, clock).value),
            interval(comparison, clock),
            percent_change(comparison.fault_ratio.value),
            memory,
            comparison.pairs.to_string(),
            word(comparison.verdict).to_owned(),
        ],
    }
}

/// Two pairs give an interval too wide to mean anything to a reader.
fn interval(comparison: &Comparison, clock: Clock) -> String {
    let ratio = speed_up(comparison, clock);
    if comparison.pairs < 3 || ratio.high > 20.0 * ratio.low {
        return "too few".to_owned();
    }
    format!("{:.2}–{:.2}", ratio.low, ratio.high)
}

/// Columns as wide as their content, the first to the left, the rest to the right. Columns that
/// do not fit are left out from the end.
fn aligned(rows: &[[String; 8]], width: usize) -> String {
    let widest = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let widths: Vec<usize> = (0..8).filter_map(widest).collect();
    let mut text = String::new();
    for row in rows {
        let mut line = format!("{:1$}", row[0], widths[0]);
        for (cell, wide) in row.iter().zip(&widths).skip(1) {
            if line.chars().count() + 2 + wide > width {
                break;
            }
            line += &format!("  {cell:>wide$}");
        }
        text += line.trim_end();
        text.push('\n');
    }
    text
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
