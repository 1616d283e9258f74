//! What the account of one moment shows: the largest part that could be saved, and what would help.

use pagewise_model::allocator::AllocatorKind;
use pagewise_model::memory::{
    ByteRange, CgroupMemory, Growth, Heap, HeapPart, MemoryFinding, MemoryFix, MemoryKind,
    MemoryMoment, MemoryRow, MemoryVerdict, RowChange,
};
use pagewise_model::units::Bytes;
use std::collections::BTreeMap;

/// The share of all memory from which a part is worth a verdict.
const WORTH: u64 = 10;
/// Bytes from which it is.
const LEAST: u64 = 1 << 20;
/// Part of all memory (1 in so many) that may be unreadable under the verdict "all in use".
const MAY_BE_UNREAD: u64 = 10;
/// Share of time that tasks wait for memory from which the limit is too small, and how full it is then
/// at least (in per cent).
const STALLED: f64 = 0.01;
const FULL_PERCENT: u64 = 90;

/// What the account of `moment` shows.
#[must_use]
pub fn finding(moment: &MemoryMoment) -> MemoryFinding {
    let parts = Parts::new(moment);
    let (verdict, bytes) = parts.verdict(moment);
    let heaps: Vec<&Heap> = moment.processes.iter().flat_map(|one| &one.heaps).collect();
    let allocator = holder(verdict, moment);
    MemoryFinding {
        verdict,
        when: moment.when,
        bytes: Bytes(bytes),
        allocator,
        returnable: parts.returnable(verdict, moment),
        not_readable: Bytes(parts.unread),
        fixes: fixes(verdict, allocator, &parts, &heaps),
    }
}

/// Part of all memory (1 in so many) by which blocks in use must grow for a verdict, and which must be leaked
/// where nothing else is to be said.
const GROWN: i64 = 50;
const SMALL: u64 = 50;

/// What two looks show: growth, if blocks in use took most of what was added, or else what the
/// second shows.
#[must_use]
pub fn finding_of_growth(growth: &Growth, after: &MemoryMoment) -> MemoryFinding {
    let alone = finding(after);
    let is_kept = |kind: MemoryKind| {
        matches!(
            kind,
            MemoryKind::FreedKept | MemoryKind::Reserve | MemoryKind::Pinned
        )
    };
    let kept = growth.rows.iter().filter(|row| is_kept(row.kind));
    let kept: i64 = kept.map(RowChange::added).sum();
    let total = after.total().0.cast_signed();
    let is_growth =
        growth.live >= LEAST.cast_signed() && growth.live >= total / GROWN && growth.live >= kept;
    let leaked = leaked(after);
    match is_growth {
        // As much was lost as would explain most of the growth.
        true if leaked >= LEAST && leaked >= growth.live.unsigned_abs() / 2 => MemoryFinding {
            verdict: MemoryVerdict::Leak,
            bytes: Bytes(leaked),
            allocator: None,
            returnable: None,
            fixes: Vec::new(),
            ..alone
        },
        true => MemoryFinding {
            verdict: MemoryVerdict::Growth,
            bytes: Bytes(growth.live.unsigned_abs()),
            allocator: holder(MemoryVerdict::Growth, after),
            returnable: None,
            fixes: Vec::new(),
            ..alone
        },
        false => alone,
    }
}

/// The allocator with most of the memory that the verdict is about.
fn holder(verdict: MemoryVerdict, moment: &MemoryMoment) -> Option<AllocatorKind> {
    let is_meant = |kind: MemoryKind| match verdict {
        MemoryVerdict::Retention => {
            matches!(kind, MemoryKind::FreedKept | MemoryKind::Reserve)
        }
        MemoryVerdict::Fragmentation => kind == MemoryKind::Pinned,
        MemoryVerdict::AllInUse | MemoryVerdict::Growth => kind == MemoryKind::Live,
        MemoryVerdict::CannotTell => kind == MemoryKind::NotReadable,
        MemoryVerdict::Leak
        | MemoryVerdict::Bloat
        | MemoryVerdict::FreedToEnd
        | MemoryVerdict::Cache
        | MemoryVerdict::LimitTooSmall => false,
    };
    let mut sums: BTreeMap<AllocatorKind, u64> = BTreeMap::new();
    for row in moment.rows().iter().filter(|row| is_meant(row.kind)) {
        if let Some(allocator) = row.allocator {
            *sums.entry(allocator).or_default() += row.resident.0;
        }
    }
    sums.into_iter()
        .max_by_key(|(_, bytes)| *bytes)
        .map(|(allocator, _)| allocator)
}

