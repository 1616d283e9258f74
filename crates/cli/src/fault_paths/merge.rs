//! Merges reports of traces that were stored as JSON.

use crate::bytes;
use crate::stored::{kind, this_version};
use anyhow::{Context, Result, bail};
use pagewise_model::answer::{Document, Evidence, Kind};
use pagewise_model::fault_paths::{FaultPaths, TracedFaults};
use pagewise_model::quantity::counted;
use pagewise_traces::fault_paths::{Calibration, Sums, Total, analyse};
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// The part of a stored report needed to add it.
#[derive(Deserialize)]
struct Stored<S> {
    evidence: Part<S>,
}

/// The sums stored with the findings.
#[derive(Deserialize)]
struct Part<S> {
    sums: Option<S>,
}

/// The part of the sums needed from all reports before the first is added.
#[derive(Deserialize)]
struct Costs {
    costs: Option<Vec<Calibration>>,
}

/// The report on all the traces whose reports are stored in these files, each corrected for its own
/// cost of tracing, and the sums behind it; a single report may lack them.
///
/// # Errors
/// If one can't be read, is not a report of a trace, lacks its sums, or was made by another
/// version.
pub fn merged(files: &[PathBuf]) -> Result<(FaultPaths, Option<Sums>)> {
    if let [file] = files {
        let bytes = bytes::open(file)?;
        let stored = stored::<IgnoredAny>(&bytes);
        let stored = stored.with_context(|| file.display().to_string())?;
        if stored.is_none() {
            return Ok((stored_report(&bytes)?, None));
        }
    }
    let mut costs = Vec::new();
    for file in files {
        costs.extend(sums_of::<Costs>(file)?.costs.into_iter().flatten());
    }
    let mut total = Total::new(&costs);
    for file in files {
        let sums = sums_of::<Sums>(file)?;
        total
            .add(&sums)
            .with_context(|| file.display().to_string())?;
    }
    let (calibration, reports) = (total.calibration(), total.reports());
    let (collector, summary, duration_ns) = total.finish();
    let mut findings = analyse(&collector, &summary, calibration);
    findings.duration_ns = duration_ns;
    if reports > 1 {
        findings.notes.push(format!(
            "{} were merged, so figures about single faults or their order (contrasts, timeline, \
             lock holders) are left out",
            counted(reports, "report")
        ));
    }
    let sums = Sums::new(&collector, &summary, calibration).over(duration_ns);
    Ok((findings, Some(sums)))
}

/// The sums in a file, if it has any.
fn stored<S: DeserializeOwned>(bytes: &[u8]) -> Result<Option<S>> {
    is_of_trace(bytes, "merged")?;
    let stored: Stored<S> =
        serde_json::from_slice(bytes).context("it is not a report of this version of pagewise")?;
    Ok(stored.evidence.sums)
}

/// The sums of a stored report.
fn sums_of<S: DeserializeOwned>(file: &Path) -> Result<S> {
    let bytes = bytes::open(file)?;
    let sums = stored(&bytes).and_then(|sums| {
        sums.context(
            "it lacks the sums that merging needs: store the report again with pagewise report --json --sums TRACE",
        )
    });
    sums.with_context(|| file.display().to_string())
}

/// A stored report on a trace.
///
/// # Errors
/// If it is not one, or was made by another version.
pub fn stored_report(text: &[u8]) -> Result<FaultPaths> {
    is_of_trace(text, "compared")?;
    serde_json::from_slice(text).context("not a complete result of pagewise report")
}

/// Checks that a document is a report on a trace, of this version; otherwise it cannot be `used`.
fn is_of_trace(text: &[u8], used: &str) -> Result<()> {
    let (kind, head) = kind(text)?;
    if kind != Kind::FaultPaths {
        let kind = head.kind.unwrap_or_default();
        bail!(
            "only reports of traces can be {used} (pagewise report --json TRACE), this is {kind}"
        );
    }
    this_version(&head, "report on the trace again")
}

/// Findings of a trace, together with the sums that make them mergeable.
#[derive(Serialize)]
pub struct Summed<'a> {
    found: &'a TracedFaults,
    sums: &'a Sums,
}

impl Evidence for Summed<'_> {
    const KIND: Kind = Kind::FaultPaths;

    fn write<M: SerializeMap>(&self, parts: &mut M) -> Result<(), M::Error> {
        parts.serialize_entry(&Self::KIND, self.found)?;
        parts.serialize_entry("sums", self.sums)
    }
}

/// A report together with its sums.
pub fn with_sums<'a>(findings: &'a FaultPaths, sums: &'a Sums) -> Document<Summed<'a>> {
    let found = &findings.evidence;
    findings.over(Summed { found, sums })
}
