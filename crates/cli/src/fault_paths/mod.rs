//! Reports on function_graph traces, a part of `pagewise report`.

mod merge;
mod trace;

pub use merge::{merged, stored_report, with_sums};
pub use trace::Trace;

use crate::open::{Opened, open};
use anyhow::{Context, Result, bail};
use pagewise_formats::function_graph::Summary;
use pagewise_model::fault_paths::FaultPaths;
use pagewise_traces::fault_paths::{
    Calibration, Collector, Step, Sums, analyse, calibrate, calibrate_by_notes, estimate,
};
use std::path::Path;

/// A trace that was read, and its report.
pub struct Findings {
    pub report: FaultPaths,
    faults: Collector,
    summary: Summary,
    calibration: Calibration,
}

impl Findings {
    /// The sums behind the report.
    pub fn sums(&self) -> Sums {
        Sums::new(&self.faults, &self.summary, self.calibration)
    }
}

/// Findings of a trace, corrected for the tracer's cost ([`calibration`]).
///
/// # Errors
/// If a file can't be read, or `root_only` can't serve as a measure.
pub fn findings(trace: Trace, root_only: Option<&Path>) -> Result<Findings> {
    let (faults, summary) = collect(trace)?;
    let calibration = calibration(&faults, root_only)?;
    Ok(Findings {
        report: analyse(&faults, &summary, calibration),
        faults,
        summary,
        calibration,
    })
}

/// Findings on the calls that a descent into a trace's faults selects. The trace is read twice:
/// ranges are of corrected times, and the cost of tracing is known only at the end.
///
/// # Errors
/// As [`findings`], and if the trace can't be read again.
pub fn part(
    trace: Trace,
    path: &Path,
    root_only: Option<&Path>,
    steps: Vec<Step>,
) -> Result<FaultPaths> {
    if !path.is_file() {
        bail!("looking into a part of the faults reads the trace twice: give a file, not a pipe");
    }
    let (faults, _) = collect(trace)?;
    let calibration = calibration(&faults, root_only)?;
    let Opened::Trace(trace) = open(path)? else {
        bail!("it changed while it was read");
    };
    let mut collector = Collector::descending(steps, calibration);
    let summary = trace.read(&mut collector)?;
    Ok(analyse(&collector, &summary, calibration))
}

/// The tracer's cost: as measured against `root_only`, a trace of the same workload with only the
/// root function; otherwise as `pagewise trace` measured it during the capture; otherwise as
/// estimated from the trace.
fn calibration(faults: &Collector, root_only: Option<&Path>) -> Result<Calibration> {
    Ok(match root_only {
        Some(path) => measured(faults, path)?,
        None => calibrate_by_notes(faults).unwrap_or_else(|| estimate(faults)),
    })
}

fn measured(faults: &Collector, root_only: &Path) -> Result<Calibration> {
    let name = root_only.display();
    let Opened::Trace(trace) = open(root_only)? else {
        bail!("{name}: --calibrate takes a function_graph trace of only the fault's root");
    };
    let (plain, _) = collect(trace).with_context(|| format!("cannot read {name}"))?;
    calibrate(faults, &plain).with_context(|| format!("{name} cannot calibrate this trace"))
}

fn collect(trace: Trace) -> Result<(Collector, Summary)> {
    let mut collector = Collector::default();
    let summary = trace.read(&mut collector)?;
    Ok((collector, summary))
}
