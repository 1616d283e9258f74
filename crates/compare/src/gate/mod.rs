//! Whether a program takes more than before: figures of runs in random order, an allowance for
//! each, and an alarm only if growth beyond it is certain.
//!
//! [`rule`] is the test, [`allowance`] defines the allowed growth, [`baseline`] selects the figures
//! of stored runs that can be compared with new ones, [`culprit()`] finds the reasons for growth.

mod allowance;
mod baseline;
mod culprit;
mod environment;
mod rule;
#[cfg(test)]
mod simulated;
mod states;
mod words;

pub use allowance::Allowances;
pub use baseline::{Comparable, Now, comparable};
pub use culprit::{Observed, culprit, faults_seen};
pub use rule::{LEVEL, fewest_runs};

use pagewise_model::answer::{Document, Subject};
use pagewise_model::gate::{Gate, GateRun, GateSide, GateVerdict, Judged, Metric};
use pagewise_model::units::Nanos;
use pagewise_stats::Random;
use pagewise_stats::median;
use rule::Sample;
use std::collections::BTreeMap;

/// In a shorter run the cost of starting it dominates.
const SHORT: Nanos = Nanos(10_000_000);
/// Most runs in one measurement.
const LARGEST_BATCH: u64 = 50;

/// What is judged, and how.
#[derive(Clone, Debug)]
pub struct Terms {
    /// What growth is allowed.
    pub allowances: Allowances,
    /// Why a metric cannot be judged.
    pub barred: BTreeMap<Metric, String>,
    /// Planned runs of the old and of the new side.
    pub planned: (usize, usize),
}

/// Which side runs next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// The old program's.
    Old,
    /// The new program's.
    New,
}

/// An order of `pairs` runs of each side, drawn uniformly from all orders.
#[must_use]
pub fn order(pairs: usize, random: &mut Random) -> Vec<Turn> {
    let mut turns = [vec![Turn::Old; pairs], vec![Turn::New; pairs]].concat();
    random.shuffle(&mut turns);
    turns
}

/// Runs in one measurement of a command that takes `typical`.
#[must_use]
pub fn batch(typical: Nanos) -> u32 {
    let runs = SHORT.0.div_ceil(typical.0.max(1)).clamp(1, LARGEST_BATCH);
    u32::try_from(runs).unwrap_or(1)
}

/// The mean of a few runs.
#[must_use]
pub fn mean(runs: &[GateRun]) -> GateRun {
    let count = u64::try_from(runs.len()).unwrap_or(1).max(1);
    let of = |part: fn(&GateRun) -> u64| runs.iter().map(part).sum::<u64>() / count;
    let peak: Option<u64> = runs.iter().map(|run| Some(run.peak?.0)).sum();
    GateRun {
        cost: pagewise_model::run::RunCost {
            wall: Nanos(of(|run| run.cost.wall.0)),
            user: Nanos(of(|run| run.cost.user.0)),
            system: Nanos(of(|run| run.cost.system.0)),
            minor_faults: of(|run| run.cost.minor_faults),
            major_faults: of(|run| run.cost.major_faults),
            max_rss: pagewise_model::units::Bytes(of(|run| run.cost.max_rss.0)),
            voluntary_switches: of(|run| run.cost.voluntary_switches),
            involuntary_switches: of(|run| run.cost.involuntary_switches),
        },
        peak: peak.map(|sum| pagewise_model::units::Bytes(sum / count)),
    }
}

impl Terms {
    /// Metrics that can raise an alarm.
    fn judged(&self) -> Vec<Metric> {
        let is_judged = |metric: &Metric| {
            self.allowances.get(*metric).is_some() && !self.barred.contains_key(metric)
        };
        Metric::ALL.into_iter().filter(is_judged).collect()
    }

    /// Chance of a false alarm allowed for each of them.
    #[must_use]
    pub fn level(&self) -> f64 {
        LEVEL / self.judged().len().max(1) as f64
    }

    /// Why the planned runs cannot decide anything, if so.
    #[must_use]
    pub fn too_few(&self) -> Option<String> {
        let (old, new) = self.planned;
        let figures = self.judged().len();
        if figures == 0 {
            return Some("no figure is left to compare".to_owned());
        }
        rule::spared(old, new, self.level()).is_none().then(|| {
            format!(
                "{old} old and {new} new runs cannot decide {figures} figures: that needs {} of each",
                fewest_runs(figures)
            )
        })
    }

