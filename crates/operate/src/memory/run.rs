//! A program from its start to its end: a look at the peak, and one before its memory is gone; and whose page
//! faults made the memory, if that is wanted.

use super::document;
use super::look::{Leaks, Manner, Stops};
use super::peak::{Pace, PeakWatch, Start, Watched, look};
use super::present::present;
use crate::analysis;
use crate::observe::{FaultRecording, Observation};
use anyhow::{Context, Result};
use pagewise_linux::proc::ProcRoot;
use pagewise_linux::process::Launch;
use pagewise_memory::judge;
use pagewise_model::answer::{Document, Subject};
use pagewise_model::memory::{Memory, MemoryWhen, TouchedMemory};
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

/// What to find out beside the account.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Leaks, however large the program is.
    pub leaks: bool,
    /// Who touched the memory first, by recorded page faults.
    pub touched: bool,
}

/// Runs a program and looks at its memory. At its end, leaks are searched for if it is small, or if they are
/// wanted.
///
/// # Errors
/// If it cannot be started, recorded or waited for.
pub fn program(launch: &Launch, wanted: Wanted) -> Result<Ran> {
    let proc = ProcRoot::default();
    let folder = wanted.touched.then(tempfile::tempdir).transpose();
    let folder = folder.context("cannot make a folder for page faults")?;
    let (running, faults) = match &folder {
        Some(folder) => {
            let file = folder.path().join("perf.data");
            let (running, faults) = FaultRecording::begin(launch, &file)?;
            (running, Some(faults))
        }
        None => (launch.spawn()?, None),
    };
    let pid = running.pid();
    let start = Start::read(&proc, pid);
    let (mut end, mut pages) = (None, Vec::new());
    let watch = PeakWatch::start(pid, start, Pace::CLOSE);
    let finished = running.wait_with_end(|| {
        watch.iter().for_each(PeakWatch::end);
        if faults.is_some() {
            pages = present(&proc, pid);
        }
        let resident = proc.statm(pid).ok().flatten();
        let is_small = resident.is_some_and(|statm| statm.resident.0 <= QUICK);
        let manner = Manner {
            stops: Stops::Allowed,
            leaks: match wanted.leaks || is_small {
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
    let (touched, refusals) = match faults.map(|faults| touched(faults.end(&finished, pages))) {
        Some(Ok(found)) => found,
        // What was seen of the heaps is not lost with it.
        Some(Err(error)) => (Vec::new(), vec![format!("{UNKNOWN}: {error:#}.")]),
        None => (Vec::new(), Vec::new()),
    };
    let memory = Memory {
        finding: judged.finding,
        moments: judged.moments,
        course,
        touched,
        growth: None,
        holders: None,
    };
    let mut document = document(memory, subject);
    document.notes.extend(notes(&document, was_seen));
    document.notes.extend(refusals);
    Ok(Ran {
        document,
        ending: finished.ending,
    })
}

const UNKNOWN: &str = "Who touched the memory first is not known";

/// Who touched the memory first, or why that is not known.
fn touched(recorded: Result<Observation>) -> Result<(Vec<TouchedMemory>, Vec<String>)> {
    let recorded = recorded?;
    let touched = analysis::of_file(&recorded.path)?.touched();
    if !touched.is_empty() {
        return Ok((touched, Vec::new()));
    }
    let mut notes = recorded.notes;
    notes.insert(
        0,
        format!("{UNKNOWN}: at least 1 MiB must be private, and page faults must be recorded."),
    );
    Ok((touched, notes))
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
