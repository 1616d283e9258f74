//! glibc's malloc (malloc/malloc.c and arena.c of 2.31 to 2.43), read by its blocks' headers.
//!
//! Nothing here needs symbols. Blocks tile a heap: a header says how long its block is, and the
//! next one whether it is in use. Where the tiling ends is known, so a walk that gets there without
//! a contradiction has read the heap right. Then the arena's own data are found as the place that
//! holds the address of the last block, and its counter of bytes must be the sum.
//!
//! ```text
//!  [heap]        block block … block top                        main arena, by brk
//!  64 MiB-aligned  heap_info arena block block … block top      first heap of a thread's arena
//!                  heap_info block block … block fence          further heaps of that arena
//!  anonymous     block                                          a block of its own mapping
//! ```
//!
//! Blocks in the caches of threads (tcache) and in fastbins look in use; [`caches`] and [`fastbins`]
//! find them.

mod arena;
mod caches;
mod chunks;
mod fastbins;
mod mapped;
mod parameters;
mod thread_heaps;
mod walk;

use super::variables::writable_data;
use super::{AllocatorReader, HeapsRead, Image};
use arena::Arena;
use chunks::{Area, Broken, Ending, FastBlocks, Walk};
use pagewise_linux::proc::MapsEntry;
use pagewise_model::allocator::AllocatorKind;
use pagewise_model::memory::{Heap, HeapCheck, HeapFacts, HeapPart, Returns, TileSink, Unread};
use pagewise_model::units::Bytes;
use parameters::Parameters;

pub(crate) use mapped::is_private_memory;

/// Reads glibc's heaps.
pub struct Glibc;

impl AllocatorReader for Glibc {
    fn read(
        &self,
        maps: &[MapsEntry],
        image: &mut Image<'_>,
        sink: &mut dyn TileSink,
    ) -> HeapsRead {
        let mut reading = Reading {
            data: data_ranges(maps),
            ..Reading::default()
        };
        let heap = brk_heap(maps);
        if let Some((start, end)) = heap {
            reading.parameters = parameters::find(image, &reading.data, (start, end));
            reading.main(image, sink, (start, end));
        }
        reading.threads(maps, image, sink);
        reading.caches(image);
        reading.mapped(maps, image, sink);
        reading.found
    }
}

#[derive(Default)]
struct Reading {
    /// Where the allocator's variables may be.
    data: Vec<(u64, u64)>,
    parameters: Option<Parameters>,
    /// Blocks that may hold a thread's cache.
    cache_candidates: Vec<u64>,
    /// Ranges of heaps that were read.
    taken: Vec<(u64, u64)>,
    found: HeapsRead,
}

impl Reading {
    fn main(&mut self, image: &mut Image<'_>, sink: &mut dyn TileSink, heap: (u64, u64)) {
        let base = self.parameters.map_or(heap.0, |found| found.heap_start);
        let arena = arena::find(image, &self.data, (base, heap.1));
        let area = Area {
            first: base,
            end: heap.1,
            top: arena.map(Arena::place),
        };
        sink.start(base);
        let fast = match arena {
            Some(arena) => fastbins::read(image, arena.fastbins(), &[area]),
            None => Ok(FastBlocks::default()),
        };
        let outcome = fast.and_then(|fast| {
            let mut walk = walk::walk(image, &area, &fast, &mut |tile| sink.tile(tile))?;
            walk.broken_lists = fast.broken_lists;
            Ok(walk)
        });
        let walk = match outcome {
            Ok(walk) if walk.ending != Ending::Fence => walk,
            Ok(_) => return self.give_up(sink, heap, Unread::OtherLayout),
            // Another allocator's, as far as is known.
            Err(Broken::Layout | Broken::Absent) if arena.is_none() => return sink.finish(false),
            Err(broken) => return self.give_up(sink, heap, broken.into()),
        };
        let length = heap.1 - base;
        let counted = arena.and_then(|arena| arena.system_mem(image));
        let check = match counted {
            Some(counter) if counter == length && walk.is_whole() => HeapCheck::Counter,
            _ => HeapCheck::Filled,
        };
        sink.finish(true);
        self.taken.push((base, heap.1));
        let raised = self.parameters.and_then(|found| found.raised_threshold);
        let heap = heap_of(HeapPart::Main, 1, length, &walk, check, raised);
        self.add(heap, vec![base], Returns::PagesAndReserve, walk);
    }

    fn threads(&mut self, maps: &[MapsEntry], image: &mut Image<'_>, sink: &mut dyn TileSink) {
        let mut sums = thread_heaps::Sums::default();
        for arena in thread_heaps::find(maps, image) {
            match thread_heaps::read(&arena, image, sink) {
                Ok(read) => {
                    self.taken.extend(&read.heaps);
                    self.found.unread.extend(&read.unread);
                    sums.add(read);
                }
                Err(reason) => {
                    let ranges = arena.ranges().map(|(start, end)| (start, end, reason));
                    self.found.unread.extend(ranges);
                }
            }
        }
        if sums.count > 0 {
            let check = match sums.all_counted {
                true => HeapCheck::Counter,
                false => HeapCheck::Filled,
            };
            let heap = heap_of(
                HeapPart::Threads,
                sums.count,
                sums.length,
                &sums.walk,
                check,
                None,
            );
            self.add(heap, sums.extents, Returns::Pages, sums.walk);
        }
    }

