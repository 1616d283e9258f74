//! What a recording on this machine means, with the cures that this machine offers.

use crate::analysis::analyse;
use anyhow::{Context, Result};
use pagewise_analyse::plan::{self, Rules};
use pagewise_linux::proc::runtime::{self, Libc};
use pagewise_linux::process::Launch;
use pagewise_linux::process::library::surroundings;
use pagewise_linux::sys::mapped_file::MappedFile;
use pagewise_model::advice::Advice;
use pagewise_model::findings::Findings;
use pagewise_model::formats::perf_data::PerfData;
use pagewise_model::recording::Surroundings;
use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};

/// What the perf.data file at `path` means.
///
/// # Errors
/// When it cannot be read or is no perf.data file.
pub fn explain(path: &Path) -> Result<Findings> {
    let name = path.display();
    let file = File::open(path).with_context(|| format!("cannot open {name}"))?;
    let mapped = MappedFile::of(&file).with_context(|| format!("cannot read {name}"))?;
    let data = PerfData::parse(&mapped).with_context(|| format!("cannot read {name}"))?;
    let analysis = analyse(&data, |done| mapped.release(done));
    Ok(analysis.findings()?)
}

/// Puts our library for programs of a libc into a file, where this build has one.
pub type OwnLibrary = fn(Libc) -> Result<PathBuf>;

/// What a proof of `command` tries beside what is advised.
///
/// # Errors
/// When a rule that ships with us has a mistake.
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

/// Path of our library for `command`, where the command can load it and it has something to do.
fn own_library(findings: &Findings, command: &[OsString], library: OwnLibrary) -> Option<String> {
    if findings.file_reads.iter().all(|file| file.is_code) {
        return None;
    }
    let program = Launch::of(command)?.path().ok()?;
    if runtime::obstacle(&program).is_some() {
        return None;
    }
    let library = library(runtime::libc(&program)?).ok()?;
    library.into_os_string().into_string().ok()
}
