//! Content of a recording: faults, samples, or both.

use anyhow::{Result, bail};
use pagewise_answer::recording::{Analysis, is_about_faults};
use pagewise_formats::perf_data::{Cut, PerfData};
use pagewise_model::event::EventSource;
use pagewise_model::findings::Findings;
use pagewise_model::profile::Profile;
use pagewise_model::profile_findings::ProfileFindings;

/// Content of a recording.
pub enum Seen<'a> {
    /// Faults, and the time account of its samples.
    Run(Box<Findings>, Option<&'a Profile>),
    /// Samples only.
    Profile(Box<ProfileFindings>, &'a Profile),
}

/// What a recording is about.
///
/// # Errors
/// If it has nothing to report on.
pub fn seen<'a>(data: &PerfData<'_>, analysis: &'a Analysis) -> Result<Seen<'a>> {
    let sources = data.sources();
    let profile = analysis.sampled();
    // Our own recordings have totals and a timeline even if perf events were forbidden.
    let has_totals = data.sidecar().is_some();
    let asked_for_faults = sources.iter().any(|source| is_about_faults(&source.kind));
    let has_faults =
        analysis.samples() > 0 || (has_totals && (asked_for_faults || profile.is_none()));
    match (has_faults, profile) {
        (true, profile) => Ok(Seen::Run(Box::new(analysis.findings()?), profile)),
        (false, Some(profile)) => Ok(Seen::Profile(
            Box::new(analysis.of_samples(profile)?),
            profile,
        )),
        (false, None) if data.cut().is_some() => bail!(
            "it has no samples. {}",
            data.cut().map_or_else(String::new, Cut::sentence)
        ),
        (false, None) => bail!(
            "it has no samples: {}. Was the program running while it was observed?",
            contents(sources)
        ),
    }
}

/// The names of the recorded events.
fn contents(sources: &[EventSource]) -> String {
    let names: Vec<&str> = sources.iter().map(|source| source.name.as_str()).collect();
    format!("it was recorded from {}", names.join(", "))
}
