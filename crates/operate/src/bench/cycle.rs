//! One measurement of an allocator in a separate process: both the request and the child's side.

use anyhow::{Context, Result, bail};
use pagewise_linux::allocation_cost::{self, Shape};
use pagewise_linux::process::{Input, Launch, Output};
use pagewise_model::advice::Settings;
use pagewise_model::bench::Cost;
use pagewise_model::run::Ending;
use std::time::Duration;

/// The child: measures in this process.
///
/// # Errors
/// If the shape is invalid, or memory is missing.
pub fn measure(shape: Shape, spend: Duration) -> Result<Cost> {
    let found = allocation_cost::measure(shape, spend)?;
    let rounds = f64::from(found.rounds);
    let calls = found.calls.map(|calls| {
        calls
            .into_iter()
            .map(|(call, count)| (call, count as f64 / rounds))
            .collect()
    });
    Ok(Cost {
        faults: found.faults as f64 / rounds,
        cpu_ns: found.cpu_ns as f64 / rounds,
        calls,
    })
}

/// Measures `shape` in a fresh process, `pagewise bench cycle`, under `settings`.
///
/// # Errors
/// If that process cannot run or fails; the error contains its message.
pub(super) fn ask(shape: Shape, settings: &Settings, spend: Duration) -> Result<Cost> {
    let output = tempfile::NamedTempFile::new().context("cannot store a measurement")?;
    let milliseconds = u64::try_from(spend.as_millis()).unwrap_or(u64::MAX);
    let words = ["bench", "cycle"].map(str::to_owned);
    let numbers = [
        format!("--size={}", shape.size),
        format!("--blocks={}", shape.blocks),
        format!("--milliseconds={milliseconds}"),
    ];
    let launch = Launch {
        program: std::env::current_exe()
            .context("cannot find pagewise's own program file")?
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
    // A preloaded library may have printed something first.
    let line = text
        .lines()
        .rev()
        .find(|line| line.starts_with('{'))
        .unwrap_or_default();
    serde_json::from_str(line).with_context(|| format!("a measurement said '{}'", text.trim()))
}
