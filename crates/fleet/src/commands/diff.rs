//! What differs between two sets of hosts or days.
//!
//! The unit is the host. Where the same hosts are on both sides, each is compared with itself; where
//! they are others, two groups are compared. Of all figures that are claimed to differ, at most 5 %
//! are expected to do so by chance.

use super::complete::answered;
use super::findings::lost;
use super::settings::{Settings, Shared};
use super::units::Units;
use crate::answer::{Answer, Flame};
use crate::data::{Identifier, Run, Samples};
use crate::engine::{Engine, Scan};
use crate::flame;
use crate::resamples::Resamples;
use crate::text::{Table, chance, hours, hours_within, innermost, percent, within_cell};
use crate::{Common, Output};
use anyhow::{Result, bail};
use clap::Args;
use pagewise_model::units::Estimate;
use pagewise_report::html::sheets::{Cell, Tile, Tone};
use pagewise_stats::hosts::{FALSE_DISCOVERIES, discoveries, moments, paired, unpaired};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// Options of `diff`.
#[derive(Args, Debug)]
pub struct Options {
    #[command(flatten)]
    pub common: Common,

    #[command(flatten)]
    pub output: Output,

    /// The first set of runs: key=value, such as day=2026-11-21, or an SQL condition on `runs`
    #[arg(long, value_name = "CONDITION")]
    before: String,

    /// The second set
    #[arg(long, value_name = "CONDITION")]
    after: String,

    /// Also write a flame graph of what grew (red) and shrank (blue)
    #[arg(long, value_name = "FILE.svg")]
    flame: Option<PathBuf>,

    /// Rows of each kind
    #[arg(long, value_name = "N", default_value_t = 15)]
    rows: usize,
}

#[derive(Debug, Serialize)]
struct Diff {
    hosts_before: usize,
    hosts_after: usize,
    /// Hosts that are on both sides and compared with themselves; 0 where two groups are compared.
    paired_hosts: usize,
    /// CPU-hours per day and host.
    cpu_before: f64,
    cpu_after: f64,
    cpu_change: Change,
    /// What differs beyond chance, the largest change first.
    functions: Vec<Change>,
    findings: Vec<Change>,
    /// The stacks behind it.
    stacks: Vec<StackChange>,
    /// Values of settings that the hosts of the second set have more often.
    settings: Vec<Shared>,
    figures_tested: usize,
    scans: Vec<Scan>,
}

/// A figure in CPU-hours per day and host.
#[derive(Clone, Debug, Serialize)]
struct Change {
    name: String,
    /// What it says, if it is a finding.
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    before: f64,
    after: f64,
    change: Estimate,
    p_value: f64,
    differs: bool,
}

#[derive(Debug, Serialize)]
struct StackChange {
    stack: Vec<String>,
    before: f64,
    after: f64,
}

/// Functions that take less than this share of the CPU time on both sides are not tested.
const LEAST_SHARE: f64 = 0.001;
/// Most functions that are tested.
const MOST_FUNCTIONS: usize = 500;

/// Units of both sides: those before come first.
struct Sides {
    units: Units,
    before: Vec<usize>,
    after: Vec<usize>,
    /// Units of the same host.
    pairs: Vec<(usize, usize)>,
    /// Of the pairs, or of each side.
    resamples: [Resamples; 2],
}

/// Answers.
pub fn run(options: &Options) -> Result<Answer> {
    let mut engine = Engine::open(&options.common)?;
    let allowed = engine.select(options.common.condition.as_deref())?;
    let allowed: BTreeSet<_> = allowed.iter().map(|run| run.id).collect();
    let mut side = |condition: &str| -> Result<Vec<Run>> {
        let mut runs = engine.select(Some(condition))?;
        runs.retain(|run| allowed.contains(&run.id));
        match runs.is_empty() {
            true => bail!("no run meets both {condition} and --where"),
            false => Ok(runs),
        }
    };
    let (before, after) = (side(&options.before)?, side(&options.after)?);
    let first: BTreeSet<Identifier> = before.iter().map(|run| run.id).collect();
    if after.iter().any(|run| first.contains(&run.id)) {
        bail!("--before and --after have runs in common: each run can be on one side only");
    }
    let runs = before.into_iter().chain(after).collect();
    answered(&mut engine, runs, |engine, runs| {
        answer(engine, runs, &first, options)
    })
}

