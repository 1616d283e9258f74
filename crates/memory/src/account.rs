//! Mappings and heaps of one process, as rows that add up to its resident memory.

mod growth;

use crate::extents::{Extent, ExtentSums, PageBytes};
use crate::groups::{DrawnBlock, Owners, groups};
use pagewise_model::memory::{
    Heap, HeapFacts, MemoryKind, MemoryRow, PageRun, ProcessMemory, Returns, Unread,
};
use pagewise_model::units::{Bytes, Nanos};

/// What a mapping is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MappingKind {
    /// Private and anonymous: heaps may be in it.
    Anonymous,
    /// A thread's stack.
    Stack,
    /// Code and data of the program or a library.
    Program,
    /// Another file.
    File,
    /// Shared memory.
    Shared,
    /// The kernel's.
    Special,
}

/// A mapping, as smaps counts it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MappingFacts {
    /// First address.
    pub start: u64,
    /// First address after it.
    pub end: u64,
    /// What it is for.
    pub kind: MappingKind,
    /// In memory.
    pub resident: Bytes,
    /// In memory, each page divided by the number of processes that map it.
    pub proportional: Bytes,
    /// Swapped out.
    pub swapped: Bytes,
    /// Pages of zeros in its huge pages, outside heaps that were read.
    pub zeros: Bytes,
}

/// Everything that was read of one process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProcessFacts {
    /// Process id.
    pub pid: i32,
    /// Its name.
    pub name: String,
    /// Page tables.
    pub page_tables: Bytes,
    /// Largest resident set so far.
    pub peak_resident: Option<Bytes>,
    /// Its mappings.
    pub mappings: Vec<MappingFacts>,
    /// The heaps that were read.
    pub heaps: Vec<HeapFacts>,
    /// Their extents, by address.
    pub extents: Vec<Extent>,
    /// Blocks in use, drawn by their resident bytes.
    pub live: Vec<DrawnBlock>,
    /// Blocks that hold pages with free space, drawn by the bytes of that space.
    pub pins: Vec<DrawnBlock>,
    /// Huge pages that were not searched for zeros.
    pub huge_unsearched: Bytes,
    /// For how long it was stopped while its heaps were read.
    pub stopped: Nanos,
    /// Ranges that should have been read and could not.
    pub unread: Vec<UnreadRange>,
}

/// A range that should have been read and could not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnreadRange {
    /// First address.
    pub start: u64,
    /// First address after it.
    pub end: u64,
    /// Why.
    pub why: Unread,
    /// In memory, where that was found out; at most this much of a mapping has this reason.
    pub resident: u64,
    /// Swapped out.
    pub swapped: u64,
}

impl UnreadRange {
    /// All memory.
    #[must_use]
    pub fn all(why: Unread) -> Self {
        Self {
            start: 0,
            end: u64::MAX,
            why,
            resident: u64::MAX,
            swapped: u64::MAX,
        }
    }
}

/// The account of a process.
#[must_use]
pub fn account(mut facts: ProcessFacts) -> ProcessMemory {
    for heap in &mut facts.heaps {
        heap.extents.sort_unstable();
    }
    facts.join_mappings();
    let mut rows = Rows::default();
    for mapping in &facts.mappings {
        rows.add_mapping(mapping, &facts);
    }
    let sum = |of: fn(&MappingFacts) -> Bytes| facts.mappings.iter().map(of).sum::<Bytes>();
    let resident = sum(|mapping| mapping.resident);
    let heaps = facts
        .heaps
        .iter()
        .map(|heap| heap_of(heap, &facts))
        .collect();
    let (live, pinned) = facts.live_and_pinned();
    let owners = Owners::new(&facts.heaps, &facts.extents);
    let blocks = groups(&facts.live, |block| owners.owner(block), live);
    let pins = groups(&facts.pins, |block| owners.owner(block), pinned);
    let mut rows = rows.0;
    rows.retain(|row| row.resident.0 + row.swapped.0 > 0);
    rows.sort_by_key(|row| (row.kind, std::cmp::Reverse(row.resident)));
    let in_rows: u64 = rows.iter().map(|row| row.resident.0).sum();
    ProcessMemory {
        pid: facts.pid,
        residue: resident.0.cast_signed() - in_rows.cast_signed(),
        resident,
        proportional: sum(|mapping| mapping.proportional),
        swapped: sum(|mapping| mapping.swapped),
        name: facts.name,
        peak_resident: facts.peak_resident,
        page_tables: facts.page_tables,
        huge_unsearched: facts.huge_unsearched,
        stopped_ns: facts.stopped.0,
        rows,
        heaps,
        blocks,
        pins,
        leaks: None,
    }
}

