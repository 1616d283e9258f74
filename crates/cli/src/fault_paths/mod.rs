//! Reports on function_graph traces, a part of `pagewise report`.

mod merge;
mod trace;

pub use merge::{is_stored, merged, with_sums};
pub use trace::{Opened, Trace, open};

use anyhow::{Context, Result, bail};
use pagewise_analyse::fault_paths::{
    Calibration, Collector, Sums, analyse, calibrate, calibrate_by_notes, estimate,
};
use pagewise_model::fault_paths::FaultPaths;
use pagewise_model::formats::function_graph::Summary;
use std::path::Path;

/// What a trace shows, corrected for the tracer's cost as measured against `root_only`, a trace
/// of the same workload with the root function alone; or else as `pagewise trace` measured it
/// while it captured; or else as estimated from the trace. And the sums behind it.
///
/// # Errors
/// When a file can't be read, or `root_only` can't serve as a measure.
pub fn findings(trace: Trace, root_only: Option<&Path>) -> Result<(FaultPaths, Sums)> {
    let (faults, summary) = collect(trace)?;
    let calibration = match root_only {
        Some(path) => measured(&faults, path)?,
        None => calibrate_by_notes(&faults).unwrap_or_else(|| estimate(&faults)),
    };
    let sums = Sums::of(&faults, &summary);
    Ok((analyse(&faults, &summary, calibration), sums))
}

fn measured(faults: &Collector, root_only: &Path) -> Result<Calibration> {
    let name = root_only.display();
    let Opened::Trace(trace) = open(root_only)? else {
        bail!("{name}: --calibrate takes a function_graph trace of the fault's root alone");
    };
    let (plain, _) = collect(trace).with_context(|| format!("cannot read {name}"))?;
    calibrate(faults, &plain).with_context(|| {
        format!(
            "{name}: nothing to calibrate by: both traces need complete faults of one workload, \
             the first with calls inside them"
        )
    })
}

fn collect(trace: Trace) -> Result<(Collector, Summary)> {
    let mut collector = Collector::default();
    let summary = trace.read(&mut collector)?;
    Ok((collector, summary))
}