fn answer(
    engine: &mut Engine,
    runs: &[Run],
    first: &BTreeSet<Identifier>,
    options: &Options,
) -> Result<Answer> {
    let sides = Sides::new(runs, first)?;
    let samples = Samples::read(engine, &sides.units, None)?;
    let cpu = sides.compare("CPU time", &samples.all());
    let least = cpu.before.max(cpu.after) * LEAST_SHARE;
    let functions = samples.heaviest(MOST_FUNCTIONS).into_iter().map(|at| {
        let change = sides.compare(&samples.functions[at].name, &samples.own(at));
        (at, change)
    });
    let functions = functions.filter(|(_, change)| change.before.max(change.after) >= least);
    let functions: Vec<Change> = functions.map(|pair| pair.1).collect();
    let findings = lost(engine, &sides.units)?;
    let findings = findings.iter().map(|(name, lost)| Change {
        title: Some(lost.title.clone()),
        ..sides.compare(name, &lost.weights)
    });
    let findings: Vec<Change> = findings.collect();
    // One family of tests: whatever is claimed is claimed at one rate.
    let all: Vec<&Change> = std::iter::once(&cpu)
        .chain(&functions)
        .chain(&findings)
        .collect();
    let p: Vec<f64> = all.iter().map(|change| change.p_value).collect();
    let found = discoveries(&p, FALSE_DISCOVERIES);
    let mut judged = all.iter().zip(&found).map(|(change, &differs)| Change {
        differs,
        ..(*change).clone()
    });
    let cpu_change = judged.next().unwrap_or_else(|| cpu.clone());
    let rest: Vec<Change> = judged.collect();
    let (functions, findings) = rest.split_at(functions.len());
    let differing = |changes: &[Change]| {
        let mut found: Vec<Change> = changes
            .iter()
            .filter(|change| change.differs)
            .cloned()
            .collect();
        found.sort_by(|a, b| b.change.value.abs().total_cmp(&a.change.value.abs()));
        found
    };
    let (functions, findings) = (differing(functions), differing(findings));
    let any = cpu_change.differs || !functions.is_empty() || !findings.is_empty();
    let stacks = match any {
        true => sides.stacks(&samples, options.rows),
        false => Vec::new(),
    };
    let picture = match options.flame.is_some() || options.output.page.is_some() {
        true => {
            let names = [&options.before, &options.after];
            let profile =
                |side: &Vec<usize>| samples.profile(&sides.units.scales(side.iter().copied()));
            let [before, after] = [&sides.before, &sides.after].map(profile);
            let sides = [(names[0].clone(), before), (names[1].clone(), after)];
            Some(Flame::Change(Box::new(sides)))
        }
        false => None,
    };
    if let (Some(path), Some(picture)) = (&options.flame, &picture) {
        flame::write(path, picture)?;
    }
    let after: BTreeSet<u32> = sides.after.iter().map(|&unit| unit as u32).collect();
    let settings = Settings::read(engine, &sides.units)?.shared_by(&after, sides.units.len());
    let diff = Diff {
        hosts_before: sides.before.len(),
        hosts_after: sides.after.len(),
        paired_hosts: sides.pairs.len(),
        cpu_before: cpu.before,
        cpu_after: cpu.after,
        cpu_change,
        functions,
        findings,
        stacks,
        settings,
        figures_tested: found.len(),
        scans: engine.scans(),
    };
    let notes = engine.notes().into_iter().chain(sides.units.notes());
    let tables = diff.tables(options.rows);
    let (badge, tone) = match any {
        true => ("Differs", Tone::Bad),
        false => ("No difference found", Tone::Good),
    };
    Ok(Answer::new("fleet_diff", diff.verdict(), &diff, tables)
        .shown_as(badge, tone, diff.tiles())
        .with_flame(picture)
        .with_notes(notes))
}

