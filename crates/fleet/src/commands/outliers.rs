//! Hosts that differ from their like.
//!
//! A host is compared with the hosts of its role, kernel and CPU, figure by figure: the logarithm of
//! each is set against the median and the spread of the group. The spread is the wider of two: that
//! of the middle half, and that of the middle nine tenths, so that a group with long tails does not
//! pass for one of outliers; a small group knows its spread less well, which its tails take into
//! account. A host's p-value is its smallest, corrected for the number of figures
//! (Bonferroni); among hosts, at most 5 % of the discoveries are expected to be false.

use super::settings::{Settings, Shared};
use super::units::Units;
use crate::Common;
use crate::answer::Answer;
use crate::data::Samples;
use crate::engine::{Engine, Scan};
use crate::statistics::{FALSE_DISCOVERIES, discoveries, quantile, student_tail};
use crate::text::{number, percent, table};
use anyhow::Result;
use clap::Args;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// Options of `outliers`.
#[derive(Args, Debug)]
pub struct Options {
    #[command(flatten)]
    pub common: Common,

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
    /// Hosts in groups that are too small.
    not_compared: usize,
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

/// A figure of every host.
struct Figure {
    name: String,
    values: Vec<f64>,
    /// Added before the logarithm is taken: below it, ratios mean little.
    least: f64,
}

/// Fewest hosts that are a group.
const LEAST_HOSTS: usize = 8;
/// A function is compared if it takes this share of some host's CPU time.
const LEAST_SHARE: f64 = 0.01;
/// A fifth of a percent of the CPU time: ratios of less are noise of sampling.
const SMALL_SHARE: f64 = 0.002;
/// Hosts of a group differ by this much (in logarithms) even where they look equal.
const LEAST_SPREAD: f64 = 0.05;
/// Most functions that are compared.
const MOST_FUNCTIONS: usize = 300;

/// Answers.
pub fn run(options: &Options) -> Result<Answer> {
    let mut engine = Engine::open(&options.common)?;
    let runs = engine.select(options.common.condition.as_deref())?;
    let units = Units::hosts(&runs);
    let groups = groups(&units, &options.like)?;
    let samples = Samples::read(&mut engine, &units, None)?;
    let figures = figures(&samples, &units);
    let compared = groups
        .iter()
        .filter(|group| group.len() >= LEAST_HOSTS)
        .count();
    let (p_values, strongest) = judge(&figures, &groups, units.len());
    let tested: Vec<usize> = (0..units.len())
        .filter(|&host| p_values[host].is_finite())
        .collect();
    let found = discoveries(
        &tested
            .iter()
            .map(|&host| p_values[host])
            .collect::<Vec<_>>(),
        FALSE_DISCOVERIES,
    );
    let found = tested
        .iter()
        .zip(found)
        .filter(|pair| pair.1)
        .map(|pair| *pair.0);
    let mut found: Vec<usize> = found.collect();
    found.sort_by(|&a, &b| p_values[a].total_cmp(&p_values[b]).then(a.cmp(&b)));
    let set: BTreeSet<u32> = found.iter().map(|&host| host as u32).collect();
    let outliers = found.iter().map(|&host| {
        let strongest = &strongest[host];
        Outlier {
            host: units.keys[host].clone(),
            p_value: p_values[host],
            figure: figures[strongest.figure].name.clone(),
            here: figures[strongest.figure].values[host],
            median_of_like: strongest.median,
        }
    });
    let outliers: Vec<Outlier> = outliers.collect();
    let (settings, findings) = match set.is_empty() {
        true => (Vec::new(), Vec::new()),
        false => (
            Settings::read(&mut engine, &units)?.shared_by(&set, units.len()),
            Settings::of_findings(&mut engine, &units)?.shared_by(&set, units.len()),
        ),
    };
    let answer = Outliers {
        hosts: units.len(),
        groups: compared,
        not_compared: units.len() - tested.len(),
        figures: figures.len(),
        figures_that_differ: differences(&figures, &set, &found, &strongest),
        outliers,
        settings,
        findings,
        scans: engine.scans(),
    };
    let small = (answer.not_compared > 0).then(|| {
        format!(
            "{} hosts are not compared: fewer than {LEAST_HOSTS} hosts are alike in {}. --like names \
             other columns.",
            answer.not_compared,
            options.like.join(", ")
        )
    });
    let notes = engine.notes().into_iter().chain(units.note()).chain(small);
    Ok(Answer::new(
        "fleet_outliers",
        answer.verdict(),
        &answer,
        answer.text(options.rows),
    )
    .with_notes(notes.collect())
    .without(engine.unusable()))
}

/// Hosts that are alike.
fn groups(units: &Units, like: &[String]) -> Result<Vec<Vec<usize>>> {
    let mut groups: BTreeMap<Vec<String>, Vec<usize>> = BTreeMap::new();
    for (host, run) in units.first.iter().enumerate() {
        let of = |column: &String| match column.as_str() {
            "role" => Ok(run.role.clone()),
            "kernel" => Ok(run.kernel.clone()),
            "cpu" => Ok(run.cpu.clone()),
            other => anyhow::bail!("--like takes role, kernel and cpu, not {other}"),
        };
        let key = like.iter().map(of).collect::<Result<Vec<String>>>()?;
        groups.entry(key).or_default().push(host);
    }
    Ok(groups.into_values().collect())
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
            name: "CPU-hours per day".to_owned(),
            values: units.rates(&cpu),
            least: 0.01,
        },
        Figure {
            name: "share of the kernel".to_owned(),
            values: share(samples.kernel()),
            least: SMALL_SHARE,
        },
    ];
    if units.peak_bytes.iter().any(|&bytes| bytes > 0.0) {
        figures.push(Figure {
            name: "peak memory in bytes".to_owned(),
            values: units.peak_bytes.clone(),
            least: 1e6,
        });
    }
    for function in samples.heaviest(MOST_FUNCTIONS) {
        let values = share(samples.own(function));
        if values.iter().any(|&share| share >= LEAST_SHARE) {
            figures.push(Figure {
                name: format!("share of {}", samples.functions[function].name),
                values,
                least: SMALL_SHARE,
            });
        }
    }
    figures
}

