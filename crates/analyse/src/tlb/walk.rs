//! Page walks: references to page tables, what saves them, and pages of tables.

use super::array::Array;
use super::machine::{Array as Description, Index, Machine};
use super::{PageSize, Replacement, SpaceId};
use rustc_hash::FxHashMap;

/// Numbers the pages that hold a guest's page tables, in the order in which walks first meet them;
/// their guest physical addresses are taken as consecutive.
#[derive(Clone, Debug, Default)]
pub struct Tables {
    pages: FxHashMap<(SpaceId, u32, u64), u32>,
    next: FxHashMap<SpaceId, u32>,
}

impl Tables {
    /// The number within its guest of the table of `level` (1 holds small pages' entries) that covers
    /// `prefix`.
    pub fn page(&mut self, space: SpaceId, level: u32, prefix: u64) -> u32 {
        *self.pages.entry((space, level, prefix)).or_insert_with(|| {
            let next = self.next.entry(space).or_default();
            *next += 1;
            *next - 1
        })
    }
}

/// Page numbers of tables begin here, far above those of data.
pub const TABLES: u64 = 1 << 40;
/// Virtual chunk numbers of a guest's page tables begin here, where no program has memory.
pub const TABLE_CHUNKS: u64 = 1 << 44;

/// A fully associative cache of the walker, described like an array of TLB entries.
pub fn description(entries: u32) -> Description {
    Description {
        holds: Vec::new(),
        entries,
        ways: entries,
        replacement: Replacement::Lru,
        pages_per_entry: 1,
        index: Index::Linear,
    }
}

/// Levels of the table that a walk for a page of this size reads.
pub fn levels(machine: &Machine, size: PageSize) -> u32 {
    match size {
        PageSize::Small => machine.walk.levels,
        PageSize::Huge => machine.walk.levels - 1,
    }
}

/// The lowest table that a walk for this size reads: 1 holds small pages' entries.
pub fn lowest(size: PageSize) -> u32 {
    match size {
        PageSize::Small => 1,
        PageSize::Huge => 2,
    }
}

/// The prefix of an address that a table of `level` covers; `chunk` is its huge page's number.
pub fn prefix(machine: &Machine, level: u32, chunk: u64) -> u64 {
    let bits = machine.huge_shift() - machine.small_shift();
    chunk >> (bits * (level - 1)).min(63)
}

/// A walk in a guest.
#[derive(Clone, Copy, Debug)]
pub struct GuestWalk {
    /// Number of the address's huge page.
    pub chunk: u64,
    /// Page size of the guest's table.
    pub first: PageSize,
    /// Page size of the host's table for the data.
    pub second: PageSize,
    /// The same for the guest's page tables.
    pub tables: PageSize,
    /// Guest physical number of the data's small page.
    pub physical: u64,
}

/// The walker's caches of one machine.
#[derive(Clone, Debug)]
pub struct Walker {
    /// Caches with the lowest table that they lead to, those that save most first.
    caches: Vec<(u32, Array)>,
    nested: Option<Array>,
    tables: Tables,
    /// Tags for prefixes and nested pages.
    tags: FxHashMap<(SpaceId, u32, u64), u32>,
}

/// Marks tags of nested huge pages apart from small ones and from prefixes.
const NESTED: [u32; 2] = [100, 101];

impl Walker {
    pub fn new(machine: &Machine) -> Self {
        let mut caches = machine.walk.caches.clone();
        caches.sort_by_key(|cache| cache.remaining);
        let nested = machine.walk.nested_entries;
        Self {
            caches: caches
                .iter()
                .map(|cache| (cache.remaining, Array::new(&description(cache.entries))))
                .collect(),
            nested: (nested > 0).then(|| Array::new(&description(nested))),
            tables: Tables::default(),
            tags: FxHashMap::default(),
        }
    }

    fn tag(&mut self, space: SpaceId, kind: u32, number: u64) -> u32 {
        let next = self.tags.len() as u32;
        *self.tags.entry((space, kind, number)).or_insert(next)
    }

    /// Where a walk begins: how many tables it reads, the lowest one included. Fills the caches.
    pub fn tables_read(
        &mut self,
        machine: &Machine,
        space: SpaceId,
        chunk: u64,
        size: PageSize,
    ) -> u32 {
        let lowest = lowest(size);
        let mut read = levels(machine, size);
        let mut missed = Vec::new();
        for at in 0..self.caches.len() {
            let (remaining, _) = self.caches[at];
            if remaining < lowest {
                continue;
            }
            let covers = prefix(machine, remaining, chunk);
            let tag = self.tag(space, remaining, covers);
            if self.caches[at].1.hit(0, tag) {
                read = remaining - lowest + 1;
                break;
            }
            missed.push((at, tag));
        }
        for (at, tag) in missed {
            self.caches[at].1.fill(0, tag);
        }
        read
    }

    /// References to read the host's tables for a guest physical page.
    fn nested(&mut self, machine: &Machine, space: SpaceId, page: u64, size: PageSize) -> u64 {
        let bits = machine.huge_shift() - machine.small_shift();
        let number = match size {
            PageSize::Small => page,
            PageSize::Huge => page >> bits,
        };
        let tag = self.tag(space, NESTED[size as usize], number);
        if let Some(cache) = &mut self.nested {
            if cache.hit(0, tag) {
                return 0;
            }
            cache.fill(0, tag);
        }
        let all = levels(machine, size);
        u64::from(all.saturating_sub(machine.walk.nested_levels_cached).max(1))
    }

    /// References of a walk in a native process.
    pub fn native(&mut self, machine: &Machine, space: SpaceId, chunk: u64, size: PageSize) -> u64 {
        u64::from(self.tables_read(machine, space, chunk, size))
    }

    /// References of a walk in a guest: each of its tables is itself at a guest physical address.
    pub fn guest(&mut self, machine: &Machine, space: SpaceId, walk: &GuestWalk) -> u64 {
        let lowest = lowest(walk.first);
        let read = self.tables_read(machine, space, walk.chunk, walk.first);
        let mut references = 0;
        for level in (lowest..lowest + read).rev() {
            let table = u64::from(self.table(machine, space, level, walk.chunk));
            references += 1 + self.nested(machine, space, TABLES + table, walk.tables);
        }
        references + self.nested(machine, space, walk.physical, walk.second)
    }

    /// The page of tables that a walk reads at `level`.
    pub fn table(&mut self, machine: &Machine, space: SpaceId, level: u32, chunk: u64) -> u32 {
        let covers = prefix(machine, level, chunk);
        self.tables.page(space, level, covers)
    }

    /// Forgets a space: after a change of page tables the walker's caches are flushed.
    pub fn forget(&mut self, space: SpaceId) {
        let tags = &self.tags;
        let gone: rustc_hash::FxHashSet<u32> = tags
            .iter()
            .filter(|((of, _, _), _)| *of == space)
            .map(|(_, &tag)| tag)
            .collect();
        for (_, cache) in &mut self.caches {
            cache.drop_where(|tag| gone.contains(&tag));
        }
        if let Some(cache) = &mut self.nested {
            cache.drop_where(|tag| gone.contains(&tag));
        }
    }
}
