//! The result as JSON: `docs/schema/tune.json`.

use super::search::Found;
use pagewise_analyse::compare::{Clock, sentence};
use pagewise_analyse::tune::Point;
use pagewise_model::advice::Settings;
use pagewise_model::proof::{Arm, Comparison};
use pagewise_model::units::Bytes;
use pagewise_report::settings_export::exports;
use serde::Serialize;
use std::collections::BTreeMap;
use std::ffi::OsString;

/// Version of the schema.
const TUNE_VERSION: u32 = 1;

#[derive(Serialize)]
pub struct Document<'a> {
    schema_version: u32,
    command: Vec<String>,
    winner: Option<WinnerDocument<'a>>,
    /// The best setting did no better than a placebo.
    luck: bool,
    comparisons: &'a [Comparison],
    /// `elapsed` or `cpu`: what the seconds of `time_and_memory` are.
    clock: &'static str,
    time_and_memory: &'a [Point],
    arms: &'a [Arm],
    notes: &'a [String],
}

#[derive(Serialize)]
struct WinnerDocument<'a> {
    name: &'a str,
    settings: &'a Settings,
    summary: String,
    won_at_value: Option<Bytes>,
    smallest_sufficient_value: Option<Bytes>,
    confirmation: &'a Comparison,
    price: &'a str,
    exports: BTreeMap<&'static str, String>,
}

pub fn document<'a>(command: &[OsString], found: &'a Found) -> Document<'a> {
    let winner = found.winner.as_ref().map(|winner| WinnerDocument {
        name: &winner.name,
        settings: &winner.settings,
        summary: sentence(&winner.confirmation),
        won_at_value: winner.value.map(|(won, _)| won),
        smallest_sufficient_value: winner.value.map(|(_, smallest)| smallest),
        confirmation: &winner.confirmation,
        price: &winner.price,
        exports: exports(&winner.settings)
            .into_iter()
            .map(|e| (e.label, e.text))
            .collect(),
    });
    Document {
        schema_version: TUNE_VERSION,
        command: command
            .iter()
            .map(|word| word.to_string_lossy().into_owned())
            .collect(),
        winner,
        luck: found.luck,
        comparisons: &found.comparisons,
        clock: match found.clock {
            Clock::Wall => "elapsed",
            Clock::Cpu => "cpu",
        },
        time_and_memory: &found.points,
        arms: &found.arms,
        notes: &found.notes,
    }
}
