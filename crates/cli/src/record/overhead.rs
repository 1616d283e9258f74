//! `record --measure-overhead`: the cost of recording to a program, by alternating runs with and
//! without.

use super::RecordArgs;
use crate::progress::Progress;
use anyhow::{Context, Result};
use clap::ValueEnum;
use pagewise_linux::process::interrupt;
use pagewise_model::units::Estimate;
use pagewise_operate::overhead::{self, Overhead};
use std::ffi::OsString;
use std::fmt::Write;
use std::path::Path;
use std::time::Duration;

/// Runs the command alone, recorded, and alone once more, and reports the added cost.
///
/// # Errors
/// If the command cannot be run, or was interrupted before there were two rounds.
pub fn measure(args: &RecordArgs, budget: Duration) -> Result<String> {
    interrupt::install()?;
    let folder = tempfile::tempdir().context("cannot make a folder for recordings")?;
    let recorder = args.as_command(&folder.path().join("perf.data"))?;
    let progress = Progress::new();
    let found = overhead::measure(&args.command, recorder, budget, &progress.listener())?;
    progress.finish();
    Ok(words(&found))
}

impl RecordArgs {
    /// The words before the command that record it with these options into `output`.
    fn as_command(&self, output: &Path) -> Result<Vec<OsString>> {
        let own = std::env::current_exe().context("cannot find pagewise's own program file")?;
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

fn words(found: &Overhead) -> String {
    let cpu = cost(found.under.cpu_speedup);
    let floor = cost(found.again.cpu_speedup);
    let beyond = match (cpu.low > 1.0, cpu.value > floor.high) {
        (true, true) => "more than the noise",
        _ => "no more than the noise",
    };
    let mut text = format!(
        "CPU time      {} with recording, recorder included: {beyond}\n\
         Elapsed time  {}\n\
         Noise floor   {} CPU time of the program compared with itself\n\
         Method        {} rounds of runs alone, recorded, and alone again, in random order;\n              \
         median ratio of pairs with its 95 % interval\n",
        ratio(cpu),
        ratio(cost(found.under.wall_speedup)),
        ratio(floor),
        found.under.pairs,
    );
    for note in &found.notes {
        // Writing to a string does not fail.
        let _ = writeln!(text, "Note          {note}");
    }
    text
}

/// The cost as a factor relative to running alone; comparisons contain the speed-up instead.
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
