//! Where the memory went, in a sentence or two.

use crate::allocator::AllocatorKind;
use crate::answer::{Evidence, Kind};
use crate::memory::{
    BlockGroup, ByteRange, Memory, MemoryFinding, MemoryKind, MemoryMoment, MemoryVerdict,
    MemoryWhen, RowChange,
};
use crate::quantity::{count, counted, percent, share};
use crate::units::{Bytes, Nanos};

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
        MemoryVerdict::AllInUse => {
            format!("All in use: {part} of {whole}.{}", largest(moment))
        }
        MemoryVerdict::Growth => growth(memory, &whole),
        MemoryVerdict::Leak => leak(finding, moment, &whole),
        MemoryVerdict::Retention => format!(
            "Retention: {part} of {whole} was freed and is kept by the allocator.{}",
            comes_back(finding)
        ),
        MemoryVerdict::Fragmentation => format!(
            "Fragmentation: {part} of {whole} is free space on pages that blocks in use hold.{}",
            held_by(moment)
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
        MemoryVerdict::FreedToEnd => format!(
            "Freed to end: {part} of {whole} was freed shortly before, and no look saw it while it was in use."
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
        MemoryWhen::Now | MemoryWhen::Before => "",
        MemoryWhen::Peak => " at the peak",
        MemoryWhen::Running => " while it ran",
        MemoryWhen::End => " at the end",
    };
    match moment.processes.len() {
        1 => format!("{total} resident{when}"),
        count => format!("{total} resident in {count} processes{when}"),
    }
}

/// Part (1 in so many) of the growth of blocks in use from which growth of unread memory is reported.
const UNREAD: i64 = 10;

/// What grew, by how much, and in what time.
fn growth(memory: &Memory, whole: &str) -> String {
    let Some(growth) = &memory.growth else {
        return format!("Growth: {whole}.");
    };
    let added = Bytes(growth.live.unsigned_abs());
    let time = growth.elapsed_ns.map_or_else(
        || "from the first look to the second".to_owned(),
        |elapsed| format!("in {}", Nanos(elapsed)),
    );
    let unread = growth
        .rows
        .iter()
        .filter(|row| row.kind == MemoryKind::NotReadable);
    let unread: i64 = unread.map(RowChange::added).sum();
    // Whose the rest is was not seen.
    if unread > growth.live / UNREAD {
        let unread = Bytes(unread.unsigned_abs());
        return format!(
            "Growth: blocks in use grew by at least {added} {time}, to {whole}. What could not be read grew by {unread}."
        );
    }
    let stack = growth.stacks.first().filter(|first| first.added.low > 0.0);
    let blocks = growth.blocks.first().filter(|first| first.added.low > 0.0);
    let who = match (stack, blocks) {
        (Some(first), _) => largest_part(&first.place(), first.added.value, added),
        (None, Some(first)) => largest_part(&first.group.name(), first.added.value, added),
        (None, None) => String::new(),
    };
    format!("Growth: blocks in use grew by {added} {time}, to {whole}.{who}")
}

/// Who added the largest part of what was added.
fn largest_part(who: &str, part: f64, added: Bytes) -> String {
    let part = Bytes(whole_number(part));
    let how_much = match part.0 >= added.0 / 2 {
        true => "Most of it",
        false => "The largest part",
    };
    format!(" {how_much}: {who} (+{part}).")
}

/// What is lost, and what most of it is.
fn leak(finding: &MemoryFinding, moment: &MemoryMoment, whole: &str) -> String {
    let checks = moment.processes.iter().filter_map(|one| one.leaks.as_ref());
    let blocks: u64 = checks.clone().map(|check| check.leaked_blocks).sum();
    let groups: Vec<BlockGroup> = checks.flat_map(|check| check.groups.clone()).collect();
    let who = named(&groups).map_or_else(String::new, |(group, part)| {
        format!(" {} of it: {}.", percent(part), group.name())
    });
    format!(
        "Leak: no pointer leads to {} in {} of {whole}.{who}",
        finding.bytes,
        counted(blocks, "block")
    )
}

/// Share of the blocks in use from which their largest group is worth a sentence.
const WORTH_NAMING: f64 = 0.1;

fn largest(moment: &MemoryMoment) -> String {
    let groups = moment.groups(|process| &process.blocks);
    named(&groups).map_or_else(String::new, |(group, part)| {
        let part = percent(part);
        format!(" Largest group of blocks: {} ({part}).", group.name())
    })
}

/// The blocks that hold most of the free space.
fn held_by(moment: &MemoryMoment) -> String {
    let groups = moment.groups(|process| &process.pins);
    named(&groups).map_or_else(String::new, |(group, part)| {
        format!(
            " {} of it is held by about {} pages with {}.",
            percent(part),
            count(whole_number(group.count)),
            group.name()
        )
    })
}

/// The first group with its share of all, if that is worth naming.
fn named(groups: &[BlockGroup]) -> Option<(&BlockGroup, f64)> {
    let all: f64 = groups.iter().map(|group| group.bytes.value).sum();
    let first = groups.first()?;
    let part = first.bytes.value / all.max(1.0);
    (part >= WORTH_NAMING && all >= LEAST_NAMED).then_some((first, part))
}

/// Bytes in blocks below which nobody asks whose they are.
const LEAST_NAMED: f64 = (1 << 20) as f64;

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a cast saturates, and estimates are not negative"
)]
fn whole_number(value: f64) -> u64 {
    value.round() as u64
}

fn comes_back(finding: &MemoryFinding) -> String {
    match &finding.returnable {
        Some(range) if range.low.0 > 0 => {
            let how = match finding.allocator {
                Some(AllocatorKind::Glibc) | None => "malloc_trim",
                Some(AllocatorKind::Jemalloc) => "A purge (mallctl arena.<i>.purge)",
                Some(AllocatorKind::Go) => "debug.FreeOSMemory",
                Some(AllocatorKind::Tcmalloc) => "MallocExtension::ReleaseFreeMemory",
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
