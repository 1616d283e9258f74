//! A program from its start to its end: a look at the peak, and one before its memory is gone.

use super::{Scope, answer, moment};
use anyhow::Result;
use pagewise_linux::proc::{ProcRoot, family};
use pagewise_linux::process::Launch;
use pagewise_model::answer::{Document, Subject};
use pagewise_model::memory::{Memory, MemoryMoment, MemoryWhen};
use pagewise_model::quantity::percent;
use pagewise_model::run::Ending;
use pagewise_model::units::{Bytes, Nanos};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

/// Time between two readings of the resident size.
const INTERVAL: Duration = Duration::from_millis(10);
/// A look follows when so much more is resident than at the last: a part of it (1 in so many), and
/// at least this.
const MORE: u64 = 20;
const LEAST_MORE: u64 = 1 << 20;
/// Time between two looks, in looks: they take at most one CPU second in so many.
const REST: u32 = 20;
/// Share of the largest resident set that the look at the peak may miss without being mentioned.
const MISSED: f64 = 0.05;

/// What was seen of a program, and how it ended.
pub struct Ran {
    /// The account.
    pub document: Document<Memory>,
    /// How the program ended.
    pub ending: Ending,
}

/// Runs a program and looks at its memory.
///
/// # Errors
/// If it cannot be started or waited for.
pub fn program(launch: &Launch) -> Result<Ran> {
    let proc = ProcRoot::default();
    let running = launch.spawn()?;
    let (pid, started) = (running.pid(), Instant::now());
    let mut end = None;
    let (finished, peak) = thread::scope(|scope| {
        let (over, is_over) = mpsc::channel::<()>();
        let watcher = scope.spawn({
            let proc = &proc;
            move || watch(proc, pid, started, &is_over)
        });
        let finished = running.wait_with_end(|| {
            end = look(&proc, pid, started, MemoryWhen::End);
        });
        drop(over);
        (finished, watcher.join().unwrap_or_default())
    });
    let finished = finished?;
    let words = std::iter::once(&launch.program).chain(&launch.args);
    let command = words.map(|word| word.to_string_lossy().into_owned());
    let subject = Subject {
        command: command.collect(),
        pids: vec![pid],
    };
    let was_seen = end.is_some();
    let mut document = answer(in_order(peak, end), subject);
    document.notes = notes(&document, was_seen);
    Ok(Ran {
        document,
        ending: finished.ending,
    })
}

/// The peak, unless more is resident at the end.
fn in_order(peak: Option<MemoryMoment>, end: Option<MemoryMoment>) -> Vec<MemoryMoment> {
    let at_end = end.as_ref().map_or(Bytes(0), MemoryMoment::total);
    let peak = peak.filter(|peak| peak.total() > at_end);
    peak.into_iter().chain(end).collect()
}

fn look(proc: &ProcRoot, pid: i32, started: Instant, when: MemoryWhen) -> Option<MemoryMoment> {
    let elapsed = Nanos::from(started.elapsed()).0;
    let mut found = moment(proc, pid, Scope::Tree, when).ok()?;
    found.elapsed_ns = Some(elapsed);
    Some(found)
}

/// Looks each time that clearly more is resident than ever before; returns the largest.
fn watch(
    proc: &ProcRoot,
    pid: i32,
    started: Instant,
    is_over: &Receiver<()>,
) -> Option<MemoryMoment> {
    let mut best: Option<MemoryMoment> = None;
    let mut seen = 0;
    let mut rest_until = started;
    loop {
        match is_over.recv_timeout(INTERVAL) {
            Err(RecvTimeoutError::Timeout) => {}
            Ok(()) | Err(RecvTimeoutError::Disconnected) => return best,
        }
        let resident = resident(proc, pid);
        let is_more = resident >= seen + (seen / MORE).max(LEAST_MORE);
        if !is_more || Instant::now() < rest_until {
            continue;
        }
        let before = Instant::now();
        let found = look(proc, pid, started, MemoryWhen::Peak);
        rest_until = Instant::now() + before.elapsed() * REST;
        if let Some(found) = found {
            seen = resident;
            let most = best.as_ref().map_or(Bytes(0), MemoryMoment::total);
            if found.total() > most {
                best = Some(found);
            }
        }
    }
}

fn resident(proc: &ProcRoot, pid: i32) -> u64 {
    let family = family(proc, pid).into_iter();
    family
        .filter_map(|one| proc.statm(one).ok().flatten())
        .map(|statm| statm.resident.0)
        .sum()
}

fn notes(document: &Document<Memory>, was_seen: bool) -> Vec<String> {
    let mut notes = Vec::new();
    if !was_seen {
        notes.push(
            "The end was not seen: the program may not be traced, or ended at once.".to_owned(),
        );
    }
    let moments = &document.evidence.moments;
    let largest = moments
        .iter()
        .filter(|moment| moment.processes.len() == 1)
        .filter_map(|moment| moment.processes[0].peak_resident)
        .max();
    if let (Some(largest), Some(judged)) = (largest, document.evidence.judged()) {
        let missed = 1.0 - share(judged.total(), largest);
        if missed > MISSED {
            notes.push(format!(
                "The largest resident set was {largest}, {} more than any look saw.",
                percent(missed / (1.0 - missed).max(f64::MIN_POSITIVE))
            ));
        }
    }
    notes
}

fn share(part: Bytes, whole: Bytes) -> f64 {
    pagewise_model::quantity::share(part.0, whole.0)
}
