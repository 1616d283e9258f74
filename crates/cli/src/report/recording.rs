//! Reports on perf.data: on its faults, on its samples of CPU time and other events, or on both.

use super::name_of;
use super::request::{Action, Export, Request, Show};
use crate::export::{ProfileExport, tables};
use crate::seen::{Seen, seen};
use crate::{page, profile_input, terminal};
use anyhow::{Context, Result, anyhow, bail};
use pagewise_answer::recording::Analysis;
use pagewise_formats::perf_data::{PerfData, ReadError};
use pagewise_linux::sys::mapped_file::MappedFile;
use pagewise_model::findings::Findings;
use pagewise_model::memory::{IN_USE, profile_of_touched};
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
pub fn report(bytes: &MappedFile, file: &Path, request: &Request<'_>) -> Result<()> {
    let data = PerfData::parse(bytes).map_err(explain)?;
    if let Some(error) = data.sidecar_error() {
        let name = name_of(file);
        eprintln!("pagewise: {name}: what the recorder noted about the run is unreadable: {error}");
    }
    if request.is_of_some_samples() {
        let analysis = analysis::analyse(&data, |offset| bytes.release(offset));
        let profile = analysis.into_profile().unwrap_or_default();
        return report_profile(profile, file, request);
    }
    match &request.action {
        Action::Tables(tables) => {
            let (analysis, builds) =
                analysis::analyse_with_builds(&data, |offset| bytes.release(offset));
            tables.write(tables::of_recording(
                &data,
                analysis,
                &builds,
                0,
                tables.include,
            )?)
        }
        Action::Export(export) if export.event == Some(IN_USE) => {
            let analysis = analysis::analyse(&data, |offset| bytes.release(offset));
            report_profile(touched(&analysis)?, file, request)
        }
        Action::Export(_) | Action::Push(_) => {
            let profile = profile_input::of_recording(&data, |offset| bytes.release(offset))?;
            report_profile(profile, file, request)
        }
        Action::Show(show) => {
            let analysis = analysis::analyse(&data, |offset| bytes.release(offset));
            present(&seen(&data, &analysis)?, file, *show)
        }
    }
}

/// The memory at the largest look, by the stacks that touched it first.
fn touched(analysis: &Analysis) -> Result<Profile> {
    let touched = analysis.touched();
    if touched.is_empty() {
        bail!(
            "the recording does not say who touched the memory that was in use: pagewise doctor --record FILE -- CMD notes it, if at least 1 MiB was private"
        );
    }
    Ok(profile_of_touched(&touched))
}

/// Reports on a run whose findings were stored.
///
/// # Errors
/// If the tables cannot be written.
pub fn report_stored(stored: Findings, file: &Path, request: &Request<'_>) -> Result<()> {
    match &request.action {
        Action::Tables(tables) => tables.write(tables::of_run(
            &stored,
            None,
            &Builds::default(),
            tables.include,
        )?),
        Action::Show(show) => present(&Seen::Run(Box::new(stored), None), file, *show),
        Action::Export(_) | Action::Push(_) => bail!("a stored result has no samples"),
    }
}

/// Reports on a profile alone, or exports it: all of it, or the requested period.
///
/// # Errors
/// If it has no sample there.
pub fn report_profile(profile: Profile, file: &Path, request: &Request<'_>) -> Result<()> {
    let profile = match request.period {
        Some(_) if !profile.has_times => bail!("--range needs times, which this input lacks"),
        Some((from, to)) => profile_input::within(&profile, from, to)?,
        None => profile,
    };
    let profile = match request.cgroup {
        Some(path) => in_cgroup(&profile, path)?,
        None => profile,
    };
    if profile.samples.is_empty() {
        bail!("it has no samples");
    }
    let seen = || Ok::<_, anyhow::Error>(summarise(&profile, &ProfileRules::shipped()?));
    match &request.action {
        Action::Tables(tables) => {
            let builds = Builds::default();
            tables.write(tables::of_profile(
                &seen()?,
                &profile,
                &builds,
                tables.include,
            )?)
        }
        Action::Push(push) => push.to.send(&profile, push.event, file),
        Action::Export(export) => export_profile(&profile, file, export),
        Action::Show(show) => present(&Seen::Profile(Box::new(seen()?), &profile), file, *show),
    }
}

/// Writes a profile in the requested format.
fn export_profile(profile: &Profile, file: &Path, export: &Export<'_>) -> Result<()> {
    let before = export.before.map(|path| {
        profile_input::open(path).with_context(|| format!("--before {}", path.display()))
    });
    export.format.export_profile(&ProfileExport {
        profile,
        before: before.transpose()?.as_ref(),
        event: export.event,
        name: &name_of(file),
        output: export.output,
    })
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

/// Shows findings, with names hashed if asked for.
fn present(seen: &Seen<'_>, file: &Path, show: Show<'_>) -> Result<()> {
    if !show.redact {
        return present_all(seen, &name_of(file), show);
    }
    let name = file.file_name();
    let name = name.map_or_else(String::new, |name| name.display().to_string());
    let hide = |profile: &Profile| Profile {
        command: redacted_command(&profile.command),
        notes: Vec::new(),
        ..profile.clone()
    };
    match seen {
        Seen::Run(found, profile) => {
            let profile = profile.map(hide);
            let found = Box::new(redacted(&**found)?);
            present_all(&Seen::Run(found, profile.as_ref()), &name, show)
        }
        Seen::Profile(found, profile) => {
            let found = Box::new(redacted(&**found)?);
            present_all(&Seen::Profile(found, &hide(profile)), &name, show)
        }
    }
}

fn present_all(seen: &Seen<'_>, name: &str, show: Show<'_>) -> Result<()> {
    match seen {
        Seen::Run(found, _) => terminal::present(&**found, show.json, text::render)?,
        Seen::Profile(found, _) => terminal::present(&**found, show.json, text::profile::render)?,
    }
    let Some(path) = show.page else {
        return Ok(());
    };
    let page = match seen {
        Seen::Run(found, None) => render(found)?,
        Seen::Run(found, Some(profile)) => render_with_profile(found, profile, name)?,
        Seen::Profile(found, profile) => render_profile(profile, found, name)?,
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
