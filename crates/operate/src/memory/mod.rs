//! Where the memory of processes went: a look at each, or two with time between them.

mod allocations;
mod cgroup;
mod look;
mod mappings;
mod peak;
mod run;

pub use allocations::{Rate, Sampling};
pub use look::Refusal;
pub(crate) use peak::{Pace, PeakWatch};
pub use run::{Ran, program};

use look::Stops;
use pagewise_answer::memory::explain;
use pagewise_linux::proc::{ProcRoot, family};
use pagewise_linux::process::interrupt;
use pagewise_memory::{finding, finding_of_growth};
use pagewise_model::answer::{Document, Subject};
use pagewise_model::memory::{Growth, Memory, MemoryMoment, MemoryWhen, RefusedProcess};
use pagewise_model::units::Nanos;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Which processes are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Only the named process.
    Process,
    /// The process and all its descendants.
    Tree,
}

/// Looks at a running process.
///
/// # Errors
/// [`Refusal`] if the process itself cannot be read; those of its descendants that cannot are
/// listed.
pub fn running(pid: i32, scope: Scope) -> Result<Document<Memory>, Refusal> {
    let proc = ProcRoot::default();
    let moment = moment(&proc, pid, scope, MemoryWhen::Now, Stops::Allowed)?;
    let pids = moment.processes.iter().map(|one| one.pid).collect();
    Ok(answer(vec![moment], None, Subject::of_processes(pids)))
}

/// Time between two questions whether the wait is over.
const PATIENCE: Duration = Duration::from_millis(50);

/// Looks at a running process, and again after `apart`, or when an interrupt is requested.
///
/// # Errors
/// As [`running`], for the first look. If the process ends before the second, a note says so.
pub fn twice(pid: i32, scope: Scope, apart: Duration) -> Result<Document<Memory>, Refusal> {
    let proc = ProcRoot::default();
    let started = Instant::now();
    let before = moment(&proc, pid, scope, MemoryWhen::Before, Stops::Allowed)?;
    let is_there = || proc.statm(pid).ok().flatten().is_some();
    while started.elapsed() < apart && interrupt::requested().is_none() && is_there() {
        sleep(PATIENCE.min(apart.saturating_sub(started.elapsed())));
    }
    let elapsed = Nanos::from(started.elapsed()).0;
    let pids = before.processes.iter().map(|one| one.pid).collect();
    let subject = Subject::of_processes(pids);
    match moment(&proc, pid, scope, MemoryWhen::Now, Stops::Allowed) {
        Ok(after) => {
            let growth = Growth::between(&before, &after, elapsed);
            Ok(answer(vec![before, after], Some(growth), subject))
        }
        Err(refusal) => {
            let mut document = answer(vec![before], None, subject);
            let note = format!("There was no second look: {refusal}");
            document.notes.push(note);
            Ok(document)
        }
    }
}

/// The document about these moments.
fn answer(
    moments: Vec<MemoryMoment>,
    growth: Option<Growth>,
    subject: Subject,
) -> Document<Memory> {
    let judged = moments
        .iter()
        .find(|moment| moment.when == MemoryWhen::Peak)
        .or(moments.last());
    let found = |moment: &MemoryMoment| match &growth {
        Some(growth) => finding_of_growth(growth, moment),
        None => finding(moment),
    };
    let memory = Memory {
        finding: judged.map(found).unwrap_or_default(),
        moments,
        growth,
        holders: None,
    };
    let mut document = explain(memory).about(subject);
    document.host = pagewise_linux::host::snapshot();
    document
}

/// One look at the processes.
fn moment(
    proc: &ProcRoot,
    pid: i32,
    scope: Scope,
    when: MemoryWhen,
    stops: Stops,
) -> Result<MemoryMoment, Refusal> {
    let started = Instant::now();
    let first = look::process(proc, pid, stops)?;
    let mut processes = vec![first];
    let mut refused = Vec::new();
    let others = match scope {
        Scope::Process => Vec::new(),
        Scope::Tree => family(proc, pid).into_iter().skip(1).collect(),
    };
    for other in others {
        match look::process(proc, other, stops) {
            Ok(process) => processes.push(process),
            // It ended meanwhile, or has no memory.
            Err(Refusal::Gone(_) | Refusal::NoMemory(_)) => {}
            Err(refusal) => refused.push(RefusedProcess {
                pid: other,
                reason: refusal.to_string(),
            }),
        }
    }
    Ok(MemoryMoment {
        when,
        elapsed_ns: None,
        processes,
        cgroup: cgroup::of(proc, pid),
        refused,
        look_ns: Nanos::from(started.elapsed()).0,
    })
}