/// The memory cgroup, if its limit makes tasks wait.
fn too_small(moment: &MemoryMoment) -> Option<u64> {
    let cgroup = moment.cgroup.as_ref()?;
    let limit = cgroup.limit?.0;
    let is_full = cgroup.charged.0 >= limit / 100 * FULL_PERCENT;
    (is_full && cgroup.stalled? >= STALLED).then_some(limit)
}

/// Bytes in blocks that no pointer leads to, at least.
fn leaked(moment: &MemoryMoment) -> u64 {
    let checks = moment.processes.iter().filter_map(|one| one.leaks.as_ref());
    checks.map(|check| check.leaked.low.0).sum()
}

/// Bytes by what could be done about them.
struct Parts {
    total: u64,
    freed: u64,
    reserve: u64,
    pinned: u64,
    pinned_by_threads: u64,
    bloat: u64,
    /// At least so much is in blocks that no pointer leads to.
    leaked: u64,
    unread: u64,
}

impl Parts {
    fn new(moment: &MemoryMoment) -> Self {
        let rows = moment.rows();
        let sum = |test: &dyn Fn(&MemoryRow) -> bool| -> u64 {
            let rows = rows.iter().filter(|row| test(row));
            rows.map(|row| row.resident.0).sum()
        };
        let of = |kind: MemoryKind| sum(&|row| row.kind == kind);
        Self {
            total: moment.total().0,
            freed: of(MemoryKind::FreedKept),
            reserve: of(MemoryKind::Reserve),
            pinned: of(MemoryKind::Pinned),
            pinned_by_threads: sum(&|row| {
                row.kind == MemoryKind::Pinned && row.part == Some(HeapPart::Threads)
            }),
            bloat: of(MemoryKind::HugeBloat),
            leaked: leaked(moment),
            unread: of(MemoryKind::NotReadable),
        }
    }

    fn kept(&self) -> u64 {
        self.freed + self.reserve
    }

    fn verdict(&self, moment: &MemoryMoment) -> (MemoryVerdict, u64) {
        let parts = [
            (MemoryVerdict::Retention, self.kept()),
            (MemoryVerdict::Fragmentation, self.pinned),
            (MemoryVerdict::Bloat, self.bloat),
            (MemoryVerdict::Leak, self.leaked),
        ];
        let largest = parts.into_iter().max_by_key(|(_, bytes)| *bytes);
        // Not where the cgroup mostly holds other processes.
        let is_own = |one: &&CgroupMemory| one.anonymous.0 + one.shared.0 <= 2 * self.total;
        let own = moment.cgroup.as_ref().filter(is_own);
        let cache = own.map_or(0, |one| {
            let before = one.page_cache_before.unwrap_or_default().0;
            one.page_cache.0.saturating_sub(before)
        });
        let small_limit = too_small(moment);
        match largest {
            // What was read is a lower bound. It decides unless more than that is unknown.
            Some((verdict, bytes)) if bytes >= worth(Bytes(self.total)) && bytes >= self.unread => {
                (verdict, bytes)
            }
            _ if small_limit.is_some() => (
                MemoryVerdict::LimitTooSmall,
                small_limit.unwrap_or_default(),
            ),
            _ if self.unread > self.total / MAY_BE_UNREAD => {
                (MemoryVerdict::CannotTell, self.unread)
            }
            // A small leak grows.
            _ if self.leaked >= LEAST && self.leaked >= self.total / SMALL => {
                (MemoryVerdict::Leak, self.leaked)
            }
            _ if cache > self.total => (MemoryVerdict::Cache, cache),
            _ => {
                let free = self.kept() + self.pinned + self.bloat + self.unread;
                (MemoryVerdict::AllInUse, self.total.saturating_sub(free))
            }
        }
    }

    fn returnable(&self, verdict: MemoryVerdict, moment: &MemoryMoment) -> Option<ByteRange> {
        let by_trim: u64 = moment
            .processes
            .iter()
            .map(|one| {
                let heaps: u64 = one.heaps.iter().map(|heap| heap.returnable.0).sum();
                // Pages that a fork shares come back only once.
                match moment.processes.len() {
                    1 => heaps,
                    _ => share(heaps, one.proportional.0, one.resident.0),
                }
            })
            .sum();
        let (low, high) = match verdict {
            MemoryVerdict::Retention => (by_trim, by_trim),
            MemoryVerdict::Fragmentation => (by_trim, self.pinned + self.kept()),
            // Pages that the program filled with zeros itself stay.
            MemoryVerdict::Bloat => (0, self.bloat),
            MemoryVerdict::AllInUse
            | MemoryVerdict::Growth
            | MemoryVerdict::Leak
            | MemoryVerdict::FreedToEnd
            | MemoryVerdict::Cache
            | MemoryVerdict::LimitTooSmall
            | MemoryVerdict::CannotTell => return None,
        };
        Some(ByteRange {
            low: Bytes(low),
            high: Bytes(high.max(low)),
        })
    }
}

