//! The tracepoints that a recording opens: memory calls, waits for locks, requests of block devices.

use super::super::source::{Access, Source};
use super::super::{Mode, Options};
use crate::tracefs::{Tracefs, Tracepoint};

/// One in this many system calls has its call chain recorded, ...
const CALL_CHAIN_PERIOD: u64 = 7;
/// ... or, when stacks are copied, one in this many.
const CALL_STACK_PERIOD: u64 = 61;

/// System calls that are traced at their start: those that release or request memory.
pub(super) const ENTERED: [&str; 6] = ["munmap", "brk", "madvise", "mremap", "mmap", "mprotect"];
/// System calls whose result is an address.
pub(super) const EXITED: [&str; 3] = ["brk", "mremap", "mmap"];
/// The system call whose caller is recorded each time, because it shows whose memory it is.
const CALLER_RECORDED: &str = "mmap";
/// System calls whose callers matter most for blame.
pub(super) const BLAMED: [&str; 4] = ["munmap", "brk", "madvise", "mmap"];

/// Each memory call with its payload. In sampled mode some of them are recorded once more, with
/// chains, through sources of their own (the kernel builds a tracepoint's sample separately for
/// each event, so these do not disturb each other); in full mode all starts have chains.
pub(super) fn calls(
    tracefs: &Tracefs,
    options: &Options,
    access: Access,
    used: &mut Vec<Tracepoint>,
) -> Result<Vec<Source>, String> {
    let mode = options.mode;
    let mut sources = Vec::new();
    for call in ENTERED {
        let point = existing(tracefs, "syscalls", &format!("sys_enter_{call}"))?;
        let source = match mode {
            Mode::Sampled => Source::tracepoint(&point, access),
            Mode::Full => Source::tracepoint_with_chain(&point, 1, access),
        };
        sources.push(match call == CALLER_RECORDED {
            true => source.with_caller(),
            false => source,
        });
        if mode == Mode::Sampled && BLAMED.contains(&call) {
            sources.push(blamed(&point, options.dwarf_stacks, access));
        }
        used.push(point);
    }
    for call in EXITED {
        let point = existing(tracefs, "syscalls", &format!("sys_exit_{call}"))?;
        sources.push(Source::tracepoint(&point, access));
        used.push(point);
    }
    Ok(sources)
}

/// Some calls, with everything that identifies the caller.
fn blamed(point: &Tracepoint, stacks: bool, access: Access) -> Source {
    if stacks {
        Source::tracepoint_with_stack(point, CALL_STACK_PERIOD, access)
    } else {
        Source::tracepoint_with_chain(point, CALL_CHAIN_PERIOD, access)
    }
}

/// Waits for sleeping reader-writer locks, mmap_lock among them: `LCB_F_READ` and `LCB_F_WRITE`
/// alone (include/trace/events/lock.h). The chain shows which lock it was.
pub(super) fn locks(
    tracefs: &Tracefs,
    access: Access,
    used: &mut Vec<Tracepoint>,
) -> Result<Vec<Source>, String> {
    let begin = existing(tracefs, "lock", "contention_begin")?;
    let end = existing(tracefs, "lock", "contention_end")?;
    let sources = vec![
        Source::tracepoint_with_chain(&begin, 1, access).filtered(c"flags == 2 || flags == 4"),
        Source::tracepoint(&end, access),
    ];
    used.extend([begin, end]);
    Ok(sources)
}

/// Requests at their issue to the device, with the call chain, and at their completion.
pub(super) fn block_io(
    tracefs: &Tracefs,
    access: Access,
    used: &mut Vec<Tracepoint>,
) -> Result<Vec<Source>, String> {
    let issue = existing(tracefs, "block", "block_rq_issue")?;
    let complete = existing(tracefs, "block", "block_rq_complete")?;
    let sources = vec![
        Source::tracepoint_with_chain(&issue, 1, access),
        Source::tracepoint(&complete, access),
    ];
    used.extend([issue, complete]);
    Ok(sources)
}

fn existing(tracefs: &Tracefs, system: &str, name: &str) -> Result<Tracepoint, String> {
    tracefs
        .tracepoint(system, name)
        .map_err(|error| error.to_string())?
        .ok_or_else(|| format!("this kernel has no tracepoint {system}:{name}"))
}
