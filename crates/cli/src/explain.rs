//! What a recording on this machine means, with the cures that this machine offers.

use crate::analysis::analyse;
use anyhow::{Context, Result};
use pagewise_analyse::plan::{self, Rules};
use pagewise_linux::process::library::surroundings;
use pagewise_linux::sys::mapped_file::MappedFile;
use pagewise_model::advice::Advice;
use pagewise_model::findings::Findings;
use pagewise_model::formats::perf_data::PerfData;
use std::fs::File;
use std::path::Path;

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

/// What a proof tries beside what is advised.
///
/// # Errors
/// When a rule that ships with us has a mistake.
pub fn trials(findings: &Findings) -> Result<Vec<Advice>> {
    Ok(plan::trials(findings, &Rules::shipped()?, &surroundings()))
}