/// The figure that differs most on a host.
#[derive(Clone, Copy, Debug, Default)]
struct Strongest {
    figure: usize,
    median: f64,
}

/// The p-value of each host, infinite where it is not compared.
fn judge(figures: &[Figure], groups: &[Vec<usize>], hosts: usize) -> (Vec<f64>, Vec<Strongest>) {
    let mut p_values = vec![f64::INFINITY; hosts];
    let mut strongest = vec![Strongest::default(); hosts];
    for group in groups.iter().filter(|group| group.len() >= LEAST_HOSTS) {
        for (number, figure) in figures.iter().enumerate() {
            let log = |host: &usize| (figure.values[*host] + figure.least).ln();
            let mut sorted: Vec<f64> = group.iter().map(log).collect();
            sorted.sort_by(f64::total_cmp);
            let median = quantile(&sorted, 0.5);
            let spread = spread(&sorted);
            for host in group {
                let p = tail((log(host) - median) / spread, group.len()) * figures.len() as f64;
                if p < p_values[*host] {
                    p_values[*host] = p.min(1.0);
                    strongest[*host] = Strongest {
                        figure: number,
                        median: median.exp() - figure.least,
                    };
                }
            }
        }
    }
    // All figures of a host may be as usual as can be.
    for host in groups
        .iter()
        .filter(|group| group.len() >= LEAST_HOSTS)
        .flatten()
    {
        p_values[*host] = p_values[*host].min(1.0);
    }
    (p_values, strongest)
}

/// How much a spread from quartiles knows, against one from all values of a normal distribution.
const EFFICIENCY: f64 = 0.37;

/// The p-value of a distance from the median in units of the spread, both estimated from a group of
/// this size: Student's distribution with as many degrees of freedom as such a spread is worth. The
/// median's own variance is π/2 times that of a mean.
fn tail(distance: f64, hosts: usize) -> f64 {
    let n = hosts as f64;
    let widened = (1.0 + std::f64::consts::FRAC_PI_2 / n).sqrt();
    student_tail(distance.abs() / widened, EFFICIENCY * (n - 1.0))
}