/// The heap, with what it would return.
fn heap_of(facts: &HeapFacts, process: &ProcessFacts) -> Heap {
    let sums = sums_of(facts, &process.extents);
    let returnable = match facts.returns {
        Returns::PagesAndReserve => sums.freed.resident + sums.reserve_pages.resident,
        Returns::Pages => sums.freed.resident,
        Returns::Nothing => 0,
    };
    Heap {
        returnable: Bytes(returnable),
        ..facts.heap.clone()
    }
}

fn sums_of(heap: &HeapFacts, extents: &[Extent]) -> ExtentSums {
    let mut sums = ExtentSums::default();
    for extent in extents {
        if heap.extents.binary_search(&extent.start).is_ok() {
            sums += extent.sums;
        }
    }
    sums
}

/// Rows, one for each kind, allocator and part.
#[derive(Default)]
struct Rows(Vec<MemoryRow>);

impl Rows {
    fn add(&mut self, row: MemoryRow) {
        match self.0.iter_mut().find(|known| known.is_like(&row)) {
            Some(known) => known.add(&row),
            None => self.0.push(row),
        }
    }

    fn add_mapping(&mut self, mapping: &MappingFacts, facts: &ProcessFacts) {
        let first = facts
            .extents
            .partition_point(|one| one.start < mapping.start);
        let behind = facts.extents.partition_point(|one| one.start < mapping.end);
        let within = facts.extents.get(first..behind).unwrap_or_default();
        let mut heaps = PageBytes::default();
        for heap in facts.heaps.iter().filter(|_| !within.is_empty()) {
            let sums = sums_of(heap, within);
            heaps += sums.total();
            self.add_heap(mapping, heap, &sums, facts);
        }
        let left = mapping.resident.0.saturating_sub(heaps.resident);
        let zeros = mapping.zeros.0.min(left);
        let kind = match mapping.kind {
            MappingKind::Anonymous => MemoryKind::NotReadable,
            MappingKind::Stack => MemoryKind::Stacks,
            MappingKind::Program => MemoryKind::Program,
            MappingKind::File => MemoryKind::Files,
            MappingKind::Shared => MemoryKind::Shared,
            MappingKind::Special => MemoryKind::Special,
        };
        let mut rest = PageBytes {
            resident: left - zeros,
            swapped: mapping.swapped.0.saturating_sub(heaps.swapped),
        };
        if kind == MemoryKind::NotReadable {
            for (why, bytes) in facts.unread_in(mapping, rest) {
                rest.resident -= bytes.resident;
                rest.swapped -= bytes.swapped;
                self.add(MemoryRow {
                    unread: Some(why),
                    ..row(kind, bytes, mapping)
                });
            }
        }
        let is_unknown = kind == MemoryKind::NotReadable;
        self.add(MemoryRow {
            unread: is_unknown.then_some(Unread::NoKnownAllocator),
            ..row(kind, rest, mapping)
        });
        let zeros = PageBytes {
            resident: zeros,
            swapped: 0,
        };
        self.add(row(MemoryKind::HugeBloat, zeros, mapping));
    }

    fn add_heap(
        &mut self,
        mapping: &MappingFacts,
        facts: &HeapFacts,
        sums: &ExtentSums,
        process: &ProcessFacts,
    ) {
        let heap = &facts.heap;
        // Where the cached blocks are is not kept: they are divided as the blocks in use are.
        let cached = match heap.cached.0 {
            0 => 0,
            cached => {
                let live = sums_of(facts, &process.extents).live.resident;
                share(cached.min(live), sums.live.resident, live)
            }
        };
        let cached = PageBytes {
            resident: cached,
            swapped: 0,
        };
        let live = PageBytes {
            resident: sums.live.resident - cached.resident,
            swapped: sums.live.swapped,
        };
        for (kind, bytes) in [
            (MemoryKind::Live, live),
            (MemoryKind::HugeBloat, sums.zeros),
            (MemoryKind::Cached, cached),
            (MemoryKind::FreedKept, sums.freed),
            (MemoryKind::Pinned, sums.pinned),
            (MemoryKind::Reserve, sums.reserve),
            (MemoryKind::Bookkeeping, sums.bookkeeping),
            (MemoryKind::NotReadable, sums.changed),
        ] {
            let is_read = kind != MemoryKind::NotReadable;
            self.add(MemoryRow {
                allocator: Some(heap.allocator),
                part: Some(heap.part),
                unread: (!is_read).then_some(Unread::Changed),
                ..row(kind, bytes, mapping)
            });
        }
    }
}

