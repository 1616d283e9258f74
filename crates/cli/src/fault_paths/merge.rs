//! Reports of traces that were stored as JSON, added up into one.

use crate::{bytes, input};
use anyhow::{Context, Result, bail};
use pagewise_analyse::fault_paths::{Sums, Total, analyse, calibrate_by_notes, estimate};
use pagewise_model::fault_paths::{FaultPaths, Missing, SCHEMA_VERSION, Source};
use serde::Deserialize;
use std::path::{Path, PathBuf};

/// What a stored report must hold to be added.
#[derive(Deserialize)]
struct Stored {
    kind: Option<String>,
    calibration: Option<Calibrated>,
    sums: Option<Sums>,
}

#[derive(Deserialize)]
struct Calibrated {
    source: Source,
}

/// Whether a file holds a JSON document.
///
/// # Errors
/// When it can't be read.
pub fn is_stored(path: &Path) -> Result<bool> {
    if !path.is_file() {
        return Ok(false);
    }
    let (head, _) = input::peek(input::open(path)?, 16)?;
    Ok(head.trim_ascii_start().starts_with(b"{"))
}

/// The report on all the traces whose reports are stored in these files, and the sums behind it; a
/// single report may lack them.
///
/// # Errors
/// When one can't be read, is no report of a trace, lacks what is to be added, or was made by
/// another version.
pub fn merged(files: &[PathBuf]) -> Result<(FaultPaths, Option<Sums>)> {
    if let [file] = files {
        let bytes = bytes::open(file)?;
        if !stored(&bytes)
            .with_context(|| file.display().to_string())?
            .has_sums()
        {
            return Ok((stored_report(&bytes)?, None));
        }
    }
    let mut total = Total::default();
    let mut measured = 0;
    for file in files {
        measured += u64::from(add(&mut total, file).with_context(|| file.display().to_string())?);
    }
    let (collector, summary, duration_ns) = total.finish();
    let by_notes = calibrate_by_notes(&collector);
    if measured > 0 && by_notes.is_none() {
        eprintln!(
            "pagewise: {measured} of the reports had the tracer's cost measured by --calibrate, \
             which can't be merged: it is estimated from the traces instead"
        );
    }
    let calibration = by_notes.unwrap_or_else(|| estimate(&collector));
    let mut findings = analyse(&collector, &summary, calibration);
    findings.duration_ns = duration_ns;
    if files.len() > 1 {
        findings.missing.push(Missing {
            count: files.len() as u64,
            what: "reports were merged, and what is told of single faults or of their order \
                   (contrasts, timeline, lock holders) is in none of the figures"
                .to_owned(),
        });
    }
    let sums = Sums::of(&collector, &summary).over(duration_ns);
    Ok((findings, Some(sums)))
}

impl Stored {
    fn has_sums(&self) -> bool {
        self.sums.is_some()
    }
}

/// What a file holds to be added.
fn stored(bytes: &[u8]) -> Result<Stored> {
    let stored: Stored = serde_json::from_slice(bytes).context("it is no report of pagewise")?;
    if stored.kind.as_deref() != Some("fault_paths") {
        bail!(
            "only reports of traces can be merged (pagewise report --json --sums TRACE), this is {}",
            stored.kind.as_deref().unwrap_or("something else")
        );
    }
    Ok(stored)
}

/// A finished report on a trace.
///
/// # Errors
/// When it is none, or was made by another version.
pub fn stored_report(text: &[u8]) -> Result<FaultPaths> {
    let value: serde_json::Value = serde_json::from_slice(text).context("it is not JSON")?;
    match value["kind"].as_str() {
        Some("fault_paths") => {}
        Some(kind) => bail!("results of the kind \"{kind}\" can't be compared: fault_paths can"),
        None => bail!("this JSON does not say what kind of result it is (\"kind\")"),
    }
    let version = value["schema_version"].as_u64();
    if version != Some(u64::from(SCHEMA_VERSION)) {
        bail!(
            "its schema_version is {}, this pagewise reads {SCHEMA_VERSION}: report on the trace \
             again",
            version.map_or("missing".to_owned(), |version| version.to_string()),
        );
    }
    serde_json::from_value(value).context("not a whole result of pagewise report")
}

/// Adds a stored report; whether its calibration was measured by a second trace.
fn add(total: &mut Total, file: &Path) -> Result<bool> {
    let bytes = bytes::open(file)?;
    let stored = stored(&bytes)?;
    let Some(sums) = stored.sums else {
        bail!(
            "it lacks the sums that a merge adds up: store the report again with \
             pagewise report --json --sums TRACE"
        );
    };
    total.add(&sums)?;
    let source = stored.calibration.map(|calibration| calibration.source);
    Ok(source == Some(Source::RootOnly))
}

/// A report as JSON together with the sums that make it mergeable.
///
/// # Errors
/// When a number has no form in JSON.
pub fn with_sums(findings: &FaultPaths, sums: &Sums) -> Result<String> {
    let text = pagewise_report::json::to_string(findings)?;
    let open = text.trim_end().strip_suffix('}').unwrap_or(&text);
    let sums = pagewise_report::json::to_string(sums)?;
    Ok(format!("{open},\"sums\":{}}}\n", sums.trim_end()))
}
