//! A finding or a function over days, and the days on which it changed.

use super::complete::answered;
use super::findings::lost;
use super::units::Units;
use crate::answer::Answer;
use crate::data::{Run, Samples};
use crate::engine::{Engine, Scan};
use crate::resamples::Resamples;
use crate::text::{Table, hours, within_cell};
use crate::{Common, Output};
use anyhow::{Result, bail};
use clap::Args;
use pagewise_model::units::Estimate;
use pagewise_report::html::sheets::{Tile, Tone};
use pagewise_stats::hosts::{ENOUGH_DAYS, FALSE_DISCOVERIES, change_points};
use serde::Serialize;
use std::collections::BTreeMap;

/// Options of `history`.
#[derive(Args, Debug)]
pub struct Options {
    #[command(flatten)]
    pub common: Common,

    #[command(flatten)]
    pub output: Output,

    /// The own time of this function
    #[arg(long, value_name = "NAME", conflicts_with = "finding")]
    function: Option<String>,

    /// What this finding takes, such as churn.brk [default: all CPU time]
    #[arg(long, value_name = "ID")]
    finding: Option<String>,
}

#[derive(Debug, Serialize)]
struct History {
    of: String,
    days: Vec<Day>,
    /// Days that start a new level.
    changes: Vec<Level>,
    scans: Vec<Scan>,
}

/// CPU-hours per day and host.
#[derive(Debug, Serialize)]
struct Day {
    day: String,
    hosts: usize,
    cpu_hours: Estimate,
}

#[derive(Debug, Serialize)]
struct Level {
    day: String,
    before: f64,
    after: f64,
}

/// Answers.
pub fn run(options: &Options) -> Result<Answer> {
    let mut engine = Engine::open(&options.common)?;
    let runs = engine.select(options.common.condition.as_deref())?;
    answered(&mut engine, runs, |engine, runs| {
        answer(engine, runs, options)
    })
}

fn answer(engine: &mut Engine, runs: &[Run], options: &Options) -> Result<Answer> {
    let units = Units::by(runs, |run| {
        (!run.day.is_empty()).then(|| format!("{}\u{1f}{}", run.day, run.host))
    });
    let (of, weights) = figure(engine, &units, options)?;
    let rates = units.rates(&weights);
    let mut by_day: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for (key, rate) in units.keys.iter().zip(rates) {
        let day = key.split('\u{1f}').next().unwrap_or(key);
        by_day.entry(day).or_default().push(rate);
    }
    let days: Vec<Day> = by_day
        .into_iter()
        .map(|(day, rates)| Day {
            day: day.to_owned(),
            hosts: rates.len(),
            cpu_hours: Resamples::new(rates.len()).mean(&rates),
        })
        .collect();
    if days.is_empty() {
        bail!(
            "no run says on which day it was: name folders day=2026-11-22, or record with pagewise"
        );
    }
    let series: Vec<f64> = days.iter().map(|day| day.cpu_hours.value).collect();
    let points = change_points(&series, FALSE_DISCOVERIES);
    let mean = |from: usize, to: usize| series[from..to].iter().sum::<f64>() / (to - from) as f64;
    let changes = points.iter().enumerate().map(|(at, &point)| {
        let from = if at == 0 { 0 } else { points[at - 1] };
        let to = points.get(at + 1).copied().unwrap_or(series.len());
        Level {
            day: days[point].day.clone(),
            before: mean(from, point),
            after: mean(point, to),
        }
    });
    let history = History {
        of,
        changes: changes.collect(),
        days,
        scans: engine.scans(),
    };
    let notes = engine.notes().into_iter().chain(units.notes());
    let (badge, tone) = match history.changes.is_empty() {
        true => ("No change found", Tone::Good),
        false => ("Changed", Tone::Bad),
    };
    let tables = history.tables();
    Ok(
        Answer::new("fleet_history", history.verdict(), &history, tables)
            .shown_as(badge, tone, history.tiles())
            .with_notes(notes),
    )
}

/// What is followed, and its weight by unit.
fn figure(engine: &mut Engine, units: &Units, options: &Options) -> Result<(String, Vec<f64>)> {
    if let Some(finding) = &options.finding {
        let mut all = lost(engine, units)?;
        let names: Vec<&str> = all.keys().map(String::as_str).collect();
        let names = names.join(", ");
        return match all.remove(finding) {
            Some(lost) => Ok((lost.title, lost.weights)),
            None => bail!("no run has the finding {finding}; there are: {names}"),
        };
    }
    let samples = Samples::read(engine, units, None)?;
    match &options.function {
        None => Ok(("CPU time".to_owned(), samples.all())),
        Some(name) => match samples.named(name) {
            Some(at) => Ok((name.clone(), samples.own(at))),
            None => bail!("no sample has the function {name}"),
        },
    }
}

fn times(number: usize) -> String {
    match number {
        1 => "once".to_owned(),
        _ => format!("{number} times"),
    }
}

impl History {
    fn verdict(&self) -> String {
        let of = &self.of;
        match self.changes.last() {
            None if self.days.len() < ENOUGH_DAYS => format!(
                "{of} of {} days: too few to tell a change from how days differ anyway ({ENOUGH_DAYS} \
                 can). pagewise fleet diff compares two of them.",
                self.days.len()
            ),
            None => format!(
                "{of} did not change beyond chance in {} days.",
                self.days.len()
            ),
            Some(last) => format!(
                "{of} changed {} in {} days; last on {}, from {} to {} of CPU time per day and host.",
                times(self.changes.len()),
                self.days.len(),
                last.day,
                hours(last.before),
                hours(last.after)
            ),
        }
    }

    fn tiles(&self) -> Vec<Tile> {
        let ends = [self.days.first(), self.days.last()].into_iter().flatten();
        let tiles = ends.map(|day| Tile {
            name: day.day.clone(),
            figure: hours(day.cpu_hours.value),
            note: "per day and host".to_owned(),
        });
        tiles.collect()
    }

    fn tables(&self) -> Vec<Table> {
        let rows = self.days.iter().map(|day| {
            let starts = self.changes.iter().any(|level| level.day == day.day);
            vec![
                day.day.as_str().into(),
                day.hosts.to_string().into(),
                within_cell(&day.cpu_hours),
                if starts { "new level" } else { "" }.into(),
            ]
        });
        let heads = ["day", "hosts", "CPU time per day and host", "change"];
        vec![Table::new("Days", &heads, rows.collect())]
    }
}
