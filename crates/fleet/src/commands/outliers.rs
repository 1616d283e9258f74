//! Hosts that differ from their like: from the hosts of their role, kernel and CPU. Which those are,
//! `pagewise_stats::hosts` says; among hosts, at most 5 % of the discoveries are expected to be false.

use super::complete::answered;
use super::findings::lost;
use super::hosts::Hosts;
use super::settings::{Settings, Shared};
use super::units::Units;
use crate::answer::Answer;
use crate::data::{Run, Samples};
use crate::engine::{Engine, Scan};
use crate::text::{Table, bytes, chance, hours, percent, would_be_found};
use crate::{Common, Output};
use anyhow::Result;
use clap::Args;
use pagewise_report::html::sheets::{Cell, Tile, Tone};
use pagewise_stats::hosts::{
    Alike, FALSE_DISCOVERIES, Figure, Judgement, LEAST_HOSTS, Power, discoveries, judge, quantile,
};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// Options of `outliers`.
#[derive(Args, Debug)]
pub struct Options {
    #[command(flatten)]
    pub common: Common,

    #[command(flatten)]
    pub output: Output,

    /// Hosts that are alike have equal values of these columns of `runs` (comma-separated)
    #[arg(long, value_name = "COLUMN", value_delimiter = ',', default_values_t = ["role", "kernel", "cpu"].map(str::to_owned))]
    like: Vec<String>,

    /// Most hosts to show
    #[arg(long, value_name = "N", default_value_t = 20)]
    rows: usize,
}

#[derive(Debug, Serialize)]
struct Outliers {
    hosts: usize,
    groups: usize,
    /// Hosts to which too few are alike.
    not_compared: usize,
    /// What a host would have to differ in to be found; absent in large fleets.
    would_be_found: Option<Power>,
    /// Figures by which each host is compared.
    figures: usize,
    outliers: Vec<Outlier>,
    /// What the outliers have in common, against all other hosts.
    figures_that_differ: Vec<Difference>,
    settings: Vec<Shared>,
    findings: Vec<Shared>,
    scans: Vec<Scan>,
}

#[derive(Debug, Serialize)]
struct Outlier {
    host: String,
    /// Corrected for the number of figures.
    p_value: f64,
    /// The figure that differs most.
    figure: String,
    here: f64,
    median_of_like: f64,
}

#[derive(Debug, Serialize)]
struct Difference {
    figure: String,
    outliers: usize,
    median_of_outliers: f64,
    median_of_others: f64,
}