/// A standard deviation that a few outliers do not widen, of sorted values.
fn spread(sorted: &[f64]) -> f64 {
    // Widths of these ranges of the normal distribution, in standard deviations.
    let half = (quantile(sorted, 0.75) - quantile(sorted, 0.25)) / 1.349;
    let most = (quantile(sorted, 0.95) - quantile(sorted, 0.05)) / 3.290;
    half.max(most).max(LEAST_SPREAD)
}

/// Figures that differ most on the outliers, by how many of these.
fn differences(
    figures: &[Figure],
    set: &BTreeSet<u32>,
    found: &[usize],
    strongest: &[Strongest],
) -> Vec<Difference> {
    let mut counts: BTreeMap<usize, usize> = BTreeMap::new();
    for &host in found {
        *counts.entry(strongest[host].figure).or_default() += 1;
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
                return format!(
                    "None of {} hosts differs from its like beyond chance.",
                    self.hosts
                );
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

    fn text(&self, rows: usize) -> String {
        if self.outliers.is_empty() {
            return String::new();
        }
        let told = |figure: &str, value: f64| match figure.starts_with("share") {
            true => percent(value),
            false => number(value),
        };
        let hosts = self.outliers.iter().take(rows).map(|outlier| {
            vec![
                outlier.host.clone(),
                outlier.figure.clone(),
                told(&outlier.figure, outlier.here),
                told(&outlier.figure, outlier.median_of_like),
                format!("{:.1e}", outlier.p_value),
            ]
        });
        let heads = [
            "host",
            "figure that differs most",
            "here",
            "median of its like",
            "p",
        ];
        let mut out = table(&heads, &hosts.collect::<Vec<_>>());
        if self.outliers.len() > rows {
            out.push_str(&format!(
                "  … and {} more (--rows)\n",
                self.outliers.len() - rows
            ));
        }
        let shared = |title: &str, list: &[Shared], out: &mut String| {
            let rows = list.iter().take(10).map(|shared| {
                let name = match shared.value.as_str() {
                    "" => shared.setting.clone(),
                    value => format!("{} = {value}", shared.setting),
                };
                let of = |some, all| format!("{some} of {all}");
                vec![
                    of(shared.hosts, shared.of_hosts),
                    of(shared.others, shared.of_others),
                    name,
                ]
            });
            let rows: Vec<_> = rows.collect();
            if !rows.is_empty() {
                let table = table(&["of these", "of the others", ""], &rows);
                out.push_str(&format!("\n{title}\n{table}"));
            }
        };
        shared("Settings that go with it", &self.settings, &mut out);
        shared("Findings that go with it", &self.findings, &mut out);
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_apart_is_found_and_a_long_tail_is_not() {
        let hosts = 200;
        let group: Vec<usize> = (0..hosts).collect();
        // A smooth spread, as of a normal distribution.
        let usual = |at: usize| {
            let position = (at as f64 + 0.5) / hosts as f64;
            10.0 * (1.0 + 0.1 * (position - 0.5) * 4.0)
        };
        let mut values: Vec<f64> = (0..hosts).map(usual).collect();
        let figure = |values: Vec<f64>| Figure {
            name: "x".to_owned(),
            values,
            least: 0.01,
        };
        let (p, _) = judge(
            &[figure(values.clone())],
            std::slice::from_ref(&group),
            hosts,
        );
        assert!(
            discoveries(&p, FALSE_DISCOVERIES)
                .iter()
                .all(|&found| !found)
        );
        values[17] = 40.0;
        let (p, strongest) = judge(&[figure(values)], &[group], hosts);
        let found = discoveries(&p, FALSE_DISCOVERIES);
        assert_eq!(
            (found.iter().filter(|&&at| at).count(), found[17]),
            (1, true)
        );
        assert!((strongest[17].median - 10.0).abs() < 0.1);
        // Three hosts are no group.
        let (p, _) = judge(&[figure(vec![1.0, 1.0, 9.0])], &[vec![0, 1, 2]], 3);
        assert!(p.iter().all(|p| p.is_infinite()));
    }
}
