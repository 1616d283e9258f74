//! Reports on perf.data: on its faults, on its samples of CPU time and other events, or on both.

use super::{Args, export_profile, name_of, shown_name};
use crate::export::{Written, tables};
use crate::seen::{Seen, seen};
use crate::{page, profile_input, terminal};
use anyhow::{Result, anyhow, bail};
use pagewise_formats::perf_data::{PerfData, ReadError};
use pagewise_linux::sys::mapped_file::MappedFile;
use pagewise_model::findings::Findings;
use pagewise_model::profile::Profile;
use pagewise_operate::analysis;
use pagewise_profile::{ProfileRules, summarise};
use pagewise_report::exports::tables::Builds;
use pagewise_report::exports::tables::privacy::{redacted, redacted_command};
use pagewise_report::html::{render, render_profile, render_with_profile};
use pagewise_report::text;
use std::collections::BTreeSet;
use std::path::Path;

/// Reports on the recording in these bytes.
///
/// # Errors
/// If they are not a recording, or have nothing to report on.
pub fn report(bytes: &MappedFile, file: &Path, args: &Args) -> Result<()> {
    let data = PerfData::parse(bytes).map_err(explain)?;
    if let Some(error) = data.sidecar_error() {
        let name = name_of(file);
        eprintln!("pagewise: {name}: what the recorder noted about the run is unreadable: {error}");
    }
    let is_whole = args.cgroup.is_none() && args.descent.stretch().is_ok_and(|at| at.is_none());
    if let Some(folder) = args.tables()?.filter(|_| is_whole) {
        let (analysis, builds) =
            analysis::analyse_with_builds(&data, |offset| bytes.release(offset));
        let tables = tables::of_recording(&data, analysis, &builds, 0, args.include())?;
        return tell(&tables::write(tables, folder)?);
    }
    if args.wants_samples() {
        let profile = profile_input::of_recording(&data, |offset| bytes.release(offset))?;
        return report_profile(profile, file, args);
    }
    let analysis = analysis::analyse(&data, |offset| bytes.release(offset));
    if args
        .descent
        .stretch()
        .map_err(anyhow::Error::msg)?
        .is_some()
        || args.cgroup.is_some()
    {
        let profile = analysis.into_profile().unwrap_or_default();
        return report_profile(profile, file, args);
    }
    show(&seen(&data, &analysis)?, file, args)
}

/// Reports on a run whose findings were stored.
///
/// # Errors
/// If something is requested that only the recording itself contains.
pub fn report_stored(stored: Findings, file: &Path, args: &Args) -> Result<()> {
    let steps = !args.descent.steps().map_err(anyhow::Error::msg)?.is_empty();
    if let Some(folder) = args.tables()?.filter(|_| !steps && args.cgroup.is_none()) {
        let tables = tables::of_run(&stored, None, &Builds::default(), args.include())?;
        return tell(&tables::write(tables, folder)?);
    }
    if args.wants_samples() || args.cgroup.is_some() || args.calibrate.is_some() || steps {
        bail!(
            "--export, --push, --cgroup, --calibrate and parts need the recording itself (pagewise doctor --record FILE), which this result does not contain"
        );
    }
    show(&Seen::Run(Box::new(stored), None), file, args)
}

/// Reports on a profile alone, or exports it: all of it, or the requested period.
///
/// # Errors
/// If it has no sample there.
pub fn report_profile(profile: Profile, file: &Path, args: &Args) -> Result<()> {
    let profile = match args.descent.stretch().map_err(anyhow::Error::msg)? {
        Some(_) if !profile.has_times => {
            bail!("--range needs times, which this input lacks")
        }
        Some((from, to)) => profile_input::within(&profile, from, to)?,
        None => profile,
    };
    let profile = match &args.cgroup {
        Some(path) => in_cgroup(&profile, path)?,
        None => profile,
    };
    if profile.samples.is_empty() {
        bail!("it has no samples");
    }
    let seen = summarise(&profile, &ProfileRules::shipped()?);
    if let Some(folder) = args.tables()? {
        let tables = tables::of_profile(&seen, &profile, &Builds::default(), args.include())?;
        return tell(&tables::write(tables, folder)?);
    }
    if args.wants_samples() {
        return export_profile(&profile, file, args);
    }
    show(&Seen::Profile(Box::new(seen), &profile), file, args)
}

/// The samples of one control group.
fn in_cgroup(profile: &Profile, path: &str) -> Result<Profile> {
    let known: BTreeSet<&str> = profile
        .threads
        .iter()
        .map(|thread| &*thread.cgroup)
        .filter(|path| !path.is_empty())
        .collect();
    if known.is_empty() {
        bail!(
            "--cgroup needs samples with their control group: record with pagewise record \
             (Linux 5.7 or newer) or perf record --all-cgroups"
        );
    }
    let found = profile.of_cgroup(path);
    if found.samples.is_empty() {
        let some: Vec<&str> = known.iter().copied().take(10).collect();
        bail!("no sample ran in {path}; there are {}", some.join(", "));
    }
    Ok(found)
}

fn tell(Written(words): &Written) -> Result<()> {
    terminal::tell(words);
    Ok(())
}

fn show(seen: &Seen<'_>, file: &Path, args: &Args) -> Result<()> {
    if !args.redact {
        return show_all(seen, file, args);
    }
    let hide = |profile: &Profile| Profile {
        command: redacted_command(&profile.command),
        notes: Vec::new(),
        ..profile.clone()
    };
    match seen {
        Seen::Run(found, profile) => {
            let profile = profile.map(hide);
            let found = Box::new(redacted(&**found)?);
            show_all(&Seen::Run(found, profile.as_ref()), file, args)
        }
        Seen::Profile(found, profile) => {
            let found = Box::new(redacted(&**found)?);
            show_all(&Seen::Profile(found, &hide(profile)), file, args)
        }
    }
}

fn show_all(seen: &Seen<'_>, file: &Path, args: &Args) -> Result<()> {
    match seen {
        Seen::Run(found, _) => terminal::present(&**found, args.json, text::render)?,
        Seen::Profile(found, _) => terminal::present(&**found, args.json, text::profile::render)?,
    }
    let Some(path) = &args.output else {
        return Ok(());
    };
    let page = match seen {
        Seen::Run(found, None) => render(found)?,
        Seen::Run(found, Some(profile)) => {
            render_with_profile(found, profile, &shown_name(file, args))?
        }
        Seen::Profile(found, profile) => render_profile(profile, found, &shown_name(file, args))?,
    };
    page::write(path, &page)
}

/// The reader's message, and a remedy if the bytes are of another kind.
fn explain(error: ReadError) -> anyhow::Error {
    match error {
        ReadError::NotPerfData { found } => anyhow!(
            "this is not a recording: it starts with '{found}'. pagewise report reads perf.data, perf script text, folded stacks, function_graph traces and trace.dat"
        ),
        other => other.into(),
    }
}
