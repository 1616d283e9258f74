//! What costs the fleet most.

use super::complete::answered;
use super::findings::{Lost, lost};
use super::hosts::Hosts;
use super::settings::Settings;
use super::units::Units;
use crate::answer::{Answer, Flame, told};
use crate::data::{Run, Samples};
use crate::engine::{Engine, Scan};
use crate::flame;
use crate::resamples::Resamples;
use crate::text::{Table, chance, hours, hours_cell, innermost, percent, within_cell};
use crate::{Common, Output};
use anyhow::Result;
use clap::Args;
use pagewise_model::quantity::counted;
use pagewise_model::units::Estimate;
use pagewise_report::html::sheets::{Cell, Tile, Tone};
use pagewise_stats::hosts::{FALSE_DISCOVERIES, discoveries, moments, unpaired};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Options of `top`.
#[derive(Args, Debug)]
pub struct Options {
    #[command(flatten)]
    pub common: Common,

    #[command(flatten)]
    pub output: Output,

    /// Rows of each kind
    #[arg(long, value_name = "N", default_value_t = 10)]
    rows: usize,

    /// Also write a flame graph of the fleet
    #[arg(long, value_name = "FILE.svg")]
    flame: Option<PathBuf>,

    /// Weigh samples of this event [default: CPU time]
    #[arg(long, value_name = "EVENT")]
    event: Option<String>,
}

#[derive(Debug, Serialize)]
struct Top {
    hosts: usize,
    /// CPU-hours per day.
    cpu_hours: Estimate,
    kernel_cpu_hours: Estimate,
    /// Sum over hosts of the most memory that a run held.
    peak_gib: Estimate,
    causes: Vec<Cause>,
    functions: Vec<FunctionCost>,
    paths: Vec<PathCost>,
    settings: Vec<SettingCost>,
    scans: Vec<Scan>,
}

#[derive(Debug, Serialize)]
struct Cause {
    finding: String,
    title: String,
    hosts: usize,
    cpu_hours: Estimate,
    share_of_cpu: f64,
}

#[derive(Debug, Serialize)]
struct FunctionCost {
    function: String,
    module: String,
    hosts: usize,
    own_cpu_hours: Estimate,
    total_cpu_hours: f64,
}

#[derive(Debug, Serialize)]
struct PathCost {
    stack: Vec<String>,
    hosts: usize,
    cpu_hours: Estimate,
}

