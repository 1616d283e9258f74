//! Where the memory of processes went: a look at each, or two with time between them.

mod allocations;
mod budget;
mod cgroup;
mod difference;
mod leaks;
mod limit;
mod look;
mod mappings;
mod peak;
mod present;
mod run;

pub use allocations::{Rate, Sampling};
pub use difference::between;
pub(crate) use limit::place_for_group;
pub use limit::smallest;
pub use look::Refusal;
pub(crate) use peak::{Pace, PeakWatch, Start};
pub(crate) use present::PagesWatch;
pub use run::{Ran, Wanted, program};

use look::{Leaks, Manner, Stops};
use pagewise_answer::memory::explain;
use pagewise_linux::proc::{ProcRoot, family};
use pagewise_linux::process::interrupt;
use pagewise_memory::{finding, finding_of_growth};
use pagewise_model::answer::{Document, Subject};
use pagewise_model::memory::{
    Growth, Memory, MemoryFinding, MemoryMoment, MemoryVerdict, MemoryWhen, ProcessMemory,
    RefusedProcess,
};
use pagewise_model::units::Nanos;
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime};

/// Which processes are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Only the named process.
    Process,
    /// The process and all its descendants.
    Tree,
}

/// Looks at a running process; with `leaks`, searches for blocks that no pointer leads to.
///
/// # Errors
/// [`Refusal`] if the process itself cannot be read; those of its descendants that cannot are
/// listed.
pub fn running(pid: i32, scope: Scope, leaks: bool) -> Result<Document<Memory>, Refusal> {
    let proc = ProcRoot::default();
    let moment = moment(&proc, pid, scope, MemoryWhen::Now, manner(leaks))?;
    let pids = moment.processes.iter().map(|one| one.pid).collect();
    Ok(answer(vec![moment], None, Subject::of_processes(pids)))
}

/// A look that was asked for.
fn manner(leaks: bool) -> Manner {
    Manner {
        stops: Stops::Allowed,
        leaks: match leaks {
            true => Leaks::Searched,
            false => Leaks::Ignored,
        },
    }
}

/// Time between two questions whether the wait is over.
const PATIENCE: Duration = Duration::from_millis(50);

/// Looks at a running process, and again after `apart`, or when an interrupt is requested.
///
/// # Errors
/// As [`running`], for the first look. If the process ends before the second, a note says so.
pub fn twice(
    pid: i32,
    scope: Scope,
    apart: Duration,
    leaks: bool,
) -> Result<Document<Memory>, Refusal> {
    let proc = ProcRoot::default();
    let started = Instant::now();
    let before = moment(&proc, pid, scope, MemoryWhen::Before, manner(false))?;
    let is_there = || proc.statm(pid).ok().flatten().is_some();
    while started.elapsed() < apart && interrupt::requested().is_none() && is_there() {
        sleep(PATIENCE.min(apart.saturating_sub(started.elapsed())));
    }
    let elapsed = Nanos::from(started.elapsed()).0;
    let pids = before.processes.iter().map(|one| one.pid).collect();
    let subject = Subject::of_processes(pids);
    match moment(&proc, pid, scope, MemoryWhen::Now, manner(leaks)) {
        Ok(mut after) => {
            let growth = Growth::between(&before, &after, Some(elapsed));
            if !leaks && finding_of_growth(&growth, &after).verdict == MemoryVerdict::Growth {
                search(&proc, &mut after);
            }
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

/// Searches for leaks, which may be what grew.
fn search(proc: &ProcRoot, moment: &mut MemoryMoment) {
    for process in &mut moment.processes {
        add_leaks(proc, process, false);
    }
}

/// The document about these moments, of which the last is judged.
fn answer(
    moments: Vec<MemoryMoment>,
    growth: Option<Growth>,
    subject: Subject,
) -> Document<Memory> {
    let finding = match (moments.last(), &growth) {
        (Some(last), Some(growth)) => finding_of_growth(growth, last),
        (Some(last), None) => finding(last),
        (None, _) => MemoryFinding::default(),
    };
    let memory = Memory {
        finding,
        moments,
        course: Vec::new(),
        growth,
        holders: None,
        touched: Vec::new(),
    };
    document(memory, subject)
}

fn document(memory: Memory, subject: Subject) -> Document<Memory> {
    let mut document = explain(memory).about(subject);
    document.host = pagewise_linux::host::snapshot();
    document
}

/// The account of a process, with its leaks if they are asked for.
fn process(proc: &ProcRoot, pid: i32, manner: Manner) -> Result<ProcessMemory, Refusal> {
    let mut account = look::process(proc, pid, manner.stops)?;
    if manner.leaks != Leaks::Ignored {
        add_leaks(proc, &mut account, manner.leaks == Leaks::SearchedAtExit);
    }
    Ok(account)
}

fn add_leaks(proc: &ProcRoot, process: &mut ProcessMemory, at_exit: bool) {
    let (check, stopped) = leaks::check(proc, process.pid, at_exit);
    process.leaks = Some(check);
    process.stopped_ns = process.stopped_ns.max(Nanos::from(stopped).0);
}

/// One look at the processes.
fn moment(
    proc: &ProcRoot,
    pid: i32,
    scope: Scope,
    when: MemoryWhen,
    manner: Manner,
) -> Result<MemoryMoment, Refusal> {
    let started = Instant::now();
    let began = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let first = process(proc, pid, manner)?;
    let mut processes = vec![first];
    let mut refused = Vec::new();
    let others = match scope {
        Scope::Process => Vec::new(),
        Scope::Tree => family(proc, pid).into_iter().skip(1).collect(),
    };
    // Only the first is about to exit.
    let others_manner = Manner {
        leaks: match manner.leaks {
            Leaks::SearchedAtExit => Leaks::Searched,
            leaks => leaks,
        },
        ..manner
    };
    for other in others {
        match process(proc, other, others_manner) {
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
        began_unix_ms: began
            .ok()
            .and_then(|time| u64::try_from(time.as_millis()).ok()),
        processes,
        cgroup: cgroup::read(proc, pid),
        refused,
        look_ns: Nanos::from(started.elapsed()).0,
    })
}
