//! A program from its start to its end: a look at the peak, and one before its memory is gone.

use super::document;
use super::look::{Leaks, Manner, Stops};
use super::peak::{Pace, PeakWatch, Start, Watched, look};
use anyhow::Result;
use pagewise_linux::proc::ProcRoot;
use pagewise_linux::process::Launch;
use pagewise_memory::judge;
use pagewise_model::answer::{Document, Subject};
use pagewise_model::memory::{Memory, MemoryWhen};
use pagewise_model::quantity::percent;
use pagewise_model::run::Ending;
use pagewise_model::units::Bytes;

/// Share of the largest resident set that the look at the peak may miss without being mentioned.
const MISSED: f64 = 0.05;

/// What was seen of a program, and how it ended.
pub struct Ran {
    /// The account.
    pub document: Document<Memory>,
    /// How the program ended.
    pub ending: Ending,
}

/// Resident memory up to which leaks are searched for without being asked: that takes a second.
const QUICK: u64 = 1 << 30;

/// Runs a program and looks at its memory. At its end, leaks are searched for if it is small, or with
/// `leaks`.
///
/// # Errors
/// If it cannot be started or waited for.
pub fn program(launch: &Launch, leaks: bool) -> Result<Ran> {
    let proc = ProcRoot::default();
    let running = launch.spawn()?;
    let pid = running.pid();
    let start = Start::of(&proc, pid);
    let mut end = None;
    let watch = PeakWatch::start(pid, start, Pace::CLOSE);
    let finished = running.wait_with_end(|| {
        watch.iter().for_each(PeakWatch::end);
        let resident = proc.statm(pid).ok().flatten();
        let is_small = resident.is_some_and(|statm| statm.resident.0 <= QUICK);
        let manner = Manner {
            stops: Stops::Allowed,
            leaks: match leaks || is_small {
                true => Leaks::SearchedAtExit,
                false => Leaks::Ignored,
            },
        };
        end = look(&proc, pid, start, MemoryWhen::End, manner);
    });
    let watched = watch.map(PeakWatch::stop).unwrap_or_default();
    let Watched { largest, course } = watched;
    let finished = finished?;
    let subject = Subject {
        pids: vec![pid],
        ..Subject::of_command(launch.words())
    };
    let was_seen = end.is_some();
    let judged = judge(largest, end, &course);
    let memory = Memory {
        finding: judged.finding,
        moments: judged.moments,
        course,
        growth: None,
        holders: None,
        touched: Vec::new(),
    };
    let mut document = document(memory, subject);
    document.notes.extend(notes(&document, was_seen));
    Ok(Ran {
        document,
        ending: finished.ending,
    })
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
