//! The plain engine that tests compare the others with: lists of entries by real page numbers,
//! without optimisations. It shares nothing with [`super::Exact`] except machine descriptions, the
//! draws of random replacement and the rules of [`super::Engine`].

use super::array::Indexing;
use super::counts::Counts;
use super::engine::{Engine, Space, SpaceId};
use super::machine::{Array as Description, Machine, Stages};
use super::machine::{PageSize, Stage};
use super::replacement::{Draws, Replacement};
use std::collections::HashMap;

/// Page numbers of page tables start here, far above those of data.
const TABLES: u64 = 1 << 40;

/// The plain engine.
#[derive(Debug)]
pub struct Naive {
    machine: Machine,
    spaces: Vec<NaiveSpace>,
    levels: Vec<Vec<List>>,
    caches: Vec<(u32, List)>,
    nested: Option<List>,
    counts: Counts,
    time: u64,
}

#[derive(Debug)]
struct NaiveSpace {
    begins: Space,
    physical: HashMap<u64, u64>,
    sizes: HashMap<(Stage, u64), PageSize>,
    tables: HashMap<(u32, u64), u64>,
}

/// The range that an entry maps: pages `number * group ..` of `size`, virtual or guest physical.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Key {
    space: SpaceId,
    stage: Stage,
    size: PageSize,
    number: u64,
    group: u64,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    key: Key,
    used: u64,
    filled: u64,
}

/// An array: sets of ways.
#[derive(Debug)]
struct List {
    description: Description,
    sets: Vec<Vec<Option<Entry>>>,
    trees: Vec<Vec<bool>>,
    draws: Draws,
}

impl List {
    fn new(description: &Description) -> Self {
        let sets = description.sets() as usize;
        let ways = description.ways as usize;
        Self {
            description: description.clone(),
            sets: vec![vec![None; ways]; sets],
            trees: vec![vec![false; ways.max(2)]; sets],
            draws: Draws::default(),
        }
    }

    fn set(&self, key: Key) -> usize {
        Indexing::new(&self.description).set(key.number as u32)
    }

    fn hit(&mut self, key: Key, time: u64) -> bool {
        let set = self.set(key);
        let place = self.sets[set]
            .iter()
            .position(|entry| entry.is_some_and(|entry| entry.key == key));
        let Some(way) = place else {
            return false;
        };
        if let Some(entry) = &mut self.sets[set][way] {
            entry.used = time;
        }
        self.point_away(set, way);
        true
    }

    fn fill(&mut self, key: Key, time: u64) -> Option<Key> {
        let set = self.set(key);
        let free = self.sets[set].iter().position(Option::is_none);
        let way = free.unwrap_or_else(|| self.victim(set));
        let went = self.sets[set][way].replace(Entry {
            key,
            used: time,
            filled: time,
        });
        self.point_away(set, way);
        went.map(|entry| entry.key)
    }

    fn victim(&mut self, set: usize) -> usize {
        let ways = self.sets[set].len();
        let oldest = |time: fn(&Entry) -> u64| {
            let times = self.sets[set].iter().map(|entry| entry.as_ref().map(time));
            times
                .enumerate()
                .min_by_key(|(_, time)| *time)
                .map_or(0, |(way, _)| way)
        };
        match self.description.replacement {
            Replacement::Lru => oldest(|entry| entry.used),
            Replacement::Fifo => oldest(|entry| entry.filled),
            Replacement::Random => self.draws.way(ways),
            Replacement::TreePlru => {
                let (mut low, mut high, mut node) = (0, ways, 1);
                while high - low > 1 {
                    let middle = usize::midpoint(low, high);
                    let is_upper = self.trees[set][node];
                    (low, high) = if is_upper {
                        (middle, high)
                    } else {
                        (low, middle)
                    };
                    node = 2 * node + usize::from(is_upper);
                }
                low
            }
        }
    }

    fn point_away(&mut self, set: usize, way: usize) {
        let (mut low, mut high, mut node) = (0, self.sets[set].len(), 1);
        while high - low > 1 {
            let middle = usize::midpoint(low, high);
            let is_upper = way >= middle;
            self.trees[set][node] = !is_upper;
            (low, high) = if is_upper {
                (middle, high)
            } else {
                (low, middle)
            };
            node = 2 * node + usize::from(is_upper);
            if node >= self.trees[set].len() {
                break;
            }
        }
    }

