//! `record --measure-overhead`: what recording costs a program, by runs with and without in turn.

use super::RecordArgs;
use crate::progress::Progress;
use anyhow::{Context, Result};
use clap::ValueEnum;
use pagewise_linux::process::interrupt;
use pagewise_model::proof::Comparison;
use pagewise_model::units::Estimate;
use pagewise_operate::experiment::{Candidate, Experiment, Options, Outcome};
use std::ffi::OsString;
use std::fmt::Write;
use std::path::Path;
use std::time::{Duration, Instant};

const RECORDED: &str = "recorded";
/// The program once more without being recorded: what this arm seems to cost is the noise.
const ALONE: &str = "alone again";
/// Fewer pairs have no interval.
const LEAST_ROUNDS: usize = 6;

/// Runs the command alone, recorded, and alone once more, in shuffled rounds for `budget`, and says
/// what recording added.
///
/// # Errors
/// When the command cannot be run, or was interrupted before there were two rounds.
pub fn measure(args: &RecordArgs, budget: Duration) -> Result<String> {
    interrupt::install()?;
    let folder = tempfile::tempdir().context("cannot make a folder for recordings")?;
    let output = folder.path().join("perf.data");
    let alone = Candidate {
        name: ALONE.to_owned(),
        ..Candidate::default()
    };
    let recorded = Candidate {
        name: RECORDED.to_owned(),
        under: args.as_command(&output)?,
        ..Candidate::default()
    };
    // The rounds below keep the budget, but for the fewest that give an interval.
    let options = Options {
        budget: Duration::MAX,
        ..Options::default()
    };
    let progress = Progress::new();
    let started = Instant::now();
    let mut experiment = Experiment::begin(
        &args.command,
        &[alone, recorded],
        &options,
        &progress.listener(),
    )?;
    let mut active = experiment.in_play();
    let stopping = options.stopping.among(active.len(), options.criteria.level);
    while active.len() == 2 && experiment.has_time(&active, started + budget, LEAST_ROUNDS) {
        progress.show(&experiment.status(&active, &options));
        if experiment.round(&active)? == Outcome::Stopped {
            break;
        }
        active = experiment.in_play();
        let enough = |&arm: &usize| stopping.enough(&experiment.compare(arm, &options.criteria));
        if active.iter().all(enough) {
            break;
        }
    }
    progress.finish();
    let recorded = experiment.compare(experiment.arm_named(RECORDED), &options.criteria);
    let alone = experiment.compare(experiment.arm_named(ALONE), &options.criteria);
    experiment.note_noise();
    let (_, notes) = experiment.into_parts();
    anyhow::ensure!(
        recorded.pairs >= 2,
        "too few runs to compare: {}",
        notes.join(" ")
    );
    Ok(words(&recorded, &alone, &notes))
}

impl RecordArgs {
    /// What goes before the command to record it as asked, into `output`.
    fn as_command(&self, output: &Path) -> Result<Vec<OsString>> {
        let own = std::env::current_exe().context("cannot tell where this program is")?;
        let mut words: Vec<OsString> = vec![own.into(), "record".into(), "--quiet".into()];
        let mut option = |name: &str, value: OsString| words.extend([name.into(), value]);
        option("--output", output.into());
        option("--frequency", self.frequency.to_string().into());
        option(
            "--interval",
            format!("{}us", self.interval.as_micros()).into(),
        );
        option("--call-graph", value_name(&self.call_graph).into());
        let parts: Vec<String> = self.events.iter().map(value_name).collect();
        option("--events", parts.join(",").into());
        match self.count {
            Some(count) => option("--count", count.to_string().into()),
            None if self.full => words.push("--full".into()),
            None => option("--fault-frequency", self.fault_frequency.to_string().into()),
        }
        if self.all {
            words.push("--all".into());
        }
        words.push("--".into());
        Ok(words)
    }
}

fn value_name(value: &impl ValueEnum) -> String {
    let named = value.to_possible_value();
    named.map_or(String::new(), |named| named.get_name().to_owned())
}

fn words(recorded: &Comparison, alone: &Comparison, notes: &[String]) -> String {
    let cpu = cost(recorded.cpu_speedup);
    let floor = cost(alone.cpu_speedup);
    let beyond = match (cpu.low > 1.0, cpu.value > floor.high) {
        (true, true) => "more than the noise",
        _ => "no more than the noise",
    };
    let mut text = format!(
        "CPU time      {} with recording, recorder included: {beyond}\n\
         Elapsed time  {}\n\
         Noise floor   {} CPU time of the program alone against itself\n\
         Method        {} rounds of runs alone, recorded, and alone again, in random order;\n              \
         median ratio of pairs with its 95 % interval\n",
        ratio(cpu),
        ratio(cost(recorded.wall_speedup)),
        ratio(floor),
        recorded.pairs,
    );
    for note in notes {
        // Writing to a string does not fail.
        let _ = writeln!(text, "Note          {note}");
    }
    text
}

/// How many times as much as alone: comparisons tell how many times as fast.
fn cost(speedup: Estimate) -> Estimate {
    Estimate {
        value: 1.0 / speedup.value,
        low: 1.0 / speedup.high,
        high: 1.0 / speedup.low,
    }
}

fn ratio(estimate: Estimate) -> String {
    format!(
        "×{:.3} [{:.3}, {:.3}]",
        estimate.value, estimate.low, estimate.high
    )
}
