//! Makes a recording without an explanation, and reports the result.

use crate::{status, terminal};
use anyhow::Result;
use pagewise_model::quantity::count;
use pagewise_model::run::{Ending, signal_name};
use pagewise_operate::destination;
use pagewise_operate::observe::{Observation, ObserveOptions, observe};
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

/// Observes, reports the result, and returns the program's own status; 1 in place of 0 if not all of
/// it could be written.
///
/// # Errors
/// As [`observe()`], except for a program that could not be started.
pub fn record(options: &ObserveOptions, quiet: bool) -> Result<ExitCode> {
    record_for(options, quiet, &options.output)
}

/// The same for a recording of which something else is made, at `shown`: messages name that.
///
/// # Errors
/// As [`record`].
pub fn record_for(options: &ObserveOptions, quiet: bool, shown: &Path) -> Result<ExitCode> {
    destination::keep_previous(&options.output);
    let observed = observe(options).map(|observation| named(observation, shown));
    let observation = match observed {
        Ok(observation) => observation,
        Err(error) => return status::failed_to_start(error),
    };
    if !quiet {
        summarise(&observation)?;
    }
    Ok(match observation.ending.shell_status() {
        0 if !observation.is_whole => {
            tell_cut(shown);
            ExitCode::FAILURE
        }
        status => status::shell(status),
    })
}

/// Even with --quiet: what was not recorded is missing from each answer about the file.
pub fn tell_cut(recording: &Path) {
    let name = recording.display();
    terminal::tell(&format!("pagewise: {name} is not whole: the disk is full"));
}

/// The same under the name that the user knows.
fn named(mut observation: Observation, shown: &Path) -> Observation {
    let (own, shown_as) = (
        observation.path.display().to_string(),
        shown.display().to_string(),
    );
    for note in &mut observation.notes {
        *note = note.replace(&own, &shown_as);
    }
    shown.clone_into(&mut observation.path);
    observation
}

fn summarise(observation: &Observation) -> io::Result<()> {
    let mut err = io::stderr().lock();
    let events: u64 = observation.counts.iter().map(|source| source.count).sum();
    writeln!(
        err,
        "pagewise: {} events, {} faults by count, {} in {}",
        count(events),
        count(observation.cost.faults()),
        observation.size,
        observation.path.display()
    )?;
    for (name, fired) in by_name(observation) {
        writeln!(err, "  {:>10}  {}", count(fired), readable(name))?;
    }
    writeln!(
        err,
        "pagewise: recording cost the observed programs about {} (estimated; --measure-overhead measures it)",
        observation.own_cost
    )?;
    if let Ending::Killed(signal) = observation.ending {
        writeln!(
            err,
            "pagewise: the program was killed by {}; what was recorded until then is kept",
            signal_name(signal)
        )?;
    }
    for lost in observation.losses.descriptions() {
        writeln!(err, "pagewise: {lost}")?;
    }
    for note in &observation.notes {
        writeln!(err, "pagewise: {note}")?;
    }
    Ok(())
}

/// Counts of sources with the same name added up, without those that never fired.
fn by_name(observation: &Observation) -> Vec<(&str, u64)> {
    let mut sums: Vec<(&str, u64)> = Vec::new();
    for source in observation.counts.iter().filter(|source| source.count > 0) {
        match sums.iter_mut().find(|(name, _)| *name == source.name) {
            Some((_, sum)) => *sum += source.count,
            None => sums.push((&source.name, source.count)),
        }
    }
    sums
}

/// The kernel's name of an event, or a description if the name means nothing to a reader.
fn readable(event: &str) -> &str {
    match event {
        "dummy" => "mappings, starts and ends of programs and threads",
        event => event,
    }
}