/// Bytes of so much memory that are worth a verdict.
pub(crate) fn worth(total: Bytes) -> u64 {
    LEAST.max(total.0 / WORTH)
}

fn share(of: u64, part: u64, whole: u64) -> u64 {
    let share = u128::from(of) * u128::from(part) / u128::from(whole.max(1));
    u64::try_from(share).unwrap_or(u64::MAX)
}

fn fixes(
    verdict: MemoryVerdict,
    allocator: Option<AllocatorKind>,
    parts: &Parts,
    heaps: &[&Heap],
) -> Vec<MemoryFix> {
    match (verdict, allocator) {
        (MemoryVerdict::Bloat, _) => vec![MemoryFix::NoHugePages],
        (MemoryVerdict::LimitTooSmall, _) => vec![MemoryFix::LargerLimit],
        (MemoryVerdict::Retention, Some(AllocatorKind::Jemalloc)) => {
            vec![MemoryFix::JemallocDecay]
        }
        // What is freed, too, is worth a setting; what is pinned stays.
        (MemoryVerdict::Fragmentation, Some(AllocatorKind::Jemalloc))
            if parts.kept() >= parts.total / WORTH =>
        {
            vec![MemoryFix::JemallocDecay]
        }
        (MemoryVerdict::Retention, Some(AllocatorKind::Mimalloc)) => {
            vec![MemoryFix::MimallocPurge]
        }
        (MemoryVerdict::Retention, Some(AllocatorKind::Tcmalloc)) => {
            vec![MemoryFix::TcmallocDecommit]
        }
        (MemoryVerdict::Retention, Some(AllocatorKind::Go)) => vec![MemoryFix::GoMemoryLimit],
        (MemoryVerdict::Retention, Some(AllocatorKind::Glibc)) => glibc_retention(parts, heaps),
        (MemoryVerdict::Fragmentation, Some(AllocatorKind::Glibc)) => {
            let has_pinned_arenas =
                has_many_arenas(heaps) && is_most(parts.pinned_by_threads, parts.pinned);
            let fewer = has_pinned_arenas.then_some(MemoryFix::FewerArenas);
            fewer
                .into_iter()
                .chain([MemoryFix::OtherAllocator])
                .collect()
        }
        _ => Vec::new(),
    }
}

fn is_most(part: u64, whole: u64) -> bool {
    part > 0 && part >= whole / 2
}

fn glibc_retention(parts: &Parts, heaps: &[&Heap]) -> Vec<MemoryFix> {
    let glibc = || {
        let all = heaps.iter();
        all.filter(|heap| heap.allocator == AllocatorKind::Glibc)
    };
    let free = |part: HeapPart| -> u64 {
        let heaps = glibc().filter(|heap| heap.part == part);
        heaps.map(|heap| heap.free.0).sum()
    };
    let all_free = free(HeapPart::Main) + free(HeapPart::Threads);
    let ratcheted = glibc().any(|heap| heap.raised_mmap_threshold.is_some());
    let large: u64 = glibc().map(|heap| heap.large_free.0).sum();
    let mut fixes = Vec::new();
    if ratcheted && is_most(large, all_free) {
        fixes.push(MemoryFix::FixedMmapThreshold);
    }
    if has_many_arenas(heaps) && is_most(free(HeapPart::Threads), all_free) {
        fixes.push(MemoryFix::FewerArenas);
    }
    let has_main = glibc().any(|heap| heap.part == HeapPart::Main);
    if has_main && is_most(parts.reserve, parts.kept()) {
        fixes.push(MemoryFix::TrimThreshold);
    }
    fixes.push(MemoryFix::Trim);
    fixes
}

/// Arenas beyond the main one from which fewer would help.
const MANY_ARENAS: u64 = 2;

fn has_many_arenas(heaps: &[&Heap]) -> bool {
    let threads = heaps.iter().filter(|heap| heap.part == HeapPart::Threads);
    threads.map(|heap| heap.count).max() >= Some(MANY_ARENAS)
}

#[cfg(test)]
mod tests;
