//! The page of `pagewise tune`.

use super::sheet;
use crate::html::Error;
use crate::html::document::render_sheets;
use crate::html::sheets::{Cell, Look, Scatter, Sheet, Sheets, Spot, Tile, Tone};
use crate::settings_export::{command_line, exports};
use crate::text::tune::{bytes, speed_up, word};
use pagewise_model::answer::Document;
use pagewise_model::proof::{Clock, Comparison, Verdict};
use pagewise_model::quantity::percent_change;
use pagewise_model::tuning::{Point, Tuning, Winner};
use pagewise_model::units::{Estimate, Nanos};

/// The page about settings that were tried.
///
/// # Errors
/// Only if it could not be encoded, which the model's types rule out.
pub fn render_tuning(document: &Document<Tuning>, text: &str) -> Result<String, Error> {
    let found = &document.evidence;
    let command = crate::visible::command_line(&document.subject.command);
    let was_tried = found.comparisons.iter().any(|one| one.pairs > 0);
    let (badge, tone) = match &found.winner {
        Some(_) => ("Faster", Tone::Good),
        None if was_tried => ("Nothing faster", Tone::Neutral),
        None => ("Nothing tried", Tone::Neutral),
    };
    let winner = found.winner.as_ref();
    let mut sheets: Vec<Sheet> = winner
        .map(|winner| settings(winner, &document.subject.command))
        .into_iter()
        .collect();
    sheets.extend(Some(tried(found)).filter(|tried| !tried.rows.is_empty()));
    let sheets = Sheets {
        badge: (badge.to_owned(), tone),
        tiles: winner.map(tiles).unwrap_or_default(),
        sheets,
    };
    render_sheets(document, &command, &sheets, text)
}

fn tiles(winner: &Winner) -> Vec<Tile> {
    let tile = |name: &str, figure: &str, note: &str| Tile {
        name: name.to_owned(),
        figure: figure.to_owned(),
        note: note.to_owned(),
    };
    let value = winner
        .smallest_sufficient_value
        .map(|value| value.to_string());
    let value = value.map(|value| tile("Enough", &value, "more gains nothing"));
    let best = tile("Best setting", &winner.name, &winner.summary);
    [best, tile("Price", &winner.price, "")]
        .into_iter()
        .chain(value)
        .collect()
}

fn settings(winner: &Winner, command: &[String]) -> Sheet {
    let rows = exports(&winner.settings).into_iter().map(|export| {
        let is_command =
            export.label == "One command" && !command.iter().any(|word| word.contains('\n'));
        let text = match is_command {
            true => command_line(&winner.settings, command),
            false => export.text,
        };
        vec![Cell::from(export.label), text.into()]
    });
    sheet(
        "settings",
        "The best setting",
        &[("where", Look::Text), ("setting", Look::Command)],
        rows.collect(),
    )
}

/// How much faster: nothing at 0.
fn gain(ratio: &Estimate) -> Estimate {
    Estimate {
        value: ratio.value - 1.0,
        low: ratio.low - 1.0,
        high: ratio.high - 1.0,
    }
}

fn speed(comparison: &Comparison, clock: Clock) -> Cell {
    let text = speed_up(comparison, clock);
    match comparison.pairs >= 3 {
        true => Cell::estimate(text, &gain(clock.speed_up(comparison))),
        false => text.into(),
    }
}

fn judged(verdict: Verdict) -> Cell {
    let tone = match verdict {
        Verdict::Faster => Tone::Good,
        Verdict::Slower | Verdict::TooMuchMemory => Tone::Bad,
        _ => Tone::Neutral,
    };
    Cell::from(word(verdict)).toned(tone)
}

/// The winner's fresh runs, which the verdict quotes; then a row for each setting, the fastest first.
fn tried(found: &Tuning) -> Sheet {
    let time = match found.clock {
        Clock::Wall => "time",
        Clock::Cpu => "CPU time",
    };
    let mut points: Vec<_> = found.time_and_memory.iter().collect();
    points.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
    let rows = points.into_iter().map(|point| {
        let comparison = found
            .comparisons
            .iter()
            .find(|other| other.arm == point.arm);
        vec![
            Cell::from(&*point.arm).with_note(if point.on_front {
                "beaten by no other"
            } else {
                ""
            }),
            Cell::figure(
                Nanos::from_secs_f64(point.seconds).to_string(),
                point.seconds,
            ),
            comparison.map_or_else(Cell::default, |comparison| speed(comparison, found.clock)),
            comparison.map_or_else(Cell::default, |found| {
                percent_change(found.fault_ratio.value).into()
            }),
            Cell::figure(bytes(point.peak_bytes), point.peak_bytes),
            comparison.map_or_else(Cell::default, |found| found.pairs.to_string().into()),
            comparison.map_or_else(Cell::default, |comparison| judged(comparison.verdict)),
        ]
    });
    let confirmed = found.winner.as_ref().map(|winner| {
        let confirmation = &winner.confirmation;
        vec![
            Cell::from(&*winner.name).with_note("confirmed by fresh runs"),
            Cell::default(),
            speed(confirmation, found.clock),
            percent_change(confirmation.fault_ratio.value).into(),
            Cell::default(),
            confirmation.pairs.to_string().into(),
            judged(confirmation.verdict),
        ]
    });
    let failed = found.arms.iter().filter_map(|arm| {
        let why = arm.failed.as_ref()?;
        let none = Cell::default;
        Some(vec![
            Cell::from(&*arm.name),
            none(),
            none(),
            none(),
            none(),
            none(),
            Cell::from("failed").toned(Tone::Bad).with_note(&**why),
        ])
    });
    let columns = [
        ("setting", Look::Text),
        (time, Look::Bar),
        ("speed-up [95 %]", Look::Interval),
        ("faults", Look::Number),
        ("memory", Look::Bar),
        ("pairs", Look::Number),
        ("verdict", Look::Text),
    ];
    let rows = confirmed.into_iter().chain(rows).chain(failed).collect();
    Sheet {
        scatter: (found.time_and_memory.len() > 1)
            .then(|| time_against_memory(&found.time_and_memory, time)),
        ..sheet("tried", "Settings tried", &columns, rows)
    }
}

fn time_against_memory(points: &[Point], time: &str) -> Scatter {
    let spot = |point: &Point| Spot {
        name: point.arm.clone(),
        x: (
            point.seconds,
            Nanos::from_secs_f64(point.seconds).to_string(),
        ),
        y: (point.peak_bytes, bytes(point.peak_bytes)),
        is_best: point.on_front,
    };
    Scatter {
        title: "Time against memory; filled dots are beaten by no other setting".to_owned(),
        across: time.to_owned(),
        up: "peak memory".to_owned(),
        points: points.iter().map(spot).collect(),
    }
}
