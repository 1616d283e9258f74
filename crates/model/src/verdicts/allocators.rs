//! The behaviour of allocators.

use crate::answer::{Evidence, Kind};
use crate::bench::{AllocatorBench, AllocatorRow, Measured};
use crate::quantity::{count, few};
use crate::units::Bytes;

impl AllocatorBench {
    /// What each allocator does, in a sentence each.
    pub fn sentences(&self) -> impl Iterator<Item = String> {
        let all = self.allocators.iter();
        all.map(|one| sentence(one, self))
    }
}

impl Evidence for AllocatorBench {
    const KIND: Kind = Kind::AllocatorBench;

    fn verdict(&self) -> String {
        let sentences: Vec<String> = self.sentences().collect();
        sentences.join(" ")
    }
}

/// The behaviour of an allocator, in one sentence.
fn sentence(allocator: &Measured, document: &AllocatorBench) -> String {
    let name = match (&document.glibc, allocator.contender.name.as_str()) {
        (Some(version), "system") => format!("The system's malloc (glibc {version})"),
        (_, name) => name.to_owned(),
    };
    let single = match allocator.threshold_bytes {
        None => "keeps single blocks up to 64 MiB".to_owned(),
        Some(edge) => {
            let cost = fresh_cost(allocator, edge, document.page_bytes);
            format!(
                "requests blocks of {} and more from the kernel anew each time{cost}",
                exact(edge)
            )
        }
    };
    format!(
        "{name} {single}{}.",
        small_blocks(allocator, document.page_bytes)
    )
}

/// The total from which small blocks that are freed together use fresh memory, if they were
/// measured.
fn small_blocks(allocator: &Measured, page: Bytes) -> String {
    let fresh = |row: &&AllocatorRow| row.cost.faults >= FRESH * row.pages(page);
    match (
        allocator.together.iter().find(fresh),
        allocator.together.last(),
    ) {
        (Some(row), _) => {
            format!(
                "; small blocks freed together are requested anew from a total of {} on",
                row.bytes
            )
        }
        (None, Some(last)) => format!("; keeps small blocks freed together, up to {}", last.bytes),
        (None, None) => String::new(),
    }
}

/// Share of faulting pages from which a round counts as using fresh memory.
const FRESH: f64 = 0.25;

/// Exact to the KiB: rounded to three digits, 32,764 KiB would read as 32.0 MiB.
fn exact(size: Bytes) -> String {
    match size.0 {
        bytes if bytes % (1 << 20) == 0 => format!("{} MiB", bytes >> 20),
        bytes => format!("{} KiB", count(bytes >> 10)),
    }
}

/// ` (16,385 faults and 27.4 ms for 64.0 MiB)`, for the largest block measured.
fn fresh_cost(allocator: &Measured, edge: Bytes, page: Bytes) -> String {
    let largest = allocator.single.iter().filter(|row| row.bytes >= edge);
    match largest.max_by_key(|row| row.bytes) {
        Some(row) if row.cost.faults >= FRESH * row.pages(page) => {
            format!(
                " ({} faults and {} for {})",
                few(row.cost.faults),
                row.cpu(),
                row.bytes
            )
        }
        _ => String::new(),
    }
}
