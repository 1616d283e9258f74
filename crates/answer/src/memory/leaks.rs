//! What a search for leaked blocks says beside the verdict.

use pagewise_model::memory::{LeakCheck, LeaksUnknown, Memory, MemoryVerdict};
use pagewise_model::quantity::counted;
use pagewise_model::units::Bytes;

/// One sentence for each kind of outcome.
pub fn notes(memory: &Memory) -> Vec<String> {
    let last = memory.moments.last();
    let processes = last.iter().flat_map(|moment| &moment.processes);
    let checks: Vec<&LeakCheck> = processes.filter_map(|one| one.leaks.as_ref()).collect();
    let mut notes: Vec<String> = checks
        .iter()
        .filter_map(|one| one.unknown)
        .map(unknown)
        .collect();
    notes.sort_unstable();
    notes.dedup();
    let checked = || checks.iter().filter(|one| one.unknown.is_none());
    if checked().next().is_some() {
        notes.push(found(
            checked().map(|one| one.leaked.low).sum(),
            checked().map(|one| one.leaked.high).sum(),
            checked().map(|one| one.leaked_blocks).sum(),
            checked().map(|one| one.blocks).sum(),
            memory.finding.verdict == MemoryVerdict::Leak,
        ));
    }
    notes
}

fn found(low: Bytes, high: Bytes, leaked: u64, blocks: u64, is_verdict: bool) -> String {
    let searched = counted(blocks, "block");
    match leaked {
        0 => format!("Leaks: none. A pointer leads to each of {searched} in use."),
        _ if is_verdict => format!(
            "Leaks: {low} to {high}, of {searched} in use. The upper end counts blocks with pointers into their middle alone, too."
        ),
        _ => format!(
            "Leaks: no pointer leads to {} of {searched} in use, {low} to {high}.",
            counted(leaked, "block")
        ),
    }
}

fn unknown(why: LeaksUnknown) -> String {
    let why = match why {
        LeaksUnknown::NotAllowed => {
            "the process may not be stopped (ptrace), and its registers are not known; run pagewise as root, or by pagewise memory --leaks -- CMD"
        }
        LeaksUnknown::Swapped => "pages are swapped out, and pointers in them cannot be seen",
        LeaksUnknown::InKernel => {
            "requests of io_uring hold pointers that the kernel does not show"
        }
        LeaksUnknown::Unreadable => "memory could not be read, or the process ended",
        LeaksUnknown::TooMany => "there are too many blocks or pointers (16 and 64 million)",
        LeaksUnknown::NoHeap => {
            "no heap was read in which the program frees blocks itself (glibc, jemalloc, mimalloc, musl)"
        }
    };
    format!("Leaks were not searched for: {why}.")
}