/// Names of figures that are no shares.
const CPU_TIME: &str = "CPU time per day";
const PEAK: &str = "peak memory";
/// A function is compared if it takes this share of some host's CPU time.
const LEAST_SHARE: f64 = 0.01;
/// A fifth of a percent of the CPU time: ratios of less are noise of sampling.
const SMALL_SHARE: f64 = 0.002;
/// Most functions that are compared.
const MOST_FUNCTIONS: usize = 300;

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
    let alike = alike(&units, &options.like)?;
    let samples = Samples::read(engine, &units, None)?;
    let figures = figures(&samples, &units);
    let counts = samples.counts();
    let judged = judge(&figures, &alike, &counts);
    let tested: Vec<usize> = (0..units.len())
        .filter(|&host| judged[host].p_value.is_finite())
        .collect();
    let found = discoveries(
        &tested
            .iter()
            .map(|&host| judged[host].p_value)
            .collect::<Vec<_>>(),
        FALSE_DISCOVERIES,
    );
    let found = tested
        .iter()
        .zip(found)
        .filter(|pair| pair.1)
        .map(|pair| *pair.0);
    let mut found: Vec<usize> = found.collect();
    found.sort_by(|&a, &b| {
        let by_p = judged[a].p_value.total_cmp(&judged[b].p_value);
        by_p.then(a.cmp(&b))
    });
    let set: BTreeSet<u32> = found.iter().map(|&host| host as u32).collect();
    let outliers = found.iter().map(|&host| {
        let Judgement {
            p_value,
            figure,
            median,
        } = judged[host];
        Outlier {
            host: units.keys[host].clone(),
            p_value,
            figure: figures[figure].name.clone(),
            here: figures[figure].values[host],
            median_of_like: median,
        }
    });
    let outliers: Vec<Outlier> = outliers.collect();
    let (settings, findings) = match set.is_empty() {
        true => (Vec::new(), Vec::new()),
        false => (
            Settings::read(engine, &units)?.shared_by(&set, units.len()),
            Settings::of_findings(engine, &units)?.shared_by(&set, units.len()),
        ),
    };
    let answer = Outliers {
        hosts: units.len(),
        groups: alike.groups.len(),
        not_compared: units.len() - tested.len(),
        would_be_found: Power::new(&figures, &alike, &counts, FALSE_DISCOVERIES),
        figures: figures.len(),
        figures_that_differ: differences(&figures, &set, &found, &judged),
        outliers,
        settings,
        findings,
        scans: engine.scans(),
    };
    let small = (answer.not_compared > 0).then(|| {
        format!(
            "{} not compared: fewer than {LEAST_HOSTS} hosts are alike in {}, or no other has the same kernel \
             or CPU. --like names other columns.",
            match answer.not_compared {
                1 => "1 host is".to_owned(),
                hosts => format!("{hosts} hosts are"),
            },
            options.like.join(", ")
        )
    });
    let power = answer
        .would_be_found
        .as_ref()
        .filter(|_| !answer.outliers.is_empty());
    let power = power.map(would_be_found);
    let notes = engine
        .notes()
        .into_iter()
        .chain(units.notes())
        .chain(small)
        .chain(power);
    let findings = lost(engine, &units)?;
    let hosts = Hosts {
        units: &units,
        samples: &samples,
        findings: &findings,
    };
    let shown = || found.iter().take(options.rows).copied();
    let names = shown().map(|host| hosts.cell(engine, &options.output, host));
    let tables = answer.tables(names.collect(), options.rows);
    let details = match options.output.page.is_some() {
        true => shown().map(|host| hosts.detail(host)).collect(),
        false => Vec::new(),
    };
    let (badge, tone) = match answer.outliers.is_empty() {
        true => ("No outlier found", Tone::Good),
        false => ("Hosts differ", Tone::Bad),
    };
    Ok(
        Answer::new("fleet_outliers", answer.verdict(), &answer, tables)
            .shown_as(badge, tone, answer.tiles())
            .with_details(details)
            .with_notes(notes),
    )
}

/// Hosts that are alike.
fn alike(units: &Units, like: &[String]) -> Result<Alike> {
    let keys = units.first.iter().map(|run| {
        let of = |column: &String| match column.as_str() {
            "role" => Ok(run.role.clone()),
            "kernel" => Ok(run.kernel.clone()),
            "cpu" => Ok(run.cpu.clone()),
            other => anyhow::bail!("--like takes role, kernel and cpu, not {other}"),
        };
        like.iter().map(of).collect::<Result<Vec<String>>>()
    });
    Ok(Alike::new(&keys.collect::<Result<Vec<_>>>()?))
}

fn figures(samples: &Samples, units: &Units) -> Vec<Figure> {
    let cpu = samples.all();
    let share = |weights: Vec<f64>| -> Vec<f64> {
        let pairs = weights.iter().zip(&cpu);
        pairs
            .map(|(weight, cpu)| weight / cpu.max(f64::MIN_POSITIVE))
            .collect()
    };
    let mut figures = vec![
        Figure {
            name: CPU_TIME.to_owned(),
            values: units.rates(&cpu),
            least: 0.01,
            is_share: false,
        },
        Figure {
            name: "share of the kernel".to_owned(),
            values: share(samples.kernel()),
            least: SMALL_SHARE,
            is_share: true,
        },
    ];
    if units.peak_bytes.iter().any(|&bytes| bytes > 0.0) {
        figures.push(Figure {
            name: PEAK.to_owned(),
            values: units.peak_bytes.clone(),
            least: 1e6,
            is_share: false,
        });
    }
    for function in samples.heaviest(MOST_FUNCTIONS) {
        let values = share(samples.own(function));
        if values.iter().any(|&share| share >= LEAST_SHARE) {
            figures.push(Figure {
                name: format!("share of {}", samples.functions[function].name),
                values,
                least: SMALL_SHARE,
                is_share: true,
            });
        }
    }
    figures
}

