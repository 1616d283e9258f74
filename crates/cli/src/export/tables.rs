//! Tables of recordings, for questions over many: a folder of Parquet files.

use super::{Written, inside};
use crate::seen::{Seen, seen};
use crate::{bytes, profile_input};
use anyhow::{Context, Result};
use clap::ValueEnum;
use pagewise_answer::recording::Analysis;
use pagewise_formats::perf_data::PerfData;
use pagewise_model::answer::Document;
use pagewise_model::findings::Findings;
use pagewise_model::loss::LossKind;
use pagewise_model::paged_run::PagedRun;
use pagewise_model::profile::Profile;
use pagewise_model::profile_findings::ProfileFindings;
use pagewise_operate::analysis;
use pagewise_operate::destination::{self, Destination};
use pagewise_report::exports::tables::privacy::Include;
use pagewise_report::exports::tables::{Builds, Figures, Tables};
use std::io::Write;
use std::path::Path;
use tempfile::TempDir;

/// What tables leave out or hash unless it is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Part {
    /// Command lines
    Commands,
    /// Paths of files, also in sentences
    Paths,
    /// Values of environment variables
    Environment,
}

/// Options of commands that record and then write tables.
#[derive(clap::Args, Debug, Default)]
pub struct Options {
    /// Write tables for questions over many hosts to the folder of -o, instead of a recording or a
    /// report
    #[arg(long, value_name = "FORMAT", value_parser = ["parquet"], requires = "output")]
    pub export: Option<String>,

    #[command(flatten)]
    pub included: Included,
}

/// What is not hidden.
#[derive(clap::Args, Debug, Default)]
pub struct Included {
    /// What tables hold as it is, instead of leaving it out or hashing it (comma-separated)
    #[arg(
        long,
        value_enum,
        value_name = "PART",
        value_delimiter = ',',
        requires = "export"
    )]
    include: Vec<Part>,
}

impl Included {
    /// Whether anything is.
    pub fn is_any(&self) -> bool {
        !self.include.is_empty()
    }

    /// What to write as it is.
    pub fn parts(&self) -> Include {
        let has = |part| self.include.contains(&part);
        Include {
            commands: has(Part::Commands),
            paths: has(Part::Paths),
            environment: has(Part::Environment),
        }
    }
}

/// The folder for tables, if that is what `--export` and `-o` ask for.
pub fn folder<'a>(export: Option<&str>, output: Option<&'a Path>) -> Option<&'a Path> {
    let is_table = |path: &Path| path.extension().is_some_and(|ending| ending == "parquet");
    output.filter(|path| export == Some("parquet") && !is_table(path))
}

/// A place beside the tables for the recording that they are made of; it goes with its drop.
///
/// # Errors
/// If nothing can be written there.
pub fn aside(folder: &Path) -> Result<TempDir> {
    let cannot = || format!("cannot make the folder {}", folder.display());
    destination::make_folder(folder)?;
    let name = tempfile::Builder::new()
        .prefix(".recording-")
        .tempdir_in(folder);
    name.with_context(cannot)
}

/// The tables of a run under user-level paging.
pub fn of_paged_run(run: &Document<PagedRun>, include: Include) -> Result<Tables> {
    let mut tables = Tables::from_document(run, &Figures::of_paged_run(run), include)?;
    tables.add_paged_run(run)?;
    Ok(tables)
}

/// The tables of an observed run, with its samples where there are some.
pub fn of_run(
    findings: &Findings,
    profile: Option<&Profile>,
    builds: &Builds,
    include: Include,
) -> Result<Tables> {
    let mut tables = Tables::from_document(findings, &Figures::of_run(findings), include)?;
    tables.add_run(findings)?;
    if let Some(profile) = profile {
        tables.add_profile(profile, builds)?;
    }
    Ok(tables)
}

/// The tables of a profile.
pub fn of_profile(
    findings: &ProfileFindings,
    profile: &Profile,
    builds: &Builds,
    include: Include,
) -> Result<Tables> {
    let mut tables = Tables::from_document(findings, &Figures::of_profile(profile), include)?;
    tables.add_profile(profile, builds)?;
    Ok(tables)
}

/// The tables of a recording, and of `unsent` earlier ones that were dropped the count.
///
/// # Errors
/// If it has nothing to report on.
pub fn of_recording(
    data: &PerfData<'_>,
    analysis: Analysis,
    builds: &[(String, Vec<u8>)],
    unsent: u64,
    include: Include,
) -> Result<Tables> {
    let builds = named(builds);
    let kind = LossKind::UnsentRecordings;
    match seen(data, &analysis)? {
        Seen::Profile(mut found, profile) => {
            found.losses.add(kind, unsent);
            of_profile(&found, profile, &builds, include)
        }
        Seen::Run(mut found, _) => {
            found.losses.add(kind, unsent);
            let samples = samples(data, analysis);
            of_run(&found, samples.as_ref(), &builds, include)
        }
    }
}

/// Writes the tables of the perf.data file at `path`; with `findings`, of these instead of what it
/// shows by itself: they may have a proof. `unsent` earlier recordings were dropped.
///
/// # Errors
/// If it can't be read, or the tables can't be written.
pub fn export(
    path: &Path,
    findings: Option<&Findings>,
    request: &Options,
    unsent: u64,
    folder: &Path,
) -> Result<Written> {
    let bytes = bytes::open(path)?;
    let data = PerfData::parse(&bytes)?;
    let (analysis, builds) = analysis::analyse_with_builds(&data, |offset| bytes.release(offset));
    let include = request.included.parts();
    let tables = match findings {
        None => of_recording(&data, analysis, &builds, unsent, include)?,
        Some(findings) => {
            let samples = samples(&data, analysis);
            of_run(findings, samples.as_ref(), &named(&builds), include)?
        }
    };
    write(tables, folder)
}

/// The samples of a recording: those beside its faults, or the faults themselves.
fn samples(data: &PerfData<'_>, analysis: Analysis) -> Option<Profile> {
    let beside = analysis.into_profile();
    beside
        .filter(|profile| !profile.samples.is_empty())
        .or_else(|| profile_input::of_recording(data, |_| {}).ok())
}

/// Build ids by the short names of their files.
fn named(found: &[(String, Vec<u8>)]) -> Builds {
    let mut builds = Builds::default();
    for (module, id) in found {
        builds.add(module, id);
    }
    builds
}

/// Writes each table to a file of its own.
pub fn write(tables: Tables, folder: &Path) -> Result<Written> {
    destination::make_folder(folder)?;
    let files = tables.into_files();
    for (name, bytes) in &files {
        let path = inside(folder, &format!("{name}.parquet"));
        let mut file = Destination::create(&path)?;
        file.write_all(bytes)
            .with_context(|| format!("cannot write {}", path.display()))?;
        file.finish()?;
    }
    let names: Vec<&str> = files.keys().copied().collect();
    Ok(Written(format!(
        "{}: tables {}",
        folder.display(),
        names.join(", ")
    )))
}