impl ProcessFacts {
    /// Resident bytes of blocks in use, and of free space on pages with others, in all heaps.
    fn live_and_pinned(&self) -> (u64, u64) {
        let sums = self.heaps.iter().map(|heap| sums_of(heap, &self.extents));
        sums.fold((0, 0), |(live, pinned), sums| {
            (live + sums.live.resident, pinned + sums.pinned.resident)
        })
    }

    /// Notes pages of zeros in huge pages, by address. Those inside heaps that were read are known
    /// there already.
    pub fn note_zeros(&mut self, zeros: &[PageRun]) {
        for mapping in &mut self.mappings {
            let first = zeros.partition_point(|run| run.end <= mapping.start);
            let inside = zeros.get(first..).unwrap_or_default().iter();
            let inside = inside.take_while(|run| run.start < mapping.end);
            mapping.zeros = inside
                .map(|run| {
                    let range = (run.start.max(mapping.start), run.end.min(mapping.end));
                    Bytes(outside(&self.extents, range))
                })
                .sum();
        }
    }

    /// Joins mappings that one heap goes through: a heap that grew after a fork, or of which a part
    /// got other flags, is several to the kernel.
    fn join_mappings(&mut self) {
        let mut joined: Vec<MappingFacts> = Vec::new();
        for mapping in std::mem::take(&mut self.mappings) {
            let behind = self
                .extents
                .partition_point(|one| one.start < mapping.start);
            let before = behind.checked_sub(1).and_then(|at| self.extents.get(at));
            let goes_through = before.is_some_and(|extent| mapping.start < extent.end);
            match joined.last_mut() {
                Some(last)
                    if last.end == mapping.start && last.kind == mapping.kind && goes_through =>
                {
                    last.end = mapping.end;
                    last.resident += mapping.resident;
                    last.proportional += mapping.proportional;
                    last.swapped += mapping.swapped;
                    last.zeros += mapping.zeros;
                }
                _ => joined.push(mapping),
            }
        }
        self.mappings = joined;
    }

    /// Parts of `rest`, the bytes of a mapping in no heap, that should have been read: why, and how
    /// much.
    fn unread_in(&self, mapping: &MappingFacts, mut rest: PageBytes) -> Vec<(Unread, PageBytes)> {
        let overlaps =
            |range: &&UnreadRange| range.start < mapping.end && mapping.start < range.end;
        let mut parts = Vec::new();
        for range in self.unread.iter().filter(overlaps) {
            let bytes = PageBytes {
                resident: range.resident.min(rest.resident),
                swapped: range.swapped.min(rest.swapped),
            };
            rest.resident -= bytes.resident;
            rest.swapped -= bytes.swapped;
            parts.push((range.why, bytes));
        }
        parts
    }
}

/// Bytes of a range that are in none of these extents.
fn outside(extents: &[Extent], (start, end): (u64, u64)) -> u64 {
    let first = extents.partition_point(|extent| extent.end <= start);
    let within = extents.get(first..).unwrap_or_default().iter();
    let within = within.take_while(|extent| extent.start < end);
    let inside: u64 = within
        .map(|extent| extent.end.min(end) - extent.start.max(start))
        .sum();
    end - start - inside
}

fn row(kind: MemoryKind, bytes: PageBytes, mapping: &MappingFacts) -> MemoryRow {
    let proportional = share(bytes.resident, mapping.proportional.0, mapping.resident.0);
    MemoryRow {
        resident: Bytes(bytes.resident),
        proportional: Bytes(proportional),
        swapped: Bytes(bytes.swapped),
        ..MemoryRow::new(kind)
    }
}

/// `of` × `part` ÷ `whole`.
fn share(of: u64, part: u64, whole: u64) -> u64 {
    match u128::from(of) * u128::from(part) / u128::from(whole.max(1)) {
        product if whole > 0 => u64::try_from(product).unwrap_or(u64::MAX),
        _ => 0,
    }
}

#[cfg(test)]
mod tests;
