//! The kinds of memory in one process, by address.

use super::mappers::Mapper;
use pagewise_model::findings::RegionKind;
use rustc_hash::FxHashSet;
use smallvec::SmallVec;
use std::collections::BTreeMap;

/// Alignment and size of a heap of glibc's thread arenas on 64-bit machines: `HEAP_MAX_SIZE`, twice
/// `DEFAULT_MMAP_THRESHOLD_MAX` (malloc/arena.c, glibc 2.2 to 2.41).
const ARENA_HEAP: u64 = 64 << 20;
/// How far below its lowest known page a stack may grow before the address counts as something
/// else: the kernel's default limit is 8 MiB, generous configurations use up to this.
const STACK_REACH: u64 = 64 << 20;
/// How far above its last known end memory still counts as the heap.
const HEAP_REACH: u64 = 64 << 20;
/// Smallest block that glibc maps separately: `DEFAULT_MMAP_THRESHOLD_MIN` (malloc/malloc.c).
const SMALLEST_MMAPPED_CHUNK: u64 = 128 << 10;

/// One stretch of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Region {
    /// End address, exclusive.
    pub(super) end: u64,
    /// Kind of memory.
    pub(super) kind: RegionKind,
    /// Whether it may be written.
    pub(super) writable: bool,
    /// Whether the program requested huge pages here (`MADV_HUGEPAGE`) or refused them.
    pub(super) huge: HugeWish,
    /// Mapped before observation began: its pages may have been touched unseen.
    pub(super) inherited: bool,
    /// Share of its pages (in thousandths) that, according to sampled faults, had been touched when
    /// the process last forked: these are copied on their next write.
    pub(super) shared_permille: u16,
    /// The part that its newest record added, as far as records show.
    pub(super) newest: (u64, u64),
    /// Whose code mapped it.
    pub(super) mapper: Mapper,
}

impl Region {
    /// A stretch of `kind` up to `end`, with nothing else known.
    pub(super) fn new(end: u64, kind: RegionKind, writable: bool) -> Self {
        Self {
            end,
            kind,
            writable,
            huge: HugeWish::None,
            inherited: false,
            shared_permille: 0,
            newest: (0, 0),
            mapper: Mapper::Unknown,
        }
    }
}

/// The program's advice on huge pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HugeWish {
    /// Nothing.
    None,
    /// `MADV_HUGEPAGE`.
    Wanted,
    /// `MADV_NOHUGEPAGE`.
    Refused,
}

/// The data of a new anonymous mapping.
#[derive(Clone, Copy, Debug)]
pub(super) struct Anonymous {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) writable: bool,
    pub(super) inherited: bool,
}

/// All stretches of one process.
#[derive(Clone, Debug, Default)]
pub(super) struct Regions {
    by_start: BTreeMap<u64, Region>,
    arena_heaps: FxHashSet<u64>,
    stack_low: Option<u64>,
    /// Current end of the `brk` heap, once known.
    pub(super) heap_end: Option<u64>,
}

impl Regions {
    /// Maps a stretch over the previous contents.
    pub(super) fn map(&mut self, start: u64, region: Region) {
        if start < region.end {
            self.unmap(start, region.end);
            self.by_start.insert(start, region);
        }
    }

    /// Removes a stretch, splitting regions at its edges.
    /// Whether no mapping was recorded.
    pub(super) fn is_empty(&self) -> bool {
        self.by_start.is_empty()
    }

    pub(super) fn unmap(&mut self, start: u64, end: u64) {
        while let Some((&from, &region)) = self.by_start.range(..end).next_back() {
            if region.end <= start {
                break;
            }
            self.by_start.remove(&from);
            if region.end > end {
                self.by_start.insert(end, region);
            }
            if from < start {
                self.by_start.insert(
                    from,
                    Region {
                        end: start,
                        ..region
                    },
                );
                break;
            }
        }
        self.forget_arenas(start, end);
    }

    fn forget_arenas(&mut self, start: u64, end: u64) {
        if end - start >= ARENA_HEAP && !self.arena_heaps.is_empty() {
            self.arena_heaps
                .retain(|&base| base + ARENA_HEAP <= start || base >= end);
        }
    }