    /// Whether further runs could still raise an alarm.
    #[must_use]
    pub fn is_open(&self, old: &[GateRun], new: &[GateRun]) -> bool {
        if old.len() == self.planned.0 && new.len() == self.planned.1 {
            return false;
        }
        self.judged().into_iter().any(|metric| {
            let (old, new) = (figures(old, metric), figures(new, metric));
            let allowance = self.allowances.get(metric);
            allowance.is_some_and(|allowance| self.sample(&old, &new).can_grow(allowance))
        })
    }

    fn sample<'a>(&self, old: &'a [f64], new: &'a [f64]) -> Sample<'a> {
        Sample {
            old,
            new,
            planned: self.planned,
            level: self.level(),
        }
    }

    fn judge(&self, metric: Metric, old: &[GateRun], new: &[GateRun]) -> Judged {
        let allowance = self.allowances.get(metric);
        let (of_old, of_new) = (figures(old, metric), figures(new, metric));
        let is_known = is_known(metric, new);
        let middle = |figures: &[f64]| {
            let is_told = is_known && !figures.is_empty();
            is_told.then(|| median(&mut figures.to_vec()))
        };
        let (a, b) = (middle(&of_old), middle(&of_new));
        let mut judged = Judged {
            metric,
            old: a,
            new: b,
            growth: a.zip(b).filter(|(a, _)| *a > 0.0).map(|(a, b)| b / a - 1.0),
            surely_more_than: None,
            allowed: allowance.map(|allowance| allowance.share),
            verdict: GateVerdict::NotJudged,
            reason: String::new(),
        };
        match (allowance, self.barred.get(&metric)) {
            (None, _) => "any growth is allowed".clone_into(&mut judged.reason),
            (_, Some(why)) => judged.reason.clone_from(why),
            _ if !is_known => judged.reason = unknown(new),
            (Some(allowance), None) => {
                let sample = self.sample(&of_old, &of_new);
                let beyond = a.zip(b).is_some_and(|(a, b)| allowance.is_passed(a, b));
                judged.surely_more_than = sample.surely_more_than();
                judged.verdict = match (sample.has_grown(allowance), beyond) {
                    (true, _) => GateVerdict::Grown,
                    (false, true) => GateVerdict::Unsure,
                    (false, false) => GateVerdict::Within,
                };
            }
        }
        judged
    }
}

/// A metric's value in each run.
fn figures(runs: &[GateRun], metric: Metric) -> Vec<f64> {
    runs.iter().map(|run| run.figure(metric)).collect()
}

/// Whether the new runs show a metric: a peak below the initial memory of each process is not
/// visible.
fn is_known(metric: Metric, new: &[GateRun]) -> bool {
    metric != Metric::PeakMemory || new.iter().any(|run| run.peak.is_some())
}

fn unknown(new: &[GateRun]) -> String {
    let most = new
        .iter()
        .map(|run| run.cost.max_rss)
        .max()
        .unwrap_or_default();
    format!("below {most}, which each process inherits from Pagewise, it cannot be measured")
}

