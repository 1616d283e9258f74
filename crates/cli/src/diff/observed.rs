//! Two observed runs: their samples, their costs, or both.

use super::{Args, profiles};
use crate::terminal;
use anyhow::{Result, bail};
use pagewise_compare::profile_diff::SettingRules;
use pagewise_compare::run_diff::{Run, compare};
use pagewise_formats::perf_data::PerfData;
use pagewise_linux::sys::mapped_file::MappedFile;
use pagewise_model::answer::Document;
use pagewise_model::contention::Contention;
use pagewise_model::findings::Findings;
use pagewise_model::profile::Profile;
use pagewise_model::run_diff::RunDiff;
use pagewise_operate::analysis;
use pagewise_report::html::render_run_diff;
use pagewise_report::text::Style;
use std::process::ExitCode;

/// The data of a run; at least one of the two.
pub struct Observed {
    profile: Option<Box<Profile>>,
    findings: Option<Box<Findings>>,
}

impl Observed {
    /// Samples only.
    pub fn of_profile(profile: Profile) -> Self {
        Self {
            profile: Some(Box::new(profile)),
            findings: None,
        }
    }

    /// The stored findings of a run, without its samples.
    pub fn of_findings(stored: Findings) -> Self {
        Self {
            profile: None,
            findings: Some(Box::new(stored)),
        }
    }
}

/// The content of a recording.
///
/// # Errors
/// If it is not a recording, or has neither samples nor totals to compare.
pub fn read(bytes: &MappedFile) -> Result<Observed> {
    let data = PerfData::parse(bytes)?;
    let analysis = analysis::analyse(&data, |offset| bytes.release(offset));
    let findings = match analysis.own_cost() {
        Some(_) => Some(Box::new(analysis.findings()?)),
        None => None,
    };
    let has_samples = |profile: &Profile| !profile.samples.is_empty();
    let profile = analysis.into_profile().filter(has_samples);
    // Page faults are no part of the profile that goes with an account of them.
    let of_faults = || analysis::profile(&data, |offset| bytes.release(offset));
    let profile = match (&profile, &findings) {
        (None, None) => Some(of_faults()).filter(has_samples),
        _ => profile,
    };
    if findings.is_none() && profile.is_none() {
        bail!("it has no samples to compare; record with pagewise record or perf record -g");
    }
    Ok(Observed {
        profile: profile.map(Box::new),
        findings,
    })
}

/// Compares what both have.
///
/// # Errors
/// If they have nothing in common.
pub fn run(a: &Observed, b: &Observed, args: &Args, labels: &(String, String)) -> Result<ExitCode> {
    let runs = match args.is_of_stretches() {
        true => None,
        false => runs(a, b, labels)?,
    };
    if let (Some(a), Some(b)) = (&a.profile, &b.profile) {
        return profiles::run(a, b, runs, args, labels);
    }
    let Some(runs) = runs else {
        bail!(
            "they have nothing in common to compare: neither samples (pagewise record, perf record -g) nor whole runs of a command (pagewise doctor or record -- CMD, doctor --json)"
        );
    };
    show(&runs, args)
}

/// Prints the differences of two whole runs.
///
/// # Errors
/// If something is requested that only samples can answer.
pub fn show(runs: &Document<RunDiff>, args: &Args) -> Result<ExitCode> {
    only_for_samples(args)?;
    if let Some(path) = &args.output {
        let text = pagewise_report::text::run_diff::render(runs, 100, Style::PLAIN);
        crate::page::write(path, &render_run_diff(runs, &text)?)?;
    }
    terminal::present(runs, args.json, pagewise_report::text::run_diff::render)?;
    Ok(ExitCode::SUCCESS)
}

/// The differences of the runs as wholes, if both have findings.
fn runs(
    a: &Observed,
    b: &Observed,
    labels: &(String, String),
) -> Result<Option<Document<RunDiff>>> {
    let (Some(of_a), Some(of_b)) = (&a.findings, &b.findings) else {
        return Ok(None);
    };
    let run = |findings, name, observed: &Observed| Run {
        findings,
        name,
        contended: contended(observed),
    };
    let (a, b) = (run(of_a, &*labels.0, a), run(of_b, &*labels.1, b));
    Ok(compare(a, b, &SettingRules::shipped()?))
}

/// Refuses options that only samples can answer.
fn only_for_samples(args: &Args) -> Result<()> {
    let given = [
        ("--fail-if", !args.fail_if.is_empty()),
        ("--event", args.event.is_some()),
        ("--shares", args.shares),
        ("--calibrate", !args.calibrate.is_empty()),
    ];
    super::refuse(
        &given,
        "needs samples in both: record with pagewise record -- CMD",
    )
}

/// How much other programs used the CPUs meanwhile; the maximum if unknown.
fn contended(observed: &Observed) -> f64 {
    let known = observed
        .profile
        .as_ref()
        .and_then(|profile| profile.contention);
    known.as_ref().and_then(Contention::degree).unwrap_or(1.0)
}