/// A value of a setting whose hosts use more CPU time than the others.
#[derive(Debug, Serialize)]
struct SettingCost {
    setting: String,
    value: String,
    hosts: usize,
    cpu_hours_a_host: f64,
    cpu_hours_of_others: f64,
    p_value: f64,
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
    let units = Units::hosts(runs);
    let resamples = Resamples::new(units.len());
    let samples = Samples::read(engine, &units, options.event.as_deref())?;
    let hosts = |weights: &[f64]| weights.iter().filter(|&&weight| weight > 0.0).count();
    let rate = |weights: &[f64]| resamples.sum(&units.rates(weights));
    // Samples know the CPU time of what was sampled; where there are none, the runs' own count.
    let sampled = samples.all();
    let cpu: Vec<f64> = match sampled.iter().sum::<f64>() > 0.0 {
        true => sampled,
        false => units.cpu_ns.clone(),
    };
    let cpu_hours = rate(&cpu);
    let findings = lost(engine, &units)?;
    let causes = causes(&findings, &units, &resamples, options.rows, cpu_hours.value);
    let functions = samples.heaviest(options.rows).into_iter().map(|at| {
        let own = samples.own(at);
        FunctionCost {
            function: samples.functions[at].name.clone(),
            module: samples.functions[at].module.clone(),
            hosts: hosts(&own),
            own_cpu_hours: rate(&own),
            total_cpu_hours: units.rates(&samples.with_callees(at)).iter().sum(),
        }
    });
    let functions = functions.collect();
    let paths = samples
        .paths(options.rows)
        .into_iter()
        .map(|(stack, weights)| PathCost {
            stack: stack.into_iter().map(str::to_owned).collect(),
            hosts: hosts(&weights),
            cpu_hours: rate(&weights),
        });
    let paths = paths.collect();
    let settings = costly(
        &Settings::read(engine, &units)?,
        &units.rates(&cpu),
        options.rows,
    );
    let picture = match options.flame.is_some() || options.output.page.is_some() {
        true => {
            let scales = units.scales(0..units.len());
            Some(Flame::Of(
                format!("{} hosts", units.len()),
                Box::new(samples.profile(&scales)),
            ))
        }
        false => None,
    };
    if let (Some(path), Some(picture)) = (&options.flame, &picture) {
        flame::write(path, picture)?;
    }
    let gib: Vec<f64> = units
        .peak_bytes
        .iter()
        .map(|bytes| bytes / (1_u64 << 30) as f64)
        .collect();
    let top = Top {
        hosts: units.len(),
        cpu_hours,
        kernel_cpu_hours: rate(&samples.kernel()),
        peak_gib: resamples.sum(&gib),
        causes,
        functions,
        paths,
        settings,
        scans: engine.scans(),
    };
    let unnamed = (samples.unnamed > 0.0).then(|| {
        let share = samples.unnamed / (samples.unnamed + cpu.iter().sum::<f64>());
        format!(
            "{} of the samples are left out: no readable file has their frames.",
            percent(share)
        )
    });
    let notes = engine
        .notes()
        .into_iter()
        .chain(units.notes())
        .chain(unnamed);
    let hosts = Hosts {
        units: &units,
        samples: &samples,
        findings: &findings,
    };
    let busiest = busiest(&units.rates(&cpu), options.rows);
    let names = busiest.iter().map(|&(host, rate)| {
        vec![
            hosts.cell(engine, &options.output, host),
            hours_cell(rate),
            units.first[host].kernel.as_str().into(),
        ]
    });
    let mut busy = Table::new(
        "Hosts that use most",
        &["host", "CPU time per day", "kernel"],
        names.collect(),
    );
    busy.more = units.len() - busiest.len();
    let mut tables = top.tables();
    tables.push(busy);
    let details = match options.output.page.is_some() {
        true => busiest
            .iter()
            .map(|&(host, _)| hosts.detail(host))
            .collect(),
        false => Vec::new(),
    };
    Ok(
        Answer::new("fleet_top", top.verdict(units.if_all_day()), &top, tables)
            .shown_as("Fleet", Tone::Neutral, top.tiles())
            .with_details(details)
            .with_flame(picture)
            .with_notes(notes),
    )
}

/// The hosts that use most, with what they use.
fn busiest(rates: &[f64], most: usize) -> Vec<(usize, f64)> {
    let mut hosts: Vec<(usize, f64)> = rates.iter().copied().enumerate().collect();
    hosts.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    hosts.truncate(most);
    hosts
}

fn causes(
    lost: &BTreeMap<String, Lost>,
    units: &Units,
    resamples: &Resamples,
    rows: usize,
    whole: f64,
) -> Vec<Cause> {
    let mut causes: Vec<Cause> = lost
        .iter()
        .map(|(finding, lost)| {
            let cpu_hours = resamples.sum(&units.rates(&lost.weights));
            Cause {
                finding: finding.clone(),
                title: lost.title.clone(),
                hosts: lost.weights.iter().filter(|&&weight| weight > 0.0).count(),
                share_of_cpu: cpu_hours.value / whole.max(f64::MIN_POSITIVE),
                cpu_hours,
            }
        })
        .collect();
    causes.sort_by(|a, b| b.cpu_hours.value.total_cmp(&a.cpu_hours.value));
    causes.truncate(rows);
    causes
}

/// Fewest hosts on either side of a comparison.
const LEAST_HOSTS: usize = 3;

fn costly(settings: &Settings, rates: &[f64], rows: usize) -> Vec<SettingCost> {
    let mut tested = Vec::new();
    for (setting, value, units) in settings.iter() {
        let (with, without): (Vec<_>, Vec<_>) =
            (0..).zip(rates).partition(|(unit, _)| units.contains(unit));
        let rates =
            |part: Vec<(u32, &f64)>| part.into_iter().map(|pair| *pair.1).collect::<Vec<_>>();
        let (with, without) = (rates(with), rates(without));
        if with.len() < LEAST_HOSTS || without.len() < LEAST_HOSTS {
            continue;
        }
        tested.push(SettingCost {
            setting: setting.to_owned(),
            value: value.to_owned(),
            hosts: with.len(),
            cpu_hours_a_host: moments(&with).0,
            cpu_hours_of_others: moments(&without).0,
            p_value: unpaired(&with, &without),
        });
    }
    let p: Vec<f64> = tested.iter().map(|cost| cost.p_value).collect();
    let found = discoveries(&p, FALSE_DISCOVERIES);
    let found = tested
        .into_iter()
        .zip(found)
        .filter(|pair| pair.1)
        .map(|pair| pair.0);
    let mut found: Vec<SettingCost> = found
        .filter(|cost| cost.cpu_hours_a_host > cost.cpu_hours_of_others)
        .collect();
    found.sort_by(|a, b| a.p_value.total_cmp(&b.p_value));
    found.truncate(rows);
    found
}

