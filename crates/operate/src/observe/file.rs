//! The file of an observation: events as they arrive, followed by everything that is not an event.

use super::identity::add_notes;
use super::{Beginning, Hide, Observation, ObserveOptions, Outcome, Subject, page_sizes};
use crate::destination;
use anyhow::Context;
use pagewise_formats::perf_data::Features;
use pagewise_linux::host;
use pagewise_linux::numa::NodeWatch;
use pagewise_linux::perf::{self, Recorder, Recording};
use pagewise_linux::process::library::surroundings;
use pagewise_model::host::HostSnapshot;
use pagewise_model::loss::LossKind;
use pagewise_model::recording::{SIDECAR_VERSION, Sidecar};
use pagewise_model::run::Ending;
use pagewise_model::secrets;
use pagewise_model::units::Bytes;
use std::fs;
use std::path::Path;

/// Stops recording and writes everything that is not an event after the events.
pub(super) fn conclude(
    options: &ObserveOptions,
    recording: Recording,
    mut outcome: Outcome,
    beginning: &Beginning,
    mut host: HostSnapshot,
) -> anyhow::Result<Observation> {
    if let Some(hide) = options.hide {
        let settings = host.settings.iter_mut();
        let variables = settings.filter(|(name, _)| name.starts_with("environment."));
        variables.for_each(|(_, value)| *value = hide(value));
    }
    let whole_machine = options.subject.is_whole_machine();
    let cost = match whole_machine {
        true => beginning.cost_of_machine().unwrap_or(outcome.cost),
        false => outcome.cost,
    };
    let recorded = recording.stop()?;
    let mut collection = recorded.collection.clone();
    collection.whole_machine = whole_machine;
    collection.attached = matches!(options.subject, Subject::Processes(_));
    add_notes(&mut collection.notes, outcome.notes);
    let (numa, notes) = outcome.seen.nodes.take().map(NodeWatch::stop).unzip();
    collection.notes.extend(notes.unwrap_or_default());
    let mut observation = Observation {
        path: options.output.clone(),
        size: Bytes(0),
        ending: outcome.ending,
        cost,
        own_cost: collection.own_cost,
        counts: recorded.counts.clone(),
        losses: recorded.losses.clone(),
        notes: collection.notes.clone(),
        is_whole: recorded.losses.count(LossKind::WriteFailed) == 0,
    };
    let attached = match (&options.subject, outcome.ending) {
        (Subject::Processes(_), Ending::Running) => Some(outcome.pid),
        _ => None,
    };
    let sidecar = Sidecar {
        schema_version: SIDECAR_VERSION,
        surroundings: surroundings(),
        processes: outcome.seen.by_process(outcome.pid),
        page_sizes: options
            .pages
            .then(|| page_sizes::seen(outcome.seen.pages, &cost, attached))
            .flatten(),
        command: written(&outcome.command, options.hide),
        pid: outcome.pid,
        started_unix_ms: beginning.unix_ms,
        started_clock: beginning.clock,
        cost,
        ending: outcome.ending,
        timeline: outcome.timeline,
        huge_pages: outcome.seen.huge,
        allocators: outcome.seen.allocators,
        losses: recorded.losses.clone(),
        collection,
        counters: outcome.counters,
        host,
        contention: outcome.contention,
        looks: outcome.looks,
        delays: outcome.delays,
        tasks: outcome.tasks,
        other_tasks: outcome.other_tasks,
        kernel_threads: outcome.kernel_threads,
        numa,
        present: outcome.present,
        memory: outcome.memory,
        concluded: None,
    };
    if let Err(error) = recorded.finish(features(sidecar, options.hide)) {
        let (path, cause) = (options.output.display(), error.to_string());
        // If the events did not fit either, that was reported with its cause.
        let cause = match observation.notes.iter().any(|note| note.contains(&cause)) {
            true => String::new(),
            false => format!(" ({cause})"),
        };
        observation.is_whole = false;
        observation.notes.push(format!(
            "The timeline, the host's settings and CPU times are missing from {path}: what follows the events could not be written{cause}."
        ));
    }
    observation.size = Bytes(fs::metadata(&options.output).map_or(0, |file| file.len()));
    Ok(observation)
}

fn features(sidecar: Sidecar, hide: Option<Hide>) -> Features {
    let host = &sidecar.host;
    Features {
        hostname: host.hostname.clone(),
        os_release: host.kernel.clone(),
        arch: host.architecture.clone(),
        cpus_online: host.cpus,
        cpus_available: host.cpus,
        cpu_desc: host.cpu.clone(),
        total_mem_kib: host.memory_bytes / 1024,
        sidecar: Some(sidecar),
        ..known(hide)
    }
}

/// What is known before anything is recorded. The machine is among it: without its architecture no
/// stack is unwound, without its release no kernel function has a name.
fn known(hide: Option<Hide>) -> Features {
    let words: Vec<String> = std::env::args_os()
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let machine = host::identity();
    Features {
        hostname: machine.hostname,
        os_release: machine.kernel,
        arch: machine.architecture,
        version: concat!("pagewise ", env!("CARGO_PKG_VERSION")).to_owned(),
        cmdline: written(&words, hide),
        ..Features::default()
    }
}

/// A command line as it is written: without passwords, or hidden as one word.
fn written(command: &[String], hide: Option<Hide>) -> Vec<String> {
    match hide {
        Some(hide) if !command.is_empty() => vec![hide(&command.join(" "))],
        _ => secrets::masked(command),
    }
}

/// Starts the recording in a new file.
pub(super) fn begin(
    recorder: Recorder,
    path: &Path,
    hide: Option<Hide>,
) -> anyhow::Result<Recording> {
    match recorder.start(destination::begin(path)?, path, &known(hide)) {
        Err(perf::Error::Write(error)) => {
            Err(error).with_context(|| format!("cannot write the recording {}", path.display()))
        }
        begun => Ok(begun?),
    }
}
