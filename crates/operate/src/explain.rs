//! Explains a recording made on this machine, with the remedies available on it.

use crate::analysis;
use anyhow::{Context, Result};
use pagewise_answer::plan::{self, Rules};
use pagewise_formats::perf_data::{PerfData, replace_sidecar};
use pagewise_linux::page_cache::page_read;
use pagewise_linux::proc::runtime::{self, Libc};
use pagewise_linux::process::Launch;
use pagewise_linux::process::library::surroundings;
use pagewise_linux::sys::mapped_file::MappedFile;
use pagewise_model::advice::Advice;
use pagewise_model::findings::Findings;
use pagewise_model::recording::{Concluded, Sidecar, Surroundings};
use pagewise_model::units::Nanos;
use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};

/// Explains the perf.data file at `path`.
///
/// # Errors
/// If it cannot be read or is not a perf.data file.
pub fn explain(path: &Path) -> Result<Findings> {
    let mut analysis = analysis::of_file(path)?;
    let read = |path: &Path| Some((path.to_str()?.to_owned(), page_read(path)?));
    let page_reads: Vec<_> = analysis.read_at_random().filter_map(read).collect();
    if page_reads.is_empty() {
        return Ok(analysis.findings()?);
    }
    let kept = keep(path, &page_reads);
    analysis.learn(page_reads);
    let mut findings = analysis.findings()?;
    if let Err(error) = kept {
        let (path, notes) = (path.display(), &mut findings.collection.notes);
        notes.push(format!(
            "What reading single pages takes could not be added to {path} ({error:#}); pagewise report will not know it."
        ));
    }
    Ok(findings)
}

/// Adds the time of single-page reads to the recording, so that a later explanation is the same.
fn keep(path: &Path, page_reads: &[(String, Nanos)]) -> Result<()> {
    amend(path, |sidecar| {
        sidecar.surroundings.page_reads = page_reads.to_vec();
    })
}

/// Adds what was concluded from a proof to the recording, so that a later explanation has it too.
///
/// # Errors
/// If the file cannot be written, or is not a recording of ours.
pub fn keep_proof(path: &Path, findings: &Findings) -> Result<()> {
    let Some(proof) = findings.proof.clone() else {
        return Ok(());
    };
    let concluded = Concluded {
        verdict: findings.verdict.clone(),
        diagnoses: findings.diagnoses.clone(),
        advice: findings.advice.clone(),
        proof,
    };
    amend(path, |sidecar| sidecar.concluded = Some(concluded))
}

fn amend(path: &Path, change: impl FnOnce(&mut Sidecar)) -> Result<()> {
    let file = File::options().read(true).write(true).open(path)?;
    let mapped = MappedFile::map(&file)?;
    let data = PerfData::parse(&mapped)?;
    let mut sidecar = data.sidecar().context("it has no sidecar")?.clone();
    change(&mut sidecar);
    Ok(replace_sidecar(&file, &sidecar)?)
}

/// Writes our library for programs of a libc to a file, if this build has one.
pub type OwnLibrary = fn(Libc) -> Result<PathBuf>;

/// Settings that a proof of `command` tries in addition to those advised.
///
/// # Errors
/// If a rule that ships with Pagewise is invalid.
pub fn trials(
    findings: &Findings,
    command: &[OsString],
    library: OwnLibrary,
) -> Result<Vec<Advice>> {
    let around = Surroundings {
        own_library: own_library(findings, command, library),
        ..surroundings()
    };
    Ok(plan::trials(findings, &Rules::shipped()?, &around))
}

/// Path of our library for `command`, if the command can load it and it has something to do.
fn own_library(findings: &Findings, command: &[OsString], library: OwnLibrary) -> Option<String> {
    let reads = findings.file_reads.iter().any(|file| !file.is_code);
    let populates = findings.time.populate_requested.0 > 0;
    if !reads && !populates {
        return None;
    }
    let program = Launch::from_command(command)?.path().ok()?;
    if runtime::obstacle(&program).is_some() {
        return None;
    }
    let library = library(runtime::libc(&program)?).ok()?;
    library.into_os_string().into_string().ok()
}