impl Top {
    fn verdict(&self, if_all_day: &str) -> String {
        let busy = format!(
            "{} {} CPU-hours per day{if_all_day}, {} of them in the kernel.",
            match self.hosts {
                1 => "1 host uses".to_owned(),
                hosts => format!("{hosts} hosts use"),
            },
            told(&self.cpu_hours),
            percent(self.kernel_cpu_hours.value / self.cpu_hours.value.max(f64::MIN_POSITIVE))
        );
        match (self.causes.first(), self.functions.first()) {
            (Some(cause), _) => format!(
                "{busy} Most is lost to this: {}. {} CPU-hours per day on {}.",
                cause.title.trim_end_matches('.'),
                told(&cause.cpu_hours),
                counted(cause.hosts as u64, "host")
            ),
            (None, Some(first)) => format!(
                "{busy} No finding says what is lost. The function that takes most is {}: {}.",
                first.function,
                told(&first.own_cpu_hours)
            ),
            (None, None) => busy,
        }
    }

    fn tiles(&self) -> Vec<Tile> {
        let tile = |name: &str, found: &Estimate| Tile {
            name: name.to_owned(),
            figure: hours(found.value),
            note: format!("{} to {}", hours(found.low), hours(found.high)),
        };
        let memory = Tile {
            name: "Peak memory, all hosts".to_owned(),
            figure: format!("{:.1} GiB", self.peak_gib.value),
            note: String::new(),
        };
        let times = [
            tile("CPU time per day", &self.cpu_hours),
            tile("In the kernel", &self.kernel_cpu_hours),
        ];
        times
            .into_iter()
            .chain((self.peak_gib.value > 0.0).then_some(memory))
            .collect()
    }

    fn tables(&self) -> Vec<Table> {
        const CPU_TIME: &str = "CPU time per day";
        let causes = self.causes.iter().map(|cause| {
            vec![
                within_cell(&cause.cpu_hours),
                percent(cause.share_of_cpu).into(),
                cause.hosts.to_string().into(),
                Cell::from(&*cause.title).with_note(&*cause.finding),
            ]
        });
        let causes = Table::new(
            "Causes",
            &[CPU_TIME, "of all", "hosts", "finding"],
            causes.collect(),
        );
        let functions = self.functions.iter().map(|cost| {
            vec![
                within_cell(&cost.own_cpu_hours),
                hours(cost.total_cpu_hours).into(),
                cost.hosts.to_string().into(),
                (&*cost.function).into(),
                (&*cost.module).into(),
            ]
        });
        let heads = [CPU_TIME, "with callees", "hosts", "function", "module"];
        let functions = Table::new("Functions", &heads, functions.collect());
        let paths = self.paths.iter().map(|cost| {
            vec![
                within_cell(&cost.cpu_hours),
                cost.hosts.to_string().into(),
                innermost(&cost.stack).into(),
            ]
        });
        let paths = Table::new("Stacks", &[CPU_TIME, "hosts", "stack"], paths.collect());
        let settings = self.settings.iter().map(|cost| {
            vec![
                hours(cost.cpu_hours_a_host).into(),
                hours(cost.cpu_hours_of_others).into(),
                cost.hosts.to_string().into(),
                chance(cost.p_value).into(),
                format!("{} = {}", cost.setting, cost.value).into(),
            ]
        });
        let heads = [
            "CPU time per day and host",
            "of the others",
            "hosts",
            "chance",
            "setting",
        ];
        let settings = Table::new("Settings whose hosts use more", &heads, settings.collect());
        vec![causes, functions, paths, settings]
    }
}
