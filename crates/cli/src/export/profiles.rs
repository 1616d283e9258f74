//! Exports of profiles: samples with stacks, whatever their source.

use super::{Out, ProfileExport, Written, output, place, required};
use anyhow::{Context, Result, bail};
use pagewise_model::profile::{Profile, ProfileSample, Samples, WeightUnit};
use pagewise_report::border::{Border, Content};
use pagewise_report::exports::stacks::Stacks;
use pagewise_report::exports::svg::Picture;
use pagewise_report::exports::{
    firefox, folded_stacks, otlp, perfetto_samples, pprof, samples, speedscope, svg,
};
use std::borrow::Cow;
use std::io::Write;

/// Folded stacks of one event.
pub fn folded(export: &ProfileExport<'_>) -> Result<Written> {
    let event = one_event(export.profile, export.event)?;
    write_text(export, |out| {
        folded_stacks::write(export.profile, event, out)
    })?;
    written(export, &about(export.profile, event))
}

/// A flame graph of one event, or a differential one of two profiles.
pub fn svg(export: &ProfileExport<'_>) -> Result<Written> {
    let event = one_event(export.profile, export.event)?;
    let stacks = match export.before {
        None => Stacks::new(export.profile, event),
        Some(before) => {
            let name = &export.profile.events[usize::from(event)].name;
            let of_before = one_event(before, Some(name)).context("in the file of --before")?;
            Stacks::of_both((before, of_before), (export.profile, event))
        }
    };
    let picture = Picture {
        title: export.name,
        unit: &weights(export.profile, event),
        is_diff: export.before.is_some(),
    };
    write(export, |out| svg::write(&stacks, picture, out))?;
    written(export, &about(export.profile, event))
}

/// A speedscope file.
pub fn speedscope(export: &ProfileExport<'_>) -> Result<Written> {
    let profile = &chosen(export)?;
    write(export, |out| speedscope::write(profile, export.name, out))?;
    written(export, "open it at https://www.speedscope.app")
}

/// A pprof file.
pub fn pprof(export: &ProfileExport<'_>) -> Result<Written> {
    required(export.output, "a pprof file")?;
    let profile = &chosen(export)?;
    write(export, |out| pprof::write(profile, out))?;
    written(export, "go tool pprof reads it")
}

/// OpenTelemetry's profiles.
pub fn otlp(export: &ProfileExport<'_>) -> Result<Written> {
    required(export.output, "a file of OpenTelemetry profiles")?;
    let profile = &chosen(export)?;
    write(export, |out| otlp::write(profile, out))?;
    written(
        export,
        "OpenTelemetry profiles v1development, which is not stable: readers of other releases may refuse it",
    )
}

/// A file for the Firefox Profiler.
pub fn firefox(export: &ProfileExport<'_>) -> Result<Written> {
    let profile = &chosen(export)?;
    write(export, |out| firefox::write(profile, export.name, out))?;
    written(export, "load it at https://profiler.firefox.com")
}

/// A Perfetto trace of one event's samples.
pub fn perfetto(export: &ProfileExport<'_>) -> Result<Written> {
    required(export.output, "a Perfetto trace")?;
    let event = one_event(export.profile, export.event)?;
    write(export, |out| {
        perfetto_samples::write(export.profile, event, out)
    })?;
    let about = about(export.profile, event);
    written(
        export,
        &format!("{about}; open it at https://ui.perfetto.dev"),
    )
}

/// A row for each sample.
pub fn csv(export: &ProfileExport<'_>) -> Result<Written> {
    let profile = &chosen(export)?;
    write_text(export, |out| samples::write_csv(profile, out))?;
    written(export, &format!("{} samples", profile.samples.len()))
}

/// The same as a Parquet file.
pub fn parquet(export: &ProfileExport<'_>) -> Result<Written> {
    required(export.output, "a Parquet file")?;
    let profile = &chosen(export)?;
    write(export, |out| samples::write_parquet(profile, out))?;
    written(export, &format!("{} samples", profile.samples.len()))
}

/// The event of this name, or the first that has samples.
fn one_event(profile: &Profile, name: Option<&str>) -> Result<u16> {
    let found = match name {
        Some(name) => profile.events.iter().position(|event| event.name == name),
        None => profile
            .samples
            .events
            .iter()
            .min()
            .map(|event| event.into()),
    };
    match found.and_then(|at| u16::try_from(at).ok()) {
        Some(event) => Ok(event),
        None => {
            let names: Vec<&str> = profile.events.iter().map(|event| &*event.name).collect();
            bail!(
                "there is no event {}; there are: {}",
                name.unwrap_or("with samples"),
                names.join(", ")
            )
        }
    }
}

fn chosen<'a>(export: &ProfileExport<'a>) -> Result<Cow<'a, Profile>> {
    of_event(export.profile, export.event)
}

/// The profile, or the part with the requested event.
///
/// # Errors
/// If there is no such event.
pub fn of_event<'a>(profile: &'a Profile, event: Option<&str>) -> Result<Cow<'a, Profile>> {
    if event.is_none() {
        return Ok(Cow::Borrowed(profile));
    }
    let event = one_event(profile, event)?;
    let mut samples = Samples::default();
    let all = profile.samples.iter();
    for sample in all.filter(|sample| sample.event == event) {
        samples.push(ProfileSample { event: 0, ..sample });
    }
    let mut profile = profile.clone();
    profile.events = vec![profile.events[usize::from(event)].clone()];
    profile.samples = samples;
    Ok(Cow::Owned(profile))
}

/// What the weights measure.
fn weights(profile: &Profile, event: u16) -> String {
    let of = &profile.events[usize::from(event)];
    let unit = match of.unit {
        WeightUnit::Nanoseconds => "nanoseconds",
        WeightUnit::Events => "events",
        WeightUnit::Samples => "samples",
        WeightUnit::Bytes => "bytes",
    };
    format!("{}, {unit}", of.name)
}

/// The same, and the other events available.
fn about(profile: &Profile, event: u16) -> String {
    let of = &profile.events[usize::from(event)];
    let weights = weights(profile, event);
    let others = profile.events.iter().filter(|other| other.name != of.name);
    let others: Vec<&str> = others.map(|other| &*other.name).collect();
    match others.is_empty() {
        true => weights,
        false => format!("{weights} (--event has {})", others.join(", ")),
    }
}

fn write(
    export: &ProfileExport<'_>,
    write: impl FnOnce(&mut Out) -> std::io::Result<()>,
) -> Result<()> {
    let mut out = output(export.output)?;
    write(&mut out).with_context(|| format!("cannot write {}", place(export.output)))?;
    out.finish()
}

/// The same for text, with names filtered so that they cannot control a terminal.
fn write_text(
    export: &ProfileExport<'_>,
    write_to: impl FnOnce(&mut Border<&mut Out>) -> std::io::Result<()>,
) -> Result<()> {
    write(export, |out| {
        let mut out = Border::new(out, Content::Text);
        write_to(&mut out)?;
        out.flush()
    })
}

fn written(export: &ProfileExport<'_>, what: &str) -> Result<Written> {
    let losses = export.profile.losses.descriptions();
    let lost: String = losses.map(|lost| format!("; {lost}")).collect();
    Ok(Written(format!("{}: {what}{lost}", place(export.output))))
}