    fn drop_where(&mut self, matches: impl Fn(Key) -> bool) {
        for entry in self.sets.iter_mut().flatten() {
            if entry.is_some_and(|entry| matches(entry.key)) {
                *entry = None;
            }
        }
    }
}

impl Naive {
    /// An engine with empty TLBs.
    #[must_use]
    pub fn new(machine: &Machine) -> Self {
        let cache = |entries| List::new(&super::walk::description(entries));
        let mut caches: Vec<_> = machine.walk.caches.clone();
        caches.sort_by_key(|cache| cache.remaining);
        let nested = machine.walk.nested_entries;
        Self {
            machine: machine.clone(),
            spaces: Vec::new(),
            levels: machine
                .levels
                .iter()
                .map(|level| level.arrays.iter().map(List::new).collect())
                .collect(),
            caches: caches
                .iter()
                .map(|c| (c.remaining, cache(c.entries)))
                .collect(),
            nested: (nested > 0).then(|| cache(nested)),
            counts: Counts::default(),
            time: 0,
        }
    }

    fn pages_in_chunk(&self) -> u64 {
        self.machine.huge_page / self.machine.small_page
    }

    fn size(&self, space: SpaceId, stage: Stage, chunk: u64) -> PageSize {
        let of = &self.spaces[space as usize];
        if let Some(&size) = of.sizes.get(&(stage, chunk)) {
            return size;
        }
        match stage {
            Stage::First => of.begins.first,
            Stage::Second => of.begins.second_entries(),
        }
    }

    fn physical(&mut self, space: SpaceId, chunk: u64) -> u64 {
        let of = &mut self.spaces[space as usize].physical;
        let next = of.len() as u64;
        *of.entry(chunk).or_insert(next)
    }

    /// The entry of a level that maps small page `page` (or its huge page).
    fn key(
        &self,
        level: usize,
        space: SpaceId,
        stage: Stage,
        size: PageSize,
        page: u64,
    ) -> Option<Key> {
        let array = self.machine.array(level, size)?;
        let (number, group) = match size {
            PageSize::Huge => (page / self.pages_in_chunk(), 1),
            PageSize::Small => {
                let group = u64::from(array.pages_per_entry);
                (page / group, group)
            }
        };
        Some(Key {
            space,
            stage,
            size,
            number,
            group,
        })
    }

    fn list(&mut self, level: usize, size: PageSize) -> Option<&mut List> {
        let arrays = &self.machine.levels[level].arrays;
        let at = arrays.iter().position(|array| array.holds(size))?;
        Some(&mut self.levels[level][at])
    }

    fn hit(&mut self, level: usize, key: Option<Key>) -> bool {
        self.time += 1;
        let time = self.time;
        let Some(key) = key else {
            return false;
        };
        self.list(level, key.size)
            .is_some_and(|list| list.hit(key, time))
    }

    fn fill(&mut self, level: usize, key: Option<Key>) {
        self.time += 1;
        let time = self.time;
        let Some(key) = key else {
            return;
        };
        let went = self
            .list(level, key.size)
            .and_then(|list| list.fill(key, time));
        let Some(went) = went else {
            return;
        };
        if !self.machine.levels[level].is_inclusive {
            return;
        }
        let gone = self.virtual_pages(went);
        for upper in 0..level {
            let ranges: Vec<Key> = self.levels[upper]
                .iter()
                .flat_map(|list| list.sets.iter().flatten().flatten())
                .map(|entry| entry.key)
                .filter(|key| {
                    let pages = self.virtual_pages(*key);
                    key.space == went.space && pages.0 < gone.1 && gone.0 < pages.1
                })
                .collect();
            for list in &mut self.levels[upper] {
                list.drop_where(|key| ranges.contains(&key));
            }
        }
    }

