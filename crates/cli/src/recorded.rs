//! Makes a recording without an explanation, and reports the result.

use crate::status;
use anyhow::Result;
use pagewise_model::quantity::count;
use pagewise_model::run::{Ending, signal_name};
use pagewise_operate::destination;
use pagewise_operate::observe::{Observation, ObserveOptions, observe};
use std::io::{self, Write};
use std::process::ExitCode;

/// Observes, reports the result, and returns the program's own status.
///
/// # Errors
/// As [`observe()`], except for a program that could not be started.
pub fn record(options: &ObserveOptions, quiet: bool) -> Result<ExitCode> {
    destination::keep_previous(&options.output);
    let observation = match observe(options) {
        Ok(observation) => observation,
        Err(error) => return status::failed_to_start(error),
    };
    if !quiet {
        summarise(&observation)?;
    }
    Ok(status::shell(observation.ending.shell_status()))
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
    for lost in observation.losses.told() {
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
