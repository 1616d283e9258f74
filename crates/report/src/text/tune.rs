//! What came of trying settings, for a person.

use super::Style;
use super::page::hanging;
use super::scatter::{bytes, scatter};
use crate::settings_export::{command_line, exports};
use pagewise_model::proof::{Clock, Comparison, Verdict};
use pagewise_model::quantity::percent_change;
use pagewise_model::ratio::Ratio;
use pagewise_model::tuning::{Point, Tuning, Winner};
use pagewise_model::units::Nanos;

/// The whole answer.
#[must_use]
pub fn render(found: &Tuning, width: usize, _style: Style) -> String {
    let mut text = match &found.winner {
        Some(winner) => answer(winner, &found.command, width),
        None => no_winner(found, width),
    };
    text += &table(found, width);
    text += "\nTime against memory (letters as in the table, * beaten by no other)\n";
    let points = &found.time_and_memory;
    text += &scatter(points, &letters(points.len()), width);
    if !found.notes.is_empty() {
        text += "\nNotes\n";
        for note in &found.notes {
            text += &hanging(note, "  • ", "    ", width);
        }
    }
    text
}

fn answer(winner: &Winner, command: &[String], width: usize) -> String {
    let mut text = hanging(
        &format!("Best: {}: {}.", winner.name, winner.summary),
        "",
        "      ",
        width,
    );
    text += &hanging(&format!("Price: {}.", winner.price), "", "      ", width);
    let values = winner.won_at_value.zip(winner.smallest_sufficient_value);
    if let Some((won, smallest)) = values.filter(|(won, smallest)| smallest < won) {
        let line = format!("Value: {smallest} suffices; {won} gains no more.");
        text += &hanging(&line, "", "      ", width);
    }
    for export in exports(&winner.settings) {
        let shown = match export.label {
            "One command" if !command.iter().any(|word| word.contains('\n')) => {
                command_line(&winner.settings, command)
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

fn no_winner(found: &Tuning, width: usize) -> String {
    let undecided = |c: &&Comparison| c.verdict == Verdict::Undecided;
    let looks = |c: &Comparison| *found.clock.speed_up(c);
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
    hanging(&line, "", "", width) + "\n"
}

/// One line for each arm, the fastest first; the baseline where it belongs.
fn table(found: &Tuning, width: usize) -> String {
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
    let mut order: Vec<usize> = (0..found.time_and_memory.len()).collect();
    order.sort_by(|&a, &b| {
        found.time_and_memory[a]
            .seconds
            .total_cmp(&found.time_and_memory[b].seconds)
    });
    let letters = letters(found.time_and_memory.len());
    let mut rows = vec![head.map(str::to_owned)];
    rows.extend(order.into_iter().map(|at| {
        let point = &found.time_and_memory[at];
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
            format!("×{:.2}", clock.speed_up(comparison).value),
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
    let ratio = clock.speed_up(comparison);
    match Ratio::of(ratio) {
        Ratio::Measured(found) if comparison.pairs >= 3 => {
            format!("{:.2}–{:.2}", found.low, found.high)
        }
        _ => "too few".to_owned(),
    }
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
        Verdict::NotReached => "no effect",
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