    /// Counts cached blocks and takes them off those in use.
    fn caches(&mut self, image: &mut Image<'_>) {
        let in_heaps = caches::Ranges::new(&self.taken);
        for &candidate in &self.cache_candidates {
            let cached = caches::thread_cache(image, candidate, &in_heaps);
            self.found.caches += u64::from(!cached.is_empty());
            for (block, size) in cached {
                self.found.move_to_cache(block, size, &self.taken);
                self.found.cached.push(block);
            }
        }
    }

    fn mapped(&mut self, maps: &[MapsEntry], image: &mut Image<'_>, sink: &mut dyn TileSink) {
        let counter = self.parameters.map(|found| found.mapped_place);
        let found = mapped::find(maps, image, &self.taken, counter);
        if found.blocks.is_empty() {
            return;
        }
        let check = match counter.and_then(|place| image.now(place).ok()) {
            Some(counter) if counter == found.bytes => HeapCheck::Counter,
            _ => HeapCheck::Filled,
        };
        let walk = Walk {
            in_use: found.bytes,
            blocks: found.blocks.len() as u64,
            ..Walk::default()
        };
        let extents = found.blocks.iter().map(|block| block.start).collect();
        for block in &found.blocks {
            sink.start(block.start);
            sink.tile(*block);
            sink.finish(true);
        }
        let heap = heap_of(
            HeapPart::Mapped,
            walk.blocks,
            found.bytes,
            &walk,
            check,
            None,
        );
        self.add(heap, extents, Returns::Nothing, walk);
    }

    fn add(&mut self, heap: Heap, extents: Vec<u64>, returns: Returns, walk: Walk) {
        self.cache_candidates.extend(walk.cache_candidates);
        self.found.heaps.push(HeapFacts {
            heap,
            extents,
            returns,
        });
    }

    fn give_up(&mut self, sink: &mut dyn TileSink, range: (u64, u64), reason: Unread) {
        sink.finish(false);
        self.found.unread.push((range.0, range.1, reason));
    }
}

impl HeapsRead {
    /// Counts a block in use as cached, in the heap that contains it.
    fn move_to_cache(&mut self, block: u64, size: u64, taken: &[(u64, u64)]) {
        let range = taken
            .iter()
            .find(|range| (range.0..range.1).contains(&block));
        let Some(range) = range else {
            return;
        };
        let holds = |facts: &&mut HeapFacts| facts.extents.contains(&range.0);
        if let Some(facts) = self.heaps.iter_mut().find(holds) {
            let heap = &mut facts.heap;
            heap.in_use = heap.in_use - Bytes(size);
            heap.cached += Bytes(size);
            heap.blocks = heap.blocks.saturating_sub(1);
        }
    }
}

fn heap_of(
    part: HeapPart,
    count: u64,
    length: u64,
    walk: &Walk,
    check: HeapCheck,
    raised_mmap_threshold: Option<u64>,
) -> Heap {
    Heap {
        count,
        size: Bytes(length),
        in_use: Bytes(walk.in_use),
        blocks: walk.blocks,
        in_fastbins: Bytes(walk.fast),
        broken_lists: walk.broken_lists,
        free: Bytes(walk.free),
        free_blocks: walk.free_blocks,
        large_free: Bytes(walk.large_free),
        changed: Bytes(walk.changed),
        reserve: Bytes(walk.reserve),
        raised_mmap_threshold: raised_mmap_threshold.map(Bytes),
        ..Heap::new(AllocatorKind::Glibc, part, check)
    }
}

/// The heap that grows by `brk(2)`; its mappings follow each other.
fn brk_heap(maps: &[MapsEntry]) -> Option<(u64, u64)> {
    let mut heap = maps
        .iter()
        .map(|entry| &entry.mapping)
        .filter(|mapping| &*mapping.path == "[heap]");
    let first = heap.next()?;
    let mut range = (first.start, first.end);
    for mapping in heap {
        if mapping.start == range.1 {
            range.1 = mapping.end;
        }
    }
    Some(range)
}

/// Writable data of the C library, or of the program where it contains one.
fn data_ranges(maps: &[MapsEntry]) -> Vec<(u64, u64)> {
    let program = maps.iter().find_map(MapsEntry::file);
    let has_libc = has_library(maps);
    writable_data(maps, |file| match has_libc {
        true => is_libc(file),
        false => Some(file) == program,
    })
}

/// Whether glibc is mapped as a library: then the process has no other C library.
pub(crate) fn has_library(maps: &[MapsEntry]) -> bool {
    maps.iter().filter_map(MapsEntry::file).any(is_libc)
}

fn is_libc(file: &str) -> bool {
    let name = file.rsplit('/').next().unwrap_or(file);
    let name = name.strip_suffix(" (deleted)").unwrap_or(name);
    name == "libc.so.6" || (name.starts_with("libc-2.") && name.ends_with(".so"))
}

#[cfg(test)]
mod tests;