impl Sides {
    /// Of these runs, the `first` are those before.
    fn new(runs: &[Run], first: &BTreeSet<Identifier>) -> Result<Self> {
        let units = Units::by(runs, |run| {
            let side = if first.contains(&run.id) { 'a' } else { 'b' };
            Some(format!("{side}{}", run.host))
        });
        let mut hosts: BTreeMap<&str, [Option<usize>; 2]> = BTreeMap::new();
        let (mut before, mut after) = (Vec::new(), Vec::new());
        for (unit, key) in units.keys.iter().enumerate() {
            let (side, host) = key.split_at(1);
            let is_after = side == "b";
            hosts.entry(host).or_default()[usize::from(is_after)] = Some(unit);
            match is_after {
                true => after.push(unit),
                false => before.push(unit),
            }
        }
        let pairs: Vec<(usize, usize)> = hosts
            .values()
            .filter_map(|[before, after]| before.zip(*after))
            .collect();
        if before.is_empty() || after.is_empty() {
            bail!("one side has no recording that can be used");
        }
        // Hosts that are on one side only say nothing about a change on the others.
        let most = before.len().min(after.len());
        let is_paired = pairs.len() * 3 >= most * 2 && pairs.len() >= 2;
        let pairs = if is_paired { pairs } else { Vec::new() };
        let resamples = match pairs.len() {
            0 => [Resamples::new(before.len()), Resamples::new(after.len())],
            pairs => [Resamples::new(pairs), Resamples::new(0)],
        };
        Ok(Self {
            resamples,
            units,
            before,
            after,
            pairs,
        })
    }

    fn compare(&self, name: &str, weights: &[f64]) -> Change {
        let rates = self.units.rates(weights);
        let of = |units: &[usize]| units.iter().map(|&unit| rates[unit]).collect::<Vec<_>>();
        let (before, after) = match self.pairs.is_empty() {
            true => (of(&self.before), of(&self.after)),
            false => self
                .pairs
                .iter()
                .map(|&(a, b)| (rates[a], rates[b]))
                .unzip(),
        };
        let (p_value, change) = match self.pairs.is_empty() {
            true => {
                let a = self.resamples[0].mean(&before);
                let b = self.resamples[1].mean(&after);
                (unpaired(&before, &after), difference(&a, &b))
            }
            false => {
                let pairs = before.iter().zip(&after);
                let differences: Vec<f64> = pairs.map(|(before, after)| after - before).collect();
                (paired(&differences), self.resamples[0].mean(&differences))
            }
        };
        Change {
            name: name.to_owned(),
            title: None,
            before: moments(&before).0,
            after: moments(&after).0,
            change,
            p_value,
            differs: false,
        }
    }

    /// Stacks whose means differ most.
    fn stacks(&self, samples: &Samples, rows: usize) -> Vec<StackChange> {
        let changes = samples
            .paths(MOST_FUNCTIONS)
            .into_iter()
            .map(|(stack, weights)| {
                let rates = self.units.rates(&weights);
                let mean = |units: &[usize]| {
                    moments(&units.iter().map(|&unit| rates[unit]).collect::<Vec<_>>()).0
                };
                StackChange {
                    stack: stack.into_iter().map(str::to_owned).collect(),
                    before: mean(&self.before),
                    after: mean(&self.after),
                }
            });
        let mut changes: Vec<StackChange> = changes.collect();
        let size = |change: &StackChange| (change.after - change.before).abs();
        changes.sort_by(|a, b| size(b).total_cmp(&size(a)));
        changes.truncate(rows);
        changes
    }
}

/// The difference of two independent means: squares of the half widths add up.
fn difference(before: &Estimate, after: &Estimate) -> Estimate {
    let value = after.value - before.value;
    let down = (after.value - after.low).hypot(before.high - before.value);
    let up = (after.high - after.value).hypot(before.value - before.low);
    Estimate {
        value,
        low: value - down,
        high: value + up,
    }
}

impl Diff {
    fn verdict(&self) -> String {
        let change = &self.cpu_change;
        let share = change
            .change
            .scaled(1.0 / self.cpu_before.max(f64::MIN_POSITIVE));
        let hosts = match self.paired_hosts {
            0 => format!("{} hosts against {}", self.hosts_before, self.hosts_after),
            pairs => format!("{pairs} hosts, each against itself"),
        };
        let signed =
            |share: f64| format!("{}{}", if share > 0.0 { "+" } else { "" }, percent(share));
        let interval = format!(
            "{} ({} to {})",
            signed(share.value),
            signed(share.low),
            signed(share.high)
        );
        let cpu = match change.differs {
            true => format!("CPU time per host changed by {interval}; {hosts}."),
            false => {
                format!("CPU time per host did not change beyond chance: {interval}; {hosts}.")
            }
        };
        match self.functions.first() {
            Some(first) => format!(
                "{cpu} {}; most of it is {}: {} of CPU time per day and host.",
                match self.functions.len() {
                    1 => "One function differs".to_owned(),
                    many => format!("{many} functions differ"),
                },
                first.name,
                hours_within(&first.change)
            ),
            None => format!("{cpu} No function differs beyond chance."),
        }
    }

