//! The shared memory's bytes as figures, without a mapping: the command reads them as a file.

use crate::VERSION;
use crate::shared::{
    DISTANCE_BUCKETS, LATENCY_BUCKETS, MAGIC, PROCESSES, Process, REGIONS, Region, Run,
    UNMANAGED_PLACES, UnmanagedPlace,
};
use core::mem::offset_of;

/// Bytes of the shared memory.
pub const BYTES: usize = size_of::<Run>();

/// The first bytes of a run's shared memory; the rest is zero.
#[must_use]
pub fn header() -> [u8; 12] {
    let mut bytes = [0; 12];
    bytes[..8].copy_from_slice(&MAGIC.to_le_bytes());
    bytes[8..].copy_from_slice(&VERSION.to_le_bytes());
    bytes
}

/// Offset of the budget of all processes, set by the command at the start.
pub const TREE_AT: usize = offset_of!(Run, tree_bytes);
/// Offset of the bytes taken by newcomers, which the command reads and clears.
pub const NEWCOMERS_AT: usize = offset_of!(Run, newcomers_bytes);
/// Offset of the flag for several living processes, 32 bits.
pub const SEVERAL_AT: usize = offset_of!(Run, several);
/// Offset of the flag by which the kernel evicts from then on, 32 bits.
pub const BY_KERNEL_AT: usize = offset_of!(Run, by_kernel);
/// Length of the head.
pub const HEAD_BYTES: usize = offset_of!(Run, processes);

/// Bytes up to the end of the first `count` places.
#[must_use]
pub fn bytes_of_first(count: usize) -> usize {
    HEAD_BYTES + count.min(PROCESSES) * size_of::<Process>()
}

/// Offset of the share of the process in `place`.
#[must_use]
pub fn share_at(place: usize) -> usize {
    HEAD_BYTES + place * size_of::<Process>() + offset_of!(Process, share_bytes)
}

/// Offset of the id of the process that wants all pages of the process in `place` in memory, 32
/// bits.
#[must_use]
pub fn hold_at(place: usize) -> usize {
    HEAD_BYTES + place * size_of::<Process>() + offset_of!(Process, hold)
}

/// One process's part of the shared memory.
#[derive(Clone, Copy, Debug)]
pub struct ProcessBytes<'a>(&'a [u8]);

/// One region's part of the shared memory.
#[derive(Clone, Copy, Debug)]
pub struct RegionBytes<'a>(&'a [u8]);

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes
        .get(at..at + 8)
        .and_then(|part| part.try_into().ok())
        .map_or(0, u64::from_le_bytes)
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes
        .get(at..at + 4)
        .and_then(|part| part.try_into().ok())
        .map_or(0, u32::from_le_bytes)
}

/// The processes in the memory's `bytes`, each with the number of its place.
pub fn processes(bytes: &[u8]) -> impl Iterator<Item = (usize, ProcessBytes<'_>)> {
    let start = offset_of!(Run, processes);
    let size = size_of::<Process>();
    let place = move |index: usize| bytes.get(start + index * size..start + (index + 1) * size);
    (0..PROCESSES)
        .filter_map(move |index| Some((index, ProcessBytes(place(index)?))))
        .filter(|(_, process)| process.pid() != 0)
}

/// Total number of processes.
#[must_use]
pub fn taken(bytes: &[u8]) -> u32 {
    u32_at(bytes, offset_of!(Run, taken))
}

/// Number of processes whose place was reused after their end.
#[must_use]
pub fn displaced(bytes: &[u8]) -> u32 {
    u32_at(bytes, offset_of!(Run, displaced))
}

/// Number of processes that found no place.
#[must_use]
pub fn unplaced(bytes: &[u8]) -> u32 {
    u32_at(bytes, offset_of!(Run, unplaced))
}

/// Programs that are not managed: reason (a [`Unmanaged`](crate::shared::Unmanaged) as a number),
/// count, and name.
pub fn unmanaged(bytes: &[u8]) -> impl Iterator<Item = (u32, u32, &[u8])> {
    let start = offset_of!(Run, unmanaged);
    let size = size_of::<UnmanagedPlace>();
    let place = move |index: usize| bytes.get(start + index * size..start + (index + 1) * size);
    (0..UNMANAGED_PLACES).filter_map(place).filter_map(|one| {
        let (reason, count) = (u32_at(one, 0), u32_at(one, 4));
        let name = one.get(8..)?.split(|byte| *byte == 0).next()?;
        (reason != 0 && count != 0).then_some((reason, count, name))
    })
}

/// Number of unmanaged programs that found no place.
#[must_use]
pub fn more_unmanaged(bytes: &[u8]) -> u32 {
    u32_at(bytes, offset_of!(Run, more_unmanaged))
}

/// The sum of the counts of these two kinds of processes; only counters are meaningful in it.
#[must_use]
pub fn others(bytes: &[u8]) -> ProcessBytes<'_> {
    let start = offset_of!(Run, others);
    ProcessBytes(bytes.get(start..).unwrap_or(&[]))
}