    /// The stretch that contains `address`, with its start.
    pub(super) fn find(&self, address: u64) -> Option<(u64, Region)> {
        let (&start, &region) = self.by_start.range(..=address).next_back()?;
        (address < region.end).then_some((start, region))
    }

    /// Kind of the memory at `address`. A stack is also recognised below its known end, and the
    /// heap above its own, if its growth was not recorded.
    pub(super) fn kind_at(&self, address: u64) -> Option<(u64, Region)> {
        self.find(address)
            .or_else(|| self.grown_stack(address))
            .or_else(|| self.grown_heap(address))
    }

    fn grown_heap(&self, address: u64) -> Option<(u64, Region)> {
        let end = self.heap_end?;
        let reach = end.saturating_add(HEAP_REACH);
        (end..reach)
            .contains(&address)
            .then_some((end, Region::new(reach, RegionKind::Heap, true)))
    }

    fn grown_stack(&self, address: u64) -> Option<(u64, Region)> {
        let low = self.stack_low?;
        let is_below = address < low && low - address <= STACK_REACH;
        is_below.then_some((address, Region::new(low, RegionKind::Stack, true)))
    }

    /// Records the main stack's lowest mapped address.
    pub(super) fn set_stack(&mut self, low: u64) {
        self.stack_low = Some(low);
    }

    /// Records an anonymous mapping and returns its kind of memory. A heap of a thread arena is
    /// recognised by being made accessible from a 64 MiB boundary inside a stretch reserved without
    /// access rights (`new_heap` in malloc/arena.c); `owner` determines the kind of the rest.
    pub(super) fn map_anonymous(&mut self, new: Anonymous, owner: Owner) -> RegionKind {
        let base = new.start & !(ARENA_HEAP - 1);
        let reserved = self
            .find(new.start)
            .is_some_and(|(_, old)| !old.writable && old.kind == RegionKind::Anonymous);
        let opens_heap = new.start == base && new.end - base <= ARENA_HEAP && reserved;
        if owner.has_thread_arenas() && new.writable && opens_heap {
            self.arena_heaps.insert(base);
        }
        let in_arena = self.arena_heaps.contains(&base) && new.end <= base + ARENA_HEAP;
        let previous = self.find(new.start).map(|(_, old)| old.kind);
        let kind = match previous {
            _ if in_arena => RegionKind::ThreadArena,
            Some(RegionKind::Stack) => RegionKind::Stack,
            _ if owner.maps_chunks()
                && new.writable
                && new.end - new.start >= SMALLEST_MMAPPED_CHUNK =>
            {
                RegionKind::MmappedChunk
            }
            _ => RegionKind::Anonymous,
        };
        let region = Region::new(new.end, kind, new.writable);
        self.map(
            new.start,
            Region {
                inherited: new.inherited,
                ..region
            },
        );
        if in_arena {
            self.arena_heaps.insert(base);
        }
        kind
    }

    /// Changes each stretch inside a range, split at its edges.
    pub(super) fn change(&mut self, start: u64, end: u64, change: impl Fn(&mut Region)) {
        for (from, mut region) in self.overlapping(start, end) {
            change(&mut region);
            self.map(from, region);
        }
    }

    /// The stretches that overlap a range, clipped to it, highest first.
    pub(super) fn overlapping(&self, start: u64, end: u64) -> SmallVec<[(u64, Region); 2]> {
        self.by_start
            .range(..end)
            .rev()
            .take_while(|(_, region)| region.end > start)
            .map(|(&from, &region)| {
                (
                    from.max(start),
                    Region {
                        end: region.end.min(end),
                        ..region
                    },
                )
            })
            .collect()
    }

    /// Every stretch with its start.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (u64, &mut Region)> {
        self.by_start
            .iter_mut()
            .map(|(&start, region)| (start, region))
    }

    /// Whether every page from `start` to `end` is private anonymous memory that the kernel could
    /// back by a huge page.
    pub(super) fn is_anonymous_throughout(&self, start: u64, end: u64) -> bool {
        let mut at = start;
        while at < end {
            match self.find(at) {
                Some((_, region)) if region.writable && is_malloc_like(region.kind) => {
                    at = region.end
                }
                _ => return false,
            }
        }
        true
    }
}