    /// First and one past the last virtual small page that an entry maps.
    fn virtual_pages(&self, key: Key) -> (u64, u64) {
        let in_chunk = self.pages_in_chunk();
        let (from, count) = match key.size {
            PageSize::Small => (key.number * key.group, key.group),
            PageSize::Huge => (key.number * in_chunk, in_chunk),
        };
        let from = match key.stage {
            Stage::First => from,
            Stage::Second => {
                let physical = &self.spaces[key.space as usize].physical;
                let chunk = physical.iter().find(|(_, p)| **p == from / in_chunk);
                chunk.map_or(u64::MAX / 2, |(chunk, _)| {
                    chunk * in_chunk + from % in_chunk
                })
            }
        };
        (from, from + count)
    }

    fn one(&mut self, space: SpaceId, address: u64) {
        self.counts.accesses += 1;
        let page = address / self.machine.small_page;
        let chunk = address / self.machine.huge_page;
        let physical = self.physical(space, chunk);
        let is_guest = self.spaces[space as usize].begins.second.is_some();
        let first = self.size(space, Stage::First, chunk);
        let second = if is_guest {
            self.size(space, Stage::Second, chunk)
        } else {
            first
        };
        let product = if first == PageSize::Huge && second == PageSize::Huge {
            PageSize::Huge
        } else {
            PageSize::Small
        };
        let is_apart = is_guest && self.machine.stages == Stages::Separate;
        let products = self.machine.levels.len() - usize::from(is_apart);
        let mut found = products;
        for level in 0..products {
            let key = self.key(level, space, Stage::First, product, page);
            if self.hit(level, key) {
                self.counts.hits[level] += 1;
                found = level;
                break;
            }
        }
        if found == products {
            let physical_page = physical * self.pages_in_chunk() + page % self.pages_in_chunk();
            if is_apart {
                self.both_stages(space, (first, page), (second, physical_page));
            } else {
                self.counts.refills[0][product as usize] += 1;
                if self.machine.walk.levels > 0 {
                    self.walk(space, chunk, (first, second), physical_page, is_guest);
                }
            }
        }
        for level in (0..found).rev() {
            let key = self.key(level, space, Stage::First, product, page);
            self.fill(level, key);
        }
    }

    fn both_stages(&mut self, space: SpaceId, first: (PageSize, u64), second: (PageSize, u64)) {
        let last = self.levels.len() - 1;
        let key = self.key(last, space, Stage::First, first.0, first.1);
        let has_first = self.hit(last, key);
        if !has_first {
            self.counts.refills[0][first.0 as usize] += 1;
            let walk = &self.machine.walk;
            if walk.tables_need_second_stage && walk.levels > 0 {
                let chunk = first.1 / self.pages_in_chunk();
                for table in self.tables_read(space, chunk, first.0) {
                    let of_tables = super::walk::TABLE_CHUNKS + table / self.pages_in_chunk();
                    let physical = self.physical(space, of_tables);
                    let size = self.size(space, Stage::Second, of_tables);
                    let page = physical * self.pages_in_chunk() + table % self.pages_in_chunk();
                    self.second_stage(space, size, page);
                }
            }
            self.fill(last, key);
        }
        let has_second = self.second_stage(space, second.0, second.1);
        if has_first && has_second {
            self.counts.hits[last] += 1;
        }
    }

    fn second_stage(&mut self, space: SpaceId, size: PageSize, page: u64) -> bool {
        let last = self.levels.len() - 1;
        let key = self.key(last, space, Stage::Second, size, page);
        let is_there = self.hit(last, key);
        if !is_there {
            self.counts.refills[1][size as usize] += 1;
            self.fill(last, key);
        }
        is_there
    }

