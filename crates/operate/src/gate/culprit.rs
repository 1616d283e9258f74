//! Causes of growth: each side is run once more, observed.

use super::runs::{Program, Runner};
use crate::analysis;
use crate::observe::{ObserveOptions, Subject, observe};
use anyhow::{Context, Result};
use pagewise_compare::gate::{Observed, culprit, faults_seen};
use pagewise_compare::profile_diff::{DiffOptions, SettingRules, diff};
use pagewise_linux::perf::{CpuStacks, Mode, Options};
use pagewise_model::findings::Findings;
use pagewise_model::gate::{Baseline, Culprit, FaultsSeen, FunctionGrowth, Gate, GateRun, Metric};
use pagewise_model::loss::LossKind;
use pagewise_model::profile::Profile;
use std::time::Duration;

/// Approximate number of fault samples in a run. Each copies 8 KiB of stack, and a program may take
/// all its faults before the recorder wakes: this many fit in a ring of 4 MiB.
const FAULT_SAMPLES: f64 = 450.0;
/// Samples of CPU time in a run, limited to this many per second.
const CPU_SAMPLES: f64 = 4_000.0;
const MOST_CPU_SAMPLES: f64 = 4_999.0;
/// Number of functions named.
const FUNCTIONS: usize = 3;
/// Advice if the place of faults cannot be found.
const HOW: &str = "pagewise check says what is missing to show where the program faults";

/// Up to this many faults of a run, each can be recorded: 64 bytes and a call chain.
const FEW_FAULTS: f64 = 300_000.0;

/// Observations of a program.
struct Seen {
    /// From samples with whole stacks.
    findings: Findings,
    /// From each fault, if there were not too many.
    each: Option<Findings>,
    profile: Option<Profile>,
}

impl Seen {
    fn faults(&self) -> Option<FaultsSeen> {
        faults_seen(&self.findings, self.each.as_ref())
    }
}

/// How a sample records its stack.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stacks {
    /// As a copy, which needs buffers that users without privileges may not get.
    Copied,
    /// As a call chain by frame pointers.
    Chains,
}

/// Most of the samples may be missing.
#[derive(Debug)]
struct Lost;

impl std::error::Error for Lost {}

impl std::fmt::Display for Lost {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            to,
            "Samples of faults were lost because the buffers that kernel.perf_event_mlock_kb allows are too small; root gets larger ones ({HOW})"
        )
    }
}

/// Both sides.
pub(super) fn of_two(gate: &Gate, old: &Program, new: &Program, runner: &Runner) -> Culprit {
    let time = gate.grown().any(|figure| figure.metric.is_time());
    let one = |program, runs, stacks| observed(program, runner, runs, time, stacks);
    let both = |stacks| -> Result<(Seen, Seen)> {
        Ok((
            one(old, &gate.old.runs, stacks)?,
            one(new, &gate.new.runs, stacks)?,
        ))
    };
    // Both sides must have stacks of the same kind.
    let (old, new) = match both(Stacks::Copied).or_else(|error| otherwise(error, both)) {
        Ok(both) => both,
        Err(error) => return missing(format!("{error:#}")),
    };
    let (Some(in_old), Some(in_new)) = (old.faults(), new.faults()) else {
        return missing(why_not(&new.findings));
    };
    let mut found = compared(gate, &in_old, &in_new);
    if time {
        match functions(&old, &new) {
            Ok(functions) => found.functions = functions,
            Err(why) => found.missing.push(why),
        }
    }
    with_note(gate, found)
}

/// The new side against the stored observations of the old one.
pub(super) fn of_stored(
    gate: &Gate,
    baseline: &Baseline,
    new: &Program,
    runner: &Runner,
) -> Culprit {
    let Some(before) = &baseline.faults else {
        return missing(
            "The baseline does not show where the program faulted: perf events were not allowed when it was made."
                .to_owned(),
        );
    };
    match faults_of(new, runner, &gate.new.runs) {
        (Some(after), _) => {
            let mut found = compared(gate, before, &after);
            if gate.grown().any(|figure| figure.metric.is_time()) {
                found.missing.push(
                    "A baseline has no CPU profile; --against 'OLD CMD' names functions that take more time."
                        .to_owned(),
                );
            }
            with_note(gate, found)
        }
        (None, why) => missing(why.unwrap_or_default()),
    }
}

/// Where a program faults; otherwise the reason why this is unknown.
pub(super) fn faults_of(
    program: &Program,
    runner: &Runner,
    runs: &[GateRun],
) -> (Option<FaultsSeen>, Option<String>) {
    let seen = |stacks| observed(program, runner, runs, false, stacks);
    match seen(Stacks::Copied).or_else(|error| otherwise(error, seen)) {
        Ok(seen) => match seen.faults() {
            Some(faults) => (Some(faults), None),
            None => (None, Some(why_not(&seen.findings))),
        },
        Err(error) => (None, Some(format!("{error:#}"))),
    }
}

/// Repeats with call chains if copies of stacks were lost.
fn otherwise<T>(error: anyhow::Error, again: impl Fn(Stacks) -> Result<T>) -> Result<T> {
    match error.is::<Lost>() {
        true => again(Stacks::Chains),
        false => Err(error),
    }
}

