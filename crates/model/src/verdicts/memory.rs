//! Where the memory went, in a sentence or two.

use crate::allocator::AllocatorKind;
use crate::answer::{Evidence, Kind};
use crate::memory::{ByteRange, Memory, MemoryFinding, MemoryMoment, MemoryVerdict, MemoryWhen};
use crate::quantity::{percent, share};
use crate::units::Bytes;

impl Evidence for Memory {
    const KIND: Kind = Kind::Memory;

    fn verdict(&self) -> String {
        sentence(self)
    }
}

/// The answer.
fn sentence(memory: &Memory) -> String {
    let Some(moment) = memory.judged() else {
        return "The program ended before its memory could be read.".to_owned();
    };
    let finding = &memory.finding;
    let total = moment.total();
    let whole = whole(moment, total);
    let part = format!(
        "{} ({})",
        finding.bytes,
        percent(share(finding.bytes.0, total.0))
    );
    match finding.verdict {
        MemoryVerdict::AllInUse => format!("All in use: {part} of {whole}."),
        MemoryVerdict::Retention => format!(
            "Retention: {part} of {whole} was freed and is kept by the allocator.{}",
            comes_back(finding)
        ),
        MemoryVerdict::Fragmentation => format!(
            "Fragmentation: {part} of {whole} is free space on pages that blocks in use hold."
        ),
        MemoryVerdict::Bloat => {
            format!("Huge-page bloat: {part} of {whole} is zeros in huge pages.")
        }
        MemoryVerdict::LimitTooSmall => format!(
            "Limit too small: {} of {} are charged to the memory cgroup, and its tasks wait for memory {} of the time.",
            moment.cgroup.as_ref().map_or(Bytes(0), |one| one.charged),
            finding.bytes,
            percent(
                moment
                    .cgroup
                    .as_ref()
                    .and_then(|one| one.stalled)
                    .unwrap_or(0.0)
            ),
        ),
        MemoryVerdict::Cache => format!(
            "Page cache: {} in the memory cgroup, next to {whole}. The kernel gives it back when memory is needed.",
            finding.bytes
        ),
        MemoryVerdict::CannotTell => {
            format!("Cannot tell: {part} of {whole} could not be read.")
        }
    }
}

fn whole(moment: &MemoryMoment, total: Bytes) -> String {
    let when = match moment.when {
        MemoryWhen::Now => "",
        MemoryWhen::Peak => " at the peak",
        MemoryWhen::End => " at the end",
    };
    match moment.processes.len() {
        1 => format!("{total} resident{when}"),
        count => format!("{total} resident in {count} processes{when}"),
    }
}

fn comes_back(finding: &MemoryFinding) -> String {
    match &finding.returnable {
        Some(range) if range.low.0 > 0 => {
            let how = match finding.allocator {
                Some(AllocatorKind::Glibc) | None => "malloc_trim",
                Some(AllocatorKind::Jemalloc) => "A purge (mallctl arena.<i>.purge)",
                Some(AllocatorKind::Go) => "debug.FreeOSMemory",
                Some(_) => "The allocator",
            };
            format!(" {how} would return {}.", between(range))
        }
        _ => String::new(),
    }
}

/// Both bounds, if they differ as printed.
fn between(range: &ByteRange) -> String {
    let (low, high) = (range.low.to_string(), range.high.to_string());
    match low == high {
        true => low,
        false => format!("{low} to {high}"),
    }
}
