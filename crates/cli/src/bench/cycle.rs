//! One measurement in a process of its own: the child's side, and how it is asked for.

use crate::terminal;
use anyhow::{Context, Result, bail};
use pagewise_linux::heap::{Shape, measure};
use pagewise_linux::process::{Input, Launch, Output};
use pagewise_model::advice::Settings;
use pagewise_model::bench::Cost;
use pagewise_model::run::Ending;
use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

/// What to measure.
#[derive(clap::Args, Clone, Copy)]
pub struct Args {
    /// Bytes in one block.
    #[arg(long)]
    size: usize,
    /// Blocks that are taken and given back together.
    #[arg(long)]
    blocks: usize,
    /// Milliseconds to spend.
    #[arg(long)]
    milliseconds: u64,
}

/// The child: measures and prints.
pub fn run(args: Args) -> Result<ExitCode> {
    let shape = Shape {
        size: args.size,
        blocks: args.blocks,
    };
    let found = measure(shape, Duration::from_millis(args.milliseconds))?;
    let rounds = f64::from(found.rounds);
    let calls = found.calls.map(|calls| {
        calls
            .into_iter()
            .map(|(call, count)| (call, count as f64 / rounds))
            .collect()
    });
    let cost = Cost {
        faults: found.faults as f64 / rounds,
        cpu_ns: found.cpu_ns as f64 / rounds,
        calls,
    };
    let mut out = terminal::output(true);
    serde_json::to_writer(&mut out, &cost)?;
    writeln!(out)?;
    Ok(ExitCode::SUCCESS)
}

/// Measures `shape` in a fresh process under `settings`.
///
/// # Errors
/// When that process cannot run, or ends badly; its own words are in the error.
pub fn ask(shape: Shape, settings: &Settings, spend: Duration) -> Result<Cost> {
    let output = tempfile::NamedTempFile::new().context("cannot keep a measurement")?;
    let milliseconds = u64::try_from(spend.as_millis()).unwrap_or(u64::MAX);
    let words = ["bench", "cycle"].map(str::to_owned);
    let numbers = [
        format!("--size={}", shape.size),
        format!("--blocks={}", shape.blocks),
        format!("--milliseconds={milliseconds}"),
    ];
    let launch = Launch {
        program: std::env::current_exe()
            .context("cannot find our own program")?
            .into(),
        args: words.into_iter().chain(numbers).map(Into::into).collect(),
        settings: settings.clone(),
        output: Output::Capture(output.path().to_owned()),
        input: Input::Null,
    };
    let finished = launch.spawn()?.wait()?;
    let text = std::fs::read_to_string(output.path()).context("cannot read a measurement")?;
    if finished.ending != Ending::Exited(0) {
        bail!("measuring failed: {}", text.trim());
    }
    // A preloaded library may have said something first.
    let line = text
        .lines()
        .rev()
        .find(|line| line.starts_with('{'))
        .unwrap_or_default();
    serde_json::from_str(line).with_context(|| format!("a measurement said '{}'", text.trim()))
}