fn observed(
    program: &Program,
    runner: &Runner,
    runs: &[GateRun],
    time: bool,
    stacks: Stacks,
) -> Result<Seen> {
    let wall = mean(runs, Metric::ElapsedTime) / 1e9;
    let a_second = (CPU_SAMPLES / wall.max(1e-3)).min(MOST_CPU_SAMPLES);
    let faults = mean(runs, Metric::Faults);
    let period = prime_from(whole(faults / FAULT_SAMPLES));
    let (findings, profile) = recorded(
        program,
        runner,
        Options {
            period: Some(period),
            period_stacks: stacks == Stacks::Copied,
            cpu: time.then(|| whole(a_second)),
            cpu_stacks: CpuStacks::Copies,
            ..of_faults()
        },
    )?;
    if is_lossy(&findings) {
        return Err(Lost.into());
    }
    let each = match faults < FEW_FAULTS && findings.samples > 0 {
        true => Some(recorded(program, runner, of_faults())?.0),
        false => None,
    };
    Ok(Seen {
        findings,
        each,
        profile,
    })
}

/// Whether samples were lost.
fn is_lossy(findings: &Findings) -> bool {
    findings.losses.count(LossKind::RingOverrun) > 0
}

/// Each fault, with call chains only.
fn of_faults() -> Options {
    Options {
        mode: Mode::Sampled,
        period: Some(1),
        latency: false,
        ..Options::default()
    }
}

fn recorded(
    program: &Program,
    runner: &Runner,
    recorder: Options,
) -> Result<(Findings, Option<Profile>)> {
    let folder = tempfile::tempdir().context("cannot make a folder for a recording")?;
    let output = folder.path().join("perf.data");
    observe(&ObserveOptions {
        subject: Subject::Command(runner.launch(&program.command)?),
        recorder,
        counters: false,
        pages: false,
        delays: false,
        output: output.clone(),
        interval: Duration::from_millis(100),
        duration: None,
        hide: None,
    })?;
    let analysis = analysis::of_file(&output)?;
    Ok((analysis.findings()?, analysis.into_profile()))
}

fn mean(runs: &[GateRun], metric: Metric) -> f64 {
    runs.iter().map(|run| run.figure(metric)).sum::<f64>() / runs.len().max(1) as f64
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a float-to-integer cast saturates; neither faults nor rates are negative"
)]
fn whole(number: f64) -> u64 {
    (number.round() as u64).max(1)
}

/// The next prime: other periods stay in step with blocks of 2^n pages.
fn prime_from(least: u64) -> u64 {
    let divisors = |n: u64| (2..).take_while(move |d| d * d <= n);
    let is_prime = |n: &u64| divisors(*n).all(|d| !n.is_multiple_of(d));
    (least..).find(is_prime).unwrap_or(least)
}

fn compared(gate: &Gate, old: &FaultsSeen, new: &FaultsSeen) -> Culprit {
    let observed = |faults, runs| Observed {
        faults,
        total: mean(runs, Metric::Faults),
    };
    culprit(observed(old, &gate.old.runs), observed(new, &gate.new.runs))
}

/// Functions whose CPU time grew by more than two runs of one program differ.
fn functions(old: &Seen, new: &Seen) -> Result<Vec<FunctionGrowth>, String> {
    let (Some(a), Some(b)) = (&old.profile, &new.profile) else {
        return Err("CPU time was not sampled, so no function is named: pagewise check".to_owned());
    };
    let rules = SettingRules::shipped().map_err(|error| error.to_string())?;
    let options = DiffOptions {
        names: ("old".to_owned(), "new".to_owned()),
        event: None,
        shares: false,
        seed: 1,
    };
    let found = diff(a, b, &options, &rules).map_err(|error| error.to_string())?;
    let grown = found
        .functions
        .iter()
        .filter(|change| change.significant && change.b > change.a);
    let named = grown.map(|change| FunctionGrowth {
        name: change.name.clone(),
        module: change.module.clone(),
        old_s: change.a,
        new_s: change.b,
    });
    let named: Vec<FunctionGrowth> = named.take(FUNCTIONS).collect();
    match named.is_empty() {
        true => Err("No single function takes more time beyond chance.".to_owned()),
        false => Ok(named),
    }
}

/// Adds a sentence if nothing was found.
fn with_note(gate: &Gate, mut found: Culprit) -> Culprit {
    let of_memory = gate.grown().any(|figure| !figure.metric.is_time());
    if found.stacks.is_empty() && of_memory {
        found.missing.push(
            "No single stack has more faults: the growth is spread out, or happens without faults (huge pages, MAP_POPULATE)."
                .to_owned(),
        );
    }
    found
}

/// Why an observed run has no samples of faults.
fn why_not(findings: &Findings) -> String {
    let notes = findings.collection.notes.join(" ");
    match notes.is_empty() {
        true => format!("No fault was recorded; {HOW}."),
        false => format!("{notes} ({HOW})"),
    }
}

fn missing(why: String) -> Culprit {
    Culprit {
        missing: vec![why],
        ..Culprit::default()
    }
}
