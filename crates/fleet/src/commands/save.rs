//! What the advice would bring if it were followed wherever it was given.

use super::complete::answered;
use super::units::Units;
use crate::answer::{Answer, told};
use crate::data::Run;
use crate::engine::{Engine, Scan};
use crate::resamples::Resamples;
use crate::text::{Table, hours, number, percent, within_cell};
use crate::{Common, Output};
use anyhow::Result;
use clap::Args;
use datafusion::arrow::array::{Array, AsArray, RecordBatch};
use datafusion::arrow::datatypes::{Float64Type, Int64Type};
use pagewise_model::quantity::counted;
use pagewise_model::units::Estimate;
use pagewise_report::html::sheets::{Cell, Tile, Tone};

use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet, HashSet};

/// Options of `save`.
#[derive(Args, Debug)]
pub struct Options {
    #[command(flatten)]
    pub common: Common,

    #[command(flatten)]
    pub output: Output,

    /// Changes to show, those worth most first
    #[arg(long, value_name = "N", default_value_t = 10)]
    rows: usize,
}

#[derive(Debug, Serialize)]
struct Savings {
    hosts: usize,
    /// Hosts for which there is any advice.
    advised_hosts: usize,
    /// CPU-hours per day that all hosts use.
    cpu_hours: f64,
    /// CPU-hours per day that the best advice for each run saves.
    saved_cpu_hours: Estimate,
    changes: Vec<Saving>,
    scans: Vec<Scan>,
}

/// One change, wherever it is advised.
#[derive(Debug, Serialize)]
struct Saving {
    advice: String,
    headline: String,
    risk: String,
    cures: BTreeSet<String>,
    hosts: usize,
    /// Hosts on which interleaved runs proved it.
    proved_on: usize,
    /// CPU-hours per day: the interval covers what other such hosts would have and what a prediction
    /// leaves open.
    saved_cpu_hours: Estimate,
    /// Memory that stays resident because of it, at most.
    price_gib: f64,
    /// Memory that it saved where it was proved.
    saved_gib: f64,
}

/// What a change brings, by unit.
struct Gains {
    headline: String,
    risk: String,
    cures: BTreeSet<String>,
    value: Vec<f64>,
    low: Vec<f64>,
    high: Vec<f64>,
    hosts: BTreeSet<usize>,
    proved: BTreeSet<usize>,
    price: Vec<f64>,
    saved: Vec<f64>,
}

impl Gains {
    fn none(units: usize) -> Self {
        Self {
            headline: String::new(),
            risk: String::new(),
            cures: BTreeSet::new(),
            value: vec![0.0; units],
            low: vec![0.0; units],
            high: vec![0.0; units],
            hosts: BTreeSet::new(),
            proved: BTreeSet::new(),
            price: vec![0.0; units],
            saved: vec![0.0; units],
        }
    }

    fn cpu_hours(&self, units: &Units, resamples: &Resamples) -> Estimate {
        let [value, low, high] =
            [&self.value, &self.low, &self.high].map(|weights| units.rates(weights));
        resamples.sum_within(&value, &low, &high)
    }
}

const SQL: &str = "\
    SELECT run_id, advice, finding, advice_headline, risk, speedup, speedup_low, speedup_high, \
    speedup_from, price_bytes, saved_bytes FROM findings WHERE advice IS NOT NULL AND speedup > 0";

/// Answers.
pub fn run(options: &Options) -> Result<Answer> {
    let mut engine = Engine::open(&options.common)?;
    let runs = engine.select(options.common.condition.as_deref())?;
    answered(&mut engine, runs, |engine, runs| {
        answer(engine, runs, options)
    })
}

