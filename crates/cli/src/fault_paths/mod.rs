//! Reports on function_graph traces, a part of `pagewise report`.

use crate::input;
use anyhow::{Context, Result, bail};
use pagewise_analyse::fault_paths::{Calibration, Collector, analyse, calibrate, estimate};
use pagewise_model::fault_paths::FaultPaths;
use pagewise_model::formats::function_graph::{self, Summary};
use std::io::Read;
use std::path::Path;

/// Bytes of a file that tell a trace from other text.
pub const HEAD: u64 = 16 << 10;

/// Whether a file (packed or not) is function_graph text. Standard input is read to tell, so
/// what is left of it comes back.
///
/// # Errors
/// When the file can't be read.
pub fn sniff(path: &Path) -> Result<(bool, Box<dyn Read>)> {
    let input = input::open(path)?;
    let (head, input) =
        input::peek(input, HEAD).with_context(|| format!("cannot read {}", path.display()))?;
    Ok((function_graph::looks_like(&head), input))
}

/// What a trace shows, corrected for the tracer's cost as measured against `root_only`, a trace
/// of the same workload with the root function alone, or else as estimated from the trace.
///
/// # Errors
/// When a file can't be read, or `root_only` can't serve as a measure.
pub fn findings(trace: Box<dyn Read>, root_only: Option<&Path>) -> Result<FaultPaths> {
    let (faults, summary) = collect(trace)?;
    let calibration = match root_only {
        Some(path) => measured(&faults, path)?,
        None => estimate(&faults),
    };
    Ok(analyse(&faults, &summary, calibration))
}

fn measured(faults: &Collector, root_only: &Path) -> Result<Calibration> {
    let name = root_only.display();
    let (is_trace, input) = sniff(root_only)?;
    if !is_trace {
        bail!("{name}: --calibrate takes a function_graph trace of the fault's root alone");
    }
    let (plain, _) = collect(input).with_context(|| format!("cannot read {name}"))?;
    calibrate(faults, &plain).with_context(|| {
        format!(
            "{name}: nothing to calibrate by: both traces need complete faults of one workload, \
             the first with calls inside them"
        )
    })
}

fn collect(trace: Box<dyn Read>) -> Result<(Collector, Summary)> {
    let mut collector = Collector::default();
    let summary = function_graph::read(trace, &mut collector)?;
    Ok((collector, summary))
}