/// The answer from all runs, about the new command. Its culprit is determined elsewhere.
#[must_use]
pub fn judge(terms: &Terms, old: GateSide, new: GateSide) -> Document<Gate> {
    let mut figures: Vec<Judged> = Metric::ALL
        .into_iter()
        .map(|metric| terms.judge(metric, &old.runs, &new.runs))
        .collect();
    let mut notes: Vec<String> = environment::difference(&old.command, &new.command)
        .into_iter()
        .collect();
    for figure in &mut figures {
        notes.extend(states::withdraw(figure, &old, &new));
    }
    let passed = figures
        .iter()
        .all(|figure| figure.verdict != GateVerdict::Grown);
    let subject = Subject::of_command(new.command.clone());
    let verdict = words::headline(&figures, &old, &new, terms.planned);
    let gate = Gate {
        passed,
        old,
        new,
        most_pairs: u32::try_from(terms.planned.1).unwrap_or(u32::MAX),
        batch: 1,
        seed: 0,
        level: terms.level(),
        figures,
        culprit: None,
    };
    Document::new(gate)
        .about(subject)
        .with_verdict(verdict)
        .with_notes(notes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagewise_model::run::RunCost;
    use pagewise_model::units::Bytes;

    fn run(faults: u64, peak: Option<u64>, wall: u64) -> GateRun {
        GateRun {
            cost: RunCost {
                wall: Nanos(wall),
                user: Nanos(wall / 2),
                minor_faults: faults,
                ..RunCost::default()
            },
            peak: peak.map(Bytes),
        }
    }

    fn terms(allow: &str) -> Terms {
        Terms {
            allowances: allow.parse().unwrap(),
            barred: BTreeMap::new(),
            planned: (6, 6),
        }
    }

    fn side(runs: Vec<GateRun>) -> GateSide {
        GateSide {
            command: vec!["./app".to_owned()],
            baseline: None,
            runs,
        }
    }

    fn gate(allow: &str, old: &[GateRun], new: &[GateRun]) -> Document<Gate> {
        judge(&terms(allow), side(old.to_vec()), side(new.to_vec()))
    }

    fn verdict(gate: &Document<Gate>, metric: Metric) -> GateVerdict {
        gate.evidence
            .figures
            .iter()
            .find(|f| f.metric == metric)
            .unwrap()
            .verdict
    }

    #[test]
    fn growth_beyond_its_allowance_fails_and_names_the_figure() {
        let old = [run(10_000, Some(50 << 20), 1_000_000_000); 6];
        let new = [run(10_500, Some(50 << 20), 1_000_000_000); 6];
        let failed = gate("2%", &old, &new);
        assert!(!failed.evidence.passed);
        assert_eq!(verdict(&failed, Metric::Faults), GateVerdict::Grown);
        assert_eq!(verdict(&failed, Metric::PeakMemory), GateVerdict::Within);
        assert_eq!(
            failed.verdict,
            "Page faults grew from 10,000 to 10,500 (+5.0 %, 2 % allowed)."
        );
        let message = gate("4.1%", &old, &new).verdict;
        assert!(message.contains("4.1 % allowed"), "{message}");
        let allowed = gate("5%", &old, &new);
        assert!(
            allowed.evidence.passed && verdict(&allowed, Metric::Faults) == GateVerdict::Within
        );
    }

    #[test]
    fn growth_that_chance_explains_passes_and_says_so() {
        let old: Vec<GateRun> = (0..6).map(|at| run(10_000 + 300 * at, None, 1)).collect();
        let new: Vec<GateRun> = (0..6).map(|at| run(10_600 + 300 * at, None, 1)).collect();
        let gate = gate("2%", &old, &new);
        assert!(gate.evidence.passed);
        assert_eq!(verdict(&gate, Metric::Faults), GateVerdict::Unsure);
        assert_eq!(verdict(&gate, Metric::PeakMemory), GateVerdict::NotJudged);
        let message = gate.verdict;
        assert!(message.contains("may have grown"), "{message}");
    }

    #[test]
    fn no_more_runs_are_made_once_none_can_raise_an_alarm() {
        let terms = terms("2%");
        let same = |runs: usize| vec![run(10_000, Some(50 << 20), 1_000_000_000); runs];
        let more = |runs: usize| vec![run(11_000, Some(50 << 20), 1_000_000_000); runs];
        assert!(terms.is_open(&same(1), &same(1)));
        assert!(
            !terms.is_open(&same(2), &same(1)),
            "two old runs reach the new one"
        );
        assert!(terms.is_open(&same(2), &more(2)));
        assert!(!terms.is_open(&same(6), &more(6)), "all runs are there");
    }

    #[test]
    fn fewer_figures_leave_each_a_larger_chance() {
        let mut terms = terms("elapsed=off");
        assert!((terms.level() - LEVEL / 5.0).abs() < 1e-12);
        terms
            .barred
            .insert(Metric::CpuTime, "another host".to_owned());
        assert!((terms.level() - LEVEL / 4.0).abs() < 1e-12);
        terms.planned = (4, 4);
        assert!(terms.too_few().unwrap().contains("5 of each"));
        terms.planned = (5, 5);
        assert_eq!(terms.too_few(), None);
    }

    #[test]
    fn each_order_is_as_likely_as_any_other() {
        let mut random = Random::seeded(3);
        let mut seen = BTreeMap::new();
        for _ in 0..6_000 {
            let order: Vec<bool> = order(2, &mut random)
                .iter()
                .map(|t| *t == Turn::Old)
                .collect();
            *seen.entry(order).or_insert(0u32) += 1;
        }
        assert_eq!(seen.len(), 6);
        assert!(
            seen.values().all(|count| count.abs_diff(1_000) < 180),
            "{seen:?}"
        );
    }

    #[test]
    fn short_commands_run_several_times_for_one_measurement() {
        assert_eq!(
            [1, 2_500_000, 10_000_000, u64::MAX].map(|ns| batch(Nanos(ns))),
            [50, 4, 1, 1]
        );
        let two = mean(&[run(100, Some(10), 4), run(200, Some(30), 8)]);
        assert_eq!((two.cost.minor_faults, two.peak), (150, Some(Bytes(20))));
        assert_eq!(mean(&[run(100, Some(10), 4), run(200, None, 8)]).peak, None);
    }
}