fn answer(engine: &mut Engine, runs: &[Run], options: &Options) -> Result<Answer> {
    let units = Units::hosts(runs);
    let resamples = Resamples::new(units.len());
    let mut changes: BTreeMap<String, Gains> = BTreeMap::new();
    // Changes for one run overlap: of all, each run counts its best.
    let mut best: BTreeMap<Vec<u8>, (usize, [f64; 3])> = BTreeMap::new();
    let mut met: HashSet<(Vec<u8>, String)> = HashSet::new();
    for batch in &engine.query(SQL, &[("findings", &units.folders)])? {
        for row in 0..batch.num_rows() {
            let advised = Advised::new(batch, row);
            let Some((unit, cpu)) = units.get(advised.run) else {
                continue;
            };
            let gains = changes
                .entry(advised.advice.to_owned())
                .or_insert_with(|| Gains::none(units.len()));
            gains.cures.insert(advised.finding.to_owned());
            // One change may cure several findings of a run.
            if !met.insert((advised.run.to_vec(), advised.advice.to_owned())) {
                continue;
            }
            let saved = advised
                .speed_up
                .map(|speed_up| cpu * (1.0 - 1.0 / speed_up.max(f64::MIN_POSITIVE)));
            gains.add(unit, &advised, saved);
            let held = best.entry(advised.run.to_vec()).or_insert((unit, saved));
            if saved[0] > held.1[0] {
                *held = (unit, saved);
            }
        }
    }
    let mut together = Gains::none(units.len());
    for (unit, [value, low, high]) in best.into_values() {
        together.hosts.insert(unit);
        together.value[unit] += value.max(0.0);
        together.low[unit] += low.max(0.0);
        together.high[unit] += high.max(0.0);
    }
    let gib = |bytes: &[f64]| bytes.iter().sum::<f64>() / (1_u64 << 30) as f64;
    let mut savings: Vec<Saving> = changes
        .into_iter()
        .map(|(advice, gains)| Saving {
            advice,
            saved_cpu_hours: gains.cpu_hours(&units, &resamples),
            price_gib: gib(&gains.price),
            saved_gib: gib(&gains.saved),
            hosts: gains.hosts.len(),
            proved_on: gains.proved.len(),
            headline: gains.headline,
            risk: gains.risk,
            cures: gains.cures,
        })
        .collect();
    savings.sort_by(|a, b| b.saved_cpu_hours.value.total_cmp(&a.saved_cpu_hours.value));
    let all = Savings {
        hosts: units.len(),
        advised_hosts: together.hosts.len(),
        cpu_hours: units.rates(&units.cpu_ns).iter().sum(),
        saved_cpu_hours: together.cpu_hours(&units, &resamples),
        changes: savings,
        scans: engine.scans(),
    };
    let predicted = all.changes.iter().any(|saving| saving.proved_on < saving.hosts).then(|| {
        "A prediction is an interval, not a promise: pagewise doctor --prove measures it on one host \
         before a change goes to all."
            .to_owned()
    });
    let notes = engine
        .notes()
        .into_iter()
        .chain(units.notes())
        .chain(predicted);
    let tables = all.tables(options.rows);
    let (badge, tone) = match all.changes.is_empty() {
        true => ("No advice", Tone::Neutral),
        false => ("Time to save", Tone::Bad),
    };
    let tiles = [
        ("Used per day", hours(all.cpu_hours)),
        ("Saved per day", hours(all.saved_cpu_hours.value)),
    ];
    let tiles = tiles.map(|(name, figure)| Tile {
        name: name.to_owned(),
        figure,
        note: "CPU time".to_owned(),
    });
    Ok(
        Answer::new("fleet_save", all.verdict(units.if_all_day()), &all, tables)
            .shown_as(badge, tone, tiles.to_vec())
            .with_notes(notes),
    )
}

/// A row of findings with advice.
struct Advised<'a> {
    run: &'a [u8],
    advice: &'a str,
    finding: &'a str,
    headline: &'a str,
    risk: &'a str,
    /// Value, lower and upper end.
    speed_up: [f64; 3],
    is_proved: bool,
    price: f64,
    saved: f64,
}

impl<'a> Advised<'a> {
    fn new(batch: &'a RecordBatch, row: usize) -> Self {
        let text = |column: usize| {
            let column = batch.column(column).as_string_view();
            if column.is_valid(row) {
                column.value(row)
            } else {
                ""
            }
        };
        let price = batch.column(9).as_primitive::<Int64Type>();
        let real = |column: usize| {
            let column = batch.column(column).as_primitive::<Float64Type>();
            column.is_valid(row).then(|| column.value(row))
        };
        let value = real(5).unwrap_or(1.0);
        Self {
            run: batch.column(0).as_binary_view().value(row),
            advice: text(1),
            finding: text(2),
            headline: text(3),
            risk: text(4),
            speed_up: [value, real(6).unwrap_or(value), real(7).unwrap_or(value)],
            is_proved: text(8) == "proved",
            price: if price.is_valid(row) {
                price.value(row) as f64
            } else {
                0.0
            },
            saved: real(10).unwrap_or(0.0),
        }
    }
}

impl Gains {
    fn add(&mut self, unit: usize, advised: &Advised<'_>, saved: [f64; 3]) {
        if self.headline.is_empty() {
            self.headline = advised.headline.to_owned();
            self.risk = advised.risk.to_owned();
        }
        self.hosts.insert(unit);
        if advised.is_proved {
            self.proved.insert(unit);
        }
        self.value[unit] += saved[0];
        self.low[unit] += saved[1];
        self.high[unit] += saved[2];
        // Runs of one host are not there at the same time.
        self.price[unit] = self.price[unit].max(advised.price);
        self.saved[unit] = self.saved[unit].max(advised.saved);
    }
}

impl Savings {
    fn verdict(&self, if_all_day: &str) -> String {
        let Some(first) = self.changes.first() else {
            return format!("There is no advice for any of {} hosts.", self.hosts);
        };
        format!(
            "Following the best advice for each run on {} of {} hosts saves {} of {} CPU-hours per \
             day{if_all_day} ({}). The change worth most is this: {}. {} on {}.",
            self.advised_hosts,
            self.hosts,
            told(&self.saved_cpu_hours),
            number(self.cpu_hours),
            percent(self.saved_cpu_hours.value / self.cpu_hours.max(f64::MIN_POSITIVE)),
            first.headline.trim_end_matches('.'),
            told(&first.saved_cpu_hours),
            counted(first.hosts as u64, "host")
        )
    }

    fn tables(&self, rows: usize) -> Vec<Table> {
        let shown = self.changes.iter().take(rows).map(|saving| {
            let gib = (saving.price_gib >= 0.005).then(|| format!("{:.2} GiB", saving.price_gib));
            vec![
                within_cell(&saving.saved_cpu_hours),
                saving.hosts.to_string().into(),
                saving.proved_on.to_string().into(),
                gib.unwrap_or_else(|| "0".to_owned()).into(),
                (&*saving.risk).into(),
                Cell::from(&*saving.headline).with_note(&*saving.advice),
            ]
        });
        let heads = [
            "CPU time per day",
            "hosts",
            "proved on",
            "costs memory",
            "risk",
            "change",
        ];
        vec![Table {
            more: self.changes.len().saturating_sub(rows),
            ..Table::new("Changes", &heads, shown.collect())
        }]
    }
}
