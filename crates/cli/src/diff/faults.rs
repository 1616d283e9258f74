//! Two function_graph traces, or two stored results of such traces.

use super::Args;
use crate::fault_paths::Trace;
use crate::open::{Opened, open};
use anyhow::{Context, Result, bail};
use pagewise_formats::function_graph::Summary;
use pagewise_model::answer::Document;
use pagewise_model::fault_diff::FaultDiff;
use pagewise_model::fault_paths::FaultPaths;
use pagewise_traces::fault_paths::{
    Calibration, Collector, Criteria, Input, calibrate, calibrate_by_notes, compare,
    compare_results, estimate,
};
use std::path::Path;

/// Compares two traces.
pub fn traces(
    a: Trace,
    b: Trace,
    args: &Args,
    labels: &(String, String),
) -> Result<Document<FaultDiff>> {
    let (names, a) = (names(args), collected(a, &args.a)?);
    let b = collected(b, &args.b)?;
    for ((collector, _), name) in [&a, &b].into_iter().zip(&names) {
        if collector.faults() == 0 {
            bail!(
                "{name} contains no complete page fault: trace one of exc_page_fault, \
                 do_user_addr_fault, __do_page_fault or handle_mm_fault"
            );
        }
    }
    let costs = costs([&a.0, &b.0], args)?;
    let criteria = Criteria {
        seed: args.seed,
        ..Criteria::default()
    };
    Ok(compare(
        input(&names[0], &labels.0, &a, costs[0]),
        input(&names[1], &labels.1, &b, costs[1]),
        criteria,
    ))
}

/// Compares two results.
pub fn results(
    a: &FaultPaths,
    b: &FaultPaths,
    args: &Args,
    labels: &(String, String),
) -> Result<Document<FaultDiff>> {
    if !args.calibrate.is_empty() {
        bail!("--calibrate is for traces: results are already corrected");
    }
    let names = names(args);
    Ok(compare_results(
        (a, &names[0], &labels.0),
        (b, &names[1], &labels.1),
    ))
}

fn names(args: &Args) -> [String; 2] {
    [&args.a, &args.b].map(|path| path.display().to_string())
}

fn collected(trace: Trace, path: &Path) -> Result<(Collector, Summary)> {
    let mut collector = Collector::for_comparison();
    let summary = trace
        .read(&mut collector)
        .with_context(|| format!("cannot read {}", path.display()))?;
    Ok((collector, summary))
}

fn input<'a>(
    name: &'a str,
    label: &'a str,
    (collector, summary): &'a (Collector, Summary),
    calibration: Calibration,
) -> Input<'a> {
    Input {
        name,
        label,
        collector,
        summary,
        calibration,
    }
}

/// Cost of tracing according to the trace itself.
fn own(faults: &Collector) -> Calibration {
    calibrate_by_notes(faults).unwrap_or_else(|| estimate(faults))
}

/// Cost of tracing in both.
fn costs([a, b]: [&Collector; 2], args: &Args) -> Result<[Calibration; 2]> {
    Ok(match &args.calibrate[..] {
        [] => [own(a), own(b)],
        [root] => [measured(a, root)?; 2],
        [root_a, root_b, ..] => [measured(a, root_a)?, measured(b, root_b)?],
    })
}

fn measured(faults: &Collector, root_only: &Path) -> Result<Calibration> {
    let name = root_only.display();
    let Opened::Trace(trace) = open(root_only)? else {
        bail!("{name}: --calibrate takes a function_graph trace of only the fault's root");
    };
    let (plain, _) = collected(trace, root_only)?;
    calibrate(faults, &plain).with_context(|| format!("{name} cannot calibrate this trace"))
}