    fn tiles(&self) -> Vec<Tile> {
        let tile = |name: &str, figure: String, note: &str| Tile {
            name: name.to_owned(),
            figure,
            note: note.to_owned(),
        };
        let per = "per day and host";
        vec![
            tile("CPU time before", hours(self.cpu_before), per),
            tile("CPU time after", hours(self.cpu_after), per),
            tile(
                "Functions that differ",
                self.functions.len().to_string(),
                "beyond chance",
            ),
        ]
    }

    fn tables(&self, rows: usize) -> Vec<Table> {
        let changes = |title: &str, what: &str, changes: &[Change]| {
            let shown = changes.iter().take(rows).map(|change| {
                let name = match &change.title {
                    Some(title) => Cell::from(&**title).with_note(&*change.name),
                    None => (&*change.name).into(),
                };
                vec![
                    within_cell(&change.change),
                    hours(change.before).into(),
                    hours(change.after).into(),
                    chance(change.p_value).into(),
                    name,
                ]
            });
            let heads = ["change", "before", "after", "chance", what];
            Table {
                more: changes.len().saturating_sub(rows),
                ..Table::new(title, &heads, shown.collect())
            }
        };
        let stacks = self.stacks.iter().map(|change| {
            vec![
                hours(change.after - change.before).into(),
                hours(change.before).into(),
                hours(change.after).into(),
                innermost(&change.stack).into(),
            ]
        });
        let settings = self.settings.iter().take(rows).map(|shared| {
            vec![
                format!("{} of {}", shared.hosts, shared.of_hosts).into(),
                format!("{} of {}", shared.others, shared.of_others).into(),
                format!("{} = {}", shared.setting, shared.value).into(),
            ]
        });
        let stack_heads = ["change", "before", "after", "stack"];
        let heads = ["after", "before", "setting"];
        vec![
            changes(
                "Functions, in CPU time per day and host",
                "function",
                &self.functions,
            ),
            changes(
                "Findings, in CPU time per day and host",
                "finding",
                &self.findings,
            ),
            Table::new("Stacks", &stack_heads, stacks.collect()),
            Table::new("Settings that go with it", &heads, settings.collect()),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(id: u8, host: &str, day: &str) -> Run {
        Run {
            id: [id; 16],
            host: host.to_owned(),
            day: day.to_owned(),
            elapsed_ns: 24e9,
            ..Run::default()
        }
    }

    fn sides(before: &[Run], after: &[Run]) -> Sides {
        let runs: Vec<Run> = before.iter().chain(after).cloned().collect();
        Sides::new(&runs, &before.iter().map(|run| run.id).collect()).unwrap()
    }

    #[test]
    fn hosts_on_both_sides_are_compared_with_themselves() {
        let before = [run(1, "a", "1"), run(2, "b", "1"), run(3, "c", "1")];
        let after = [run(4, "a", "2"), run(5, "b", "2"), run(6, "c", "2")];
        let sides = sides(&before, &after);
        assert_eq!(sides.pairs, [(0, 3), (1, 4), (2, 5)]);
        // Hosts differ by far more than each changed.
        let weights: Vec<f64> = [1.0, 100.0, 1000.0, 2.0, 101.1, 1000.9]
            .map(|w| w * 1e9)
            .to_vec();
        let change = sides.compare("x", &weights);
        assert!((change.change.value - 1.0).abs() < 1e-9 && change.p_value < 0.01);
        assert!(Sides::new(&after, &BTreeSet::new()).is_err());
    }

    #[test]
    fn other_hosts_are_two_groups() {
        let before = [run(1, "a", "1"), run(2, "b", "1"), run(3, "c", "1")];
        let after = [run(4, "d", "1"), run(5, "e", "1"), run(6, "f", "1")];
        let sides = sides(&before, &after);
        assert!(sides.pairs.is_empty());
        let weights: Vec<f64> = [1.0, 1.1, 0.9, 5.0, 5.1, 4.9].map(|w| w * 1e9).to_vec();
        let change = sides.compare("x", &weights);
        assert!((change.change.value - 4.0).abs() < 1e-9 && change.p_value < 1e-4);
        assert!(change.change.low > 3.7 && change.change.high < 4.3);
    }
}
