//! Where the memory of processes went: one look at each, without stopping it.

mod cgroup;
mod look;
mod mappings;
mod peak;
mod run;

pub use look::Refusal;
pub(crate) use peak::{Pace, PeakWatch};
pub use run::{Ran, program};

use look::Stops;
use pagewise_answer::memory::explain;
use pagewise_linux::proc::{ProcRoot, family};
use pagewise_memory::finding;
use pagewise_model::answer::{Document, Subject};
use pagewise_model::memory::{Memory, MemoryMoment, MemoryWhen, RefusedProcess};
use pagewise_model::units::Nanos;
use std::time::Instant;

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
    Ok(answer(vec![moment], Subject::of_processes(pids)))
}

/// The document about these moments.
fn answer(moments: Vec<MemoryMoment>, subject: Subject) -> Document<Memory> {
    let judged = moments
        .iter()
        .find(|moment| moment.when == MemoryWhen::Peak)
        .or(moments.last());
    let finding = judged.map(finding).unwrap_or_default();
    let memory = Memory { finding, moments };
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
