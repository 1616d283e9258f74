//! CPython's obmalloc (Objects/obmalloc.c of 3.8 to 3.14), read by its array of arenas.
//!
//! ```text
//!  arenas[i]  address │ next new pool │ free pools, all pools │ list of free pools │ links
//!  arena      pool pool … pool │ never used
//!  pool       blocks in use │ free block │ end of pool before │ … │ arena, size class, used up to
//!             then blocks of one size
//! ```
//!
//! The array is found in the interpreter's variables as the word that leads to entries whose arenas
//! are mapped and whose pools name their place in the array. Each arena's count of free pools must
//! be what its pools show, and each pool's count of blocks what its list of free blocks leaves. A pool
//! that changes all the time counts as changed; the others of its arena stay readable.
//! Arenas that come from `malloc` instead of `mmap(2)` are left to that allocator.

mod array;
mod pools;

use super::variables::writable_data;
use super::{AllocatorReader, HeapsRead, Image};
use array::arenas;
use pagewise_linux::proc::MapsEntry;
use pagewise_model::allocator::AllocatorKind;
use pagewise_model::memory::{Heap, HeapCheck, HeapFacts, HeapPart, Returns, TileSink};
use pagewise_model::units::Bytes;
use pools::{ArenaRead, read_arena};

/// Reads CPython's arenas.
pub struct Cpython;

impl AllocatorReader for Cpython {
    fn read(
        &self,
        maps: &[MapsEntry],
        image: &mut Image<'_>,
        sink: &mut dyn TileSink,
    ) -> HeapsRead {
        let mut found = HeapsRead::default();
        let data = writable_data(maps, is_interpreter);
        let Some((arenas, layout)) = arenas(maps, image, &data) else {
            return found;
        };
        let mut sums = Sums::default();
        for arena in &arenas {
            match read_arena(*arena, layout, image, sink) {
                Ok(read) => sums.add(read, arena.address),
                Err(reason) => {
                    let end = arena.address + layout.0;
                    found.unread.push((arena.address, end, reason));
                }
            }
        }
        if !sums.extents.is_empty() {
            found.heaps.push(sums.heap(layout.0));
        }
        found
    }
}

fn is_interpreter(file: &str) -> bool {
    let name = file.rsplit('/').next().unwrap_or(file);
    name.starts_with("python") || name.starts_with("libpython")
}

#[derive(Default)]
struct Sums {
    read: ArenaRead,
    uncounted: u64,
    extents: Vec<u64>,
}

impl Sums {
    fn add(&mut self, read: ArenaRead, address: u64) {
        let sum = &mut self.read;
        sum.in_use += read.in_use;
        sum.blocks += read.blocks;
        sum.free += read.free;
        sum.free_blocks += read.free_blocks;
        sum.reserve += read.reserve;
        sum.changed += read.changed;
        self.uncounted += u64::from(!read.is_counted);
        self.extents.push(address);
    }

    fn heap(self, arena: u64) -> HeapFacts {
        let count = self.extents.len() as u64;
        HeapFacts {
            heap: Heap {
                count,
                size: Bytes(count * arena),
                in_use: Bytes(self.read.in_use),
                blocks: self.read.blocks,
                free: Bytes(self.read.free),
                free_blocks: self.read.free_blocks,
                changed: Bytes(self.read.changed),
                reserve: Bytes(self.read.reserve),
                ..Heap::new(
                    AllocatorKind::Cpython,
                    HeapPart::Arenas,
                    match self.uncounted {
                        0 => HeapCheck::Counter,
                        _ => HeapCheck::Filled,
                    },
                )
            },
            extents: self.extents,
            returns: Returns::Nothing,
        }
    }
}

#[cfg(test)]
mod tests;
