//! What a recording on this machine means, with the cures that this machine offers.

use crate::analysis;
use anyhow::Result;
use pagewise_analyse::plan::{self, Rules};
use pagewise_linux::page_cache::page_read;
use pagewise_linux::proc::runtime::{self, Libc};
use pagewise_linux::process::Launch;
use pagewise_linux::process::library::surroundings;
use pagewise_model::advice::Advice;
use pagewise_model::findings::Findings;
use pagewise_model::recording::Surroundings;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// What the perf.data file at `path` means.
///
/// # Errors
/// When it cannot be read or is no perf.data file.
pub fn explain(path: &Path) -> Result<Findings> {
    let analysis = analysis::of_file(path)?;
    let read = |path: &Path| Some((path.to_str()?.to_owned(), page_read(path)?));
    let around = Surroundings {
        page_reads: analysis.read_at_random().filter_map(read).collect(),
        ..analysis.surroundings().clone()
    };
    Ok(analysis.findings_among(&around)?)
}

/// Puts our library for programs of a libc into a file, where this build has one.
pub type OwnLibrary = fn(Libc) -> Result<PathBuf>;

/// What a proof of `command` tries in addition to what is advised.
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