/// Figures that differ most on the outliers, by how many of these.
fn differences(
    figures: &[Figure],
    set: &BTreeSet<u32>,
    found: &[usize],
    judged: &[Judgement],
) -> Vec<Difference> {
    let mut counts: BTreeMap<usize, usize> = BTreeMap::new();
    for &host in found {
        *counts.entry(judged[host].figure).or_default() += 1;
    }
    let median = |figure: &Figure, inside: bool| {
        let values = (0_u32..).zip(&figure.values);
        let values = values.filter(|(host, _)| set.contains(host) == inside);
        let mut values: Vec<f64> = values.map(|pair| *pair.1).collect();
        values.sort_by(f64::total_cmp);
        quantile(&values, 0.5)
    };
    let mut differences: Vec<Difference> = counts
        .into_iter()
        .map(|(figure, outliers)| Difference {
            figure: figures[figure].name.clone(),
            outliers,
            median_of_outliers: median(&figures[figure], true),
            median_of_others: median(&figures[figure], false),
        })
        .collect();
    differences.sort_by_key(|difference| std::cmp::Reverse(difference.outliers));
    differences
}

impl Outliers {
    fn verdict(&self) -> String {
        let first = match self.outliers.len() {
            0 => {
                let power = self.would_be_found.as_ref().map(would_be_found);
                return format!(
                    "None of {} hosts differs from its like beyond chance. {}",
                    self.hosts,
                    power.unwrap_or_default()
                )
                .trim_end()
                .to_owned();
            }
            1 => format!("1 of {} hosts differs from its like", self.hosts),
            some => format!("{some} of {} hosts differ from their like", self.hosts),
        };
        match self.settings.first() {
            Some(shared) => format!(
                "{first}. {} of them have {} = {}, which {} of the {} others have.",
                shared.hosts, shared.setting, shared.value, shared.others, shared.of_others
            ),
            None => format!("{first}. No setting goes with it."),
        }
    }

    fn tiles(&self) -> Vec<Tile> {
        let tile = |name: &str, figure: usize, note: String| Tile {
            name: name.to_owned(),
            figure: figure.to_string(),
            note,
        };
        vec![
            tile(
                "Hosts that differ",
                self.outliers.len(),
                format!("of {}", self.hosts),
            ),
            tile("Figures compared", self.figures, "of each host".to_owned()),
            tile(
                "Groups",
                self.groups,
                match self.not_compared {
                    1 => "one host has none".to_owned(),
                    hosts => format!("{hosts} hosts have none"),
                },
            ),
        ]
    }

    fn tables(&self, names: Vec<Cell>, rows: usize) -> Vec<Table> {
        let told = |figure: &str, value: f64| match figure {
            CPU_TIME => hours(value),
            PEAK => bytes(value),
            _ => percent(value),
        };
        let hosts = self.outliers.iter().zip(names).map(|(outlier, name)| {
            vec![
                name,
                (&*outlier.figure).into(),
                told(&outlier.figure, outlier.here).into(),
                told(&outlier.figure, outlier.median_of_like).into(),
                chance(outlier.p_value).into(),
            ]
        });
        let heads = [
            "host",
            "figure that differs most",
            "here",
            "median of its like",
            "chance",
        ];
        let hosts = Table {
            more: self.outliers.len().saturating_sub(rows),
            ..Table::new("", &heads, hosts.collect())
        };
        let shared = |title: &str, what: &str, list: &[Shared]| {
            let rows = list.iter().take(10).map(|shared| {
                let name = match shared.value.as_str() {
                    "" => shared.setting.clone(),
                    value => format!("{} = {value}", shared.setting),
                };
                let of = |some, all| format!("{some} of {all}");
                vec![
                    of(shared.hosts, shared.of_hosts).into(),
                    of(shared.others, shared.of_others).into(),
                    name.into(),
                ]
            });
            Table::new(title, &["of these", "of the others", what], rows.collect())
        };
        vec![
            hosts,
            shared("Settings that go with it", "setting", &self.settings),
            shared("Findings that go with it", "finding", &self.findings),
        ]
    }
}