/// Private anonymous memory apart from stacks.
pub(super) fn is_malloc_like(kind: RegionKind) -> bool {
    matches!(
        kind,
        RegionKind::Heap
            | RegionKind::MmappedChunk
            | RegionKind::ThreadArena
            | RegionKind::Anonymous
    )
}

/// Private anonymous memory, including stacks: memory that can be freed and faulted again.
#[must_use]
pub fn is_private_anonymous(kind: RegionKind) -> bool {
    is_malloc_like(kind) || matches!(kind, RegionKind::Stack | RegionKind::Hugetlb)
}

/// The owner of anonymous memory in the observed process, according to its allocators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// glibc's malloc: thread arenas and mapped chunks.
    Glibc,
    /// Another allocator that maps single blocks (musl).
    ChunkMapper,
    /// An allocator or runtime that maps large stretches and divides them itself.
    Runtime,
}

impl Owner {
    fn has_thread_arenas(self) -> bool {
        self == Self::Glibc
    }

    fn maps_chunks(self) -> bool {
        self != Self::Runtime
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn anonymous(start: u64, end: u64, writable: bool) -> Anonymous {
        Anonymous {
            start,
            end,
            writable,
            inherited: false,
        }
    }

    #[test]
    fn an_aligned_reservation_made_accessible_is_an_arena() {
        let mut regions = Regions::default();
        let base = 0x7f00_0000_0000;
        regions.map_anonymous(anonymous(base, base + ARENA_HEAP, false), Owner::Glibc);
        let first = regions.map_anonymous(anonymous(base, base + 0x21000, true), Owner::Glibc);
        let grown = regions.map_anonymous(
            anonymous(base + 0x21000, base + 0x40000, true),
            Owner::Glibc,
        );
        assert_eq!(
            (first, grown),
            (RegionKind::ThreadArena, RegionKind::ThreadArena)
        );
    }

    #[test]
    fn the_same_pattern_of_another_runtime_is_not() {
        let mut regions = Regions::default();
        let base = 0xc0_0000_0000;
        regions.map_anonymous(anonymous(base, base + ARENA_HEAP, false), Owner::Runtime);
        let kind = regions.map_anonymous(anonymous(base, base + 0x40_0000, true), Owner::Runtime);
        assert_eq!(kind, RegionKind::Anonymous);
    }

    /// Once an arena is unmapped, its place has no special meaning.
    #[test]
    fn an_arena_that_is_gone_makes_no_arena_of_what_comes_there() {
        let mut regions = Regions::default();
        let base = 0x7f00_0000_0000;
        regions.map_anonymous(anonymous(base, base + ARENA_HEAP, false), Owner::Glibc);
        regions.map_anonymous(anonymous(base, base + 0x21000, true), Owner::Glibc);
        regions.unmap(base, base + ARENA_HEAP);
        let later = anonymous(base + 0x10_0000, base + 0x20_0000, true);
        let kind = regions.map_anonymous(later, Owner::Glibc);
        assert_eq!(kind, RegionKind::MmappedChunk);
    }

    #[test]
    fn a_hole_leaves_both_sides() {
        let mut regions = Regions::default();
        regions.map_anonymous(anonymous(0x10_0000, 0x90_0000, true), Owner::Glibc);
        regions.unmap(0x20_0000, 0x30_0000);
        assert!(regions.find(0x2f_f000).is_none());
        assert_eq!(
            regions.find(0x1f_f000).map(|(start, r)| (start, r.end)),
            Some((0x10_0000, 0x20_0000))
        );
        assert_eq!(
            regions.find(0x30_0000).map(|(start, r)| (start, r.end)),
            Some((0x30_0000, 0x90_0000))
        );
        assert!(!regions.is_anonymous_throughout(0x10_0000, 0x40_0000));
    }
}