    /// Page-table pages that a walk reads, from the top level down; fills the caches.
    fn tables_read(&mut self, space: SpaceId, chunk: u64, size: PageSize) -> Vec<u64> {
        let (lowest, levels) = match size {
            PageSize::Small => (1, self.machine.walk.levels),
            PageSize::Huge => (2, self.machine.walk.levels - 1),
        };
        let radix = self.pages_in_chunk();
        let prefix = |level: u32| chunk / radix.pow(level - 1);
        let mut read = levels;
        let mut missed = Vec::new();
        for (at, (remaining, cache)) in self.caches.iter_mut().enumerate() {
            if *remaining < lowest {
                continue;
            }
            self.time += 1;
            let key = plain_key(space, prefix(*remaining));
            if cache.hit(key, self.time) {
                read = *remaining - lowest + 1;
                break;
            }
            missed.push((at, key));
        }
        for (at, key) in missed {
            self.time += 1;
            self.caches[at].1.fill(key, self.time);
        }
        let tables = &mut self.spaces[space as usize].tables;
        (lowest..lowest + read)
            .rev()
            .map(|level| {
                let next = tables.len() as u64;
                *tables.entry((level, prefix(level))).or_insert(next)
            })
            .collect()
    }

    fn walk(
        &mut self,
        space: SpaceId,
        chunk: u64,
        sizes: (PageSize, PageSize),
        physical: u64,
        is_guest: bool,
    ) {
        let tables = self.tables_read(space, chunk, sizes.0);
        self.counts.references += tables.len() as u64;
        if !is_guest {
            return;
        }
        let of_tables = self.spaces[space as usize].begins.second_entries();
        for table in tables {
            self.nested(space, TABLES + table, of_tables);
        }
        self.nested(space, physical, sizes.1);
    }

    fn nested(&mut self, space: SpaceId, page: u64, size: PageSize) {
        let number = match size {
            PageSize::Small => page,
            PageSize::Huge => page / self.pages_in_chunk(),
        };
        let key = Key {
            size,
            ..plain_key(space, number)
        };
        self.time += 2;
        let time = self.time;
        if let Some(cache) = &mut self.nested {
            if cache.hit(key, time) {
                return;
            }
            cache.fill(key, time + 1);
            self.time += 1;
        }
        let walk = &self.machine.walk;
        let levels = match size {
            PageSize::Small => walk.levels,
            PageSize::Huge => walk.levels - 1,
        };
        let read = levels.saturating_sub(walk.nested_levels_cached).max(1);
        self.counts.references += u64::from(read);
    }
}

fn plain_key(space: SpaceId, number: u64) -> Key {
    Key {
        space,
        stage: Stage::First,
        size: PageSize::Small,
        number,
        group: 1,
    }
}

impl Engine for Naive {
    fn add(&mut self, space: Space) -> SpaceId {
        self.spaces.push(NaiveSpace {
            begins: space,
            physical: HashMap::new(),
            sizes: HashMap::new(),
            tables: HashMap::new(),
        });
        (self.spaces.len() - 1) as SpaceId
    }

    fn access(&mut self, space: SpaceId, addresses: &[u64]) {
        for &address in addresses {
            self.one(space, address);
        }
    }

    fn remap(&mut self, space: SpaceId, stage: Stage, chunk: u64, size: PageSize) {
        let physical = self.physical(space, chunk);
        let begins = self.spaces[space as usize].begins;
        if stage == Stage::Second && (begins.second.is_none() || !begins.is_aligned) {
            return;
        }
        if self.size(space, stage, chunk) == size {
            return;
        }
        self.spaces[space as usize]
            .sizes
            .insert((stage, chunk), size);
        let in_chunk = self.pages_in_chunk();
        let is_apart = begins.second.is_some() && self.machine.stages == Stages::Separate;
        let last = self.levels.len() - 1;
        for (at, level) in self.levels.iter_mut().enumerate() {
            for list in level {
                list.drop_where(|key| {
                    if key.space != space {
                        return false;
                    }
                    if stage == Stage::Second && !(is_apart && at == last) {
                        return true;
                    }
                    let of = match key.size {
                        PageSize::Huge => key.number,
                        PageSize::Small => key.number * key.group / in_chunk,
                    };
                    let wanted = if stage == Stage::First {
                        chunk
                    } else {
                        physical
                    };
                    key.stage == stage && of == wanted
                });
            }
        }
        for (_, cache) in &mut self.caches {
            cache.drop_where(|key| key.space == space);
        }
        if let Some(cache) = &mut self.nested {
            cache.drop_where(|key| key.space == space);
        }
    }

    fn counts(&self) -> Counts {
        self.counts
    }
}