/// Reads the counter given by its field.
#[macro_export]
macro_rules! counter {
    ($process:expr, $field:ident) => {
        $process.at(::core::mem::offset_of!($crate::shared::Process, $field))
    };
}

impl<'a> ProcessBytes<'a> {
    /// Process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        u32_at(self.0, offset_of!(Process, pid))
    }

    /// Whether it exited normally.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        u32_at(self.0, offset_of!(Process, ended)) != 0
    }

    /// The process that wants all pages in memory, and the last one for which they were; zero for
    /// none.
    #[must_use]
    pub fn hold(&self) -> [u32; 2] {
        [offset_of!(Process, hold), offset_of!(Process, filled_for)].map(|at| u32_at(self.0, at))
    }

    /// Whether it shows that it is alive with a lock on the byte with the number of its place.
    #[must_use]
    pub fn is_marked(&self) -> bool {
        u32_at(self.0, offset_of!(Process, marked)) != 0
    }

    /// The number of its store: forks share one.
    #[must_use]
    pub fn family(&self) -> u32 {
        u32_at(self.0, offset_of!(Process, family))
    }

    /// The command's name, up to its first zero.
    #[must_use]
    pub fn name(&self) -> &'a [u8] {
        let start = offset_of!(Process, name);
        let name = self.0.get(start..start + 16).unwrap_or(&[]);
        name.split(|byte| *byte == 0).next().unwrap_or(&[])
    }

    /// The 64-bit figure at `offset`; see [`counter!`](crate::counter).
    #[must_use]
    pub fn at(&self, offset: usize) -> u64 {
        u64_at(self.0, offset)
    }

    /// Latencies of faults that did not read the store, by bucket.
    #[must_use]
    pub fn latency_fast(&self) -> [u64; LATENCY_BUCKETS] {
        self.histogram(offset_of!(Process, latency_fast))
    }

    /// Latencies of faults that read the store.
    #[must_use]
    pub fn latency_read(&self) -> [u64; LATENCY_BUCKETS] {
        self.histogram(offset_of!(Process, latency_read))
    }

    /// Refault distances of pages that a fault waited for, by bucket.
    #[must_use]
    pub fn distance_waited(&self) -> [u64; DISTANCE_BUCKETS] {
        self.histogram(offset_of!(Process, distance_waited))
    }

    /// Refault distances of pages that were read back before they were needed.
    #[must_use]
    pub fn distance_ahead(&self) -> [u64; DISTANCE_BUCKETS] {
        self.histogram(offset_of!(Process, distance_ahead))
    }

    fn histogram<const BUCKETS: usize>(&self, start: usize) -> [u64; BUCKETS] {
        core::array::from_fn(|bucket| u64_at(self.0, start + bucket * 8))
    }

    /// Total number of regions.
    #[must_use]
    pub fn region_total(&self) -> u32 {
        u32_at(self.0, offset_of!(Process, region_total))
    }

    /// The regions that are described.
    pub fn regions(&self) -> impl Iterator<Item = RegionBytes<'a>> {
        let bytes = self.0;
        let count = u32_at(bytes, offset_of!(Process, region_count)) as usize;
        let start = offset_of!(Process, regions);
        let size = size_of::<Region>();
        (0..count.min(REGIONS))
            .filter_map(move |index| bytes.get(start + index * size..start + (index + 1) * size))
            .map(RegionBytes)
    }
}

impl RegionBytes<'_> {
    /// First address.
    #[must_use]
    pub fn start(&self) -> u64 {
        u64_at(self.0, offset_of!(Region, start))
    }

    /// First address past it.
    #[must_use]
    pub fn end(&self) -> u64 {
        u64_at(self.0, offset_of!(Region, end))
    }

    /// Number of the mapping that it is a part of.
    #[must_use]
    pub fn number(&self) -> u16 {
        let [.., low, high, _, _] = u64_at(self.0, offset_of!(Region, delivery)).to_le_bytes();
        u16::from_le_bytes([low, high])
    }

    /// Faults in all parts of the mapping, and those of them on evicted pages.
    #[must_use]
    pub fn faults(&self) -> [u64; 2] {
        [offset_of!(Region, faults), offset_of!(Region, refaults)].map(|at| u64_at(self.0, at))
    }

    /// The heat of its pages, as in [`Region::heat`].
    #[must_use]
    pub fn heat(&self) -> [u64; 5] {
        let start = offset_of!(Region, heat);
        core::array::from_fn(|which| u64::from(u32_at(self.0, start + which * 4)))
    }

    /// Delivery, reason and role, one byte each.
    #[must_use]
    pub fn delivery(&self) -> [u8; 3] {
        let bytes = u64_at(self.0, offset_of!(Region, delivery)).to_le_bytes();
        [bytes[0], bytes[1], bytes[2]]
    }

    /// Resident, dirty and evicted pages.
    #[must_use]
    pub fn pages(&self) -> [u64; 3] {
        [
            offset_of!(Region, resident),
            offset_of!(Region, dirty),
            offset_of!(Region, evicted),
        ]
        .map(|at| u64_at(self.0, at))
    }
}
