//! Tiles of allocators that cut areas into blocks of one size, and their sums.

use super::{Hole, Image};
use pagewise_model::allocator::AllocatorKind;
use pagewise_model::memory::{
    Heap, HeapCheck, HeapFacts, HeapPart, Returns, Tile, TileSink, TileState,
};
use pagewise_model::units::Bytes;

/// Size from which a freed block counts as large: where glibc's get mappings of their own.
pub(super) const LARGE: u64 = 128 << 10;
/// The part of a heap (1 in so many) that may have changed during the look.
const MAY_CHANGE: u64 = 5;

/// Passes tiles on by address, as extents without a gap, and adds them up.
pub(super) struct Tiling<'a> {
    sink: &'a mut dyn TileSink,
    end: Option<u64>,
    starts: Vec<u64>,
    heap: Heap,
}

impl<'a> Tiling<'a> {
    /// No tiles of this allocator yet.
    pub fn new(sink: &'a mut dyn TileSink, allocator: AllocatorKind) -> Self {
        Self {
            sink,
            end: None,
            starts: Vec::new(),
            heap: Heap::new(allocator, HeapPart::Arenas, HeapCheck::Filled),
        }
    }

    /// The next tile, with at most one block: behind the last one, or after a gap.
    pub fn tile(&mut self, start: u64, length: u64, state: TileState) {
        self.tiles(start, length, state, 1);
    }

    /// A block in use that fills its pages but for what varies its start: `bytes` are its own.
    pub fn large(&mut self, start: u64, length: u64, bytes: u64) {
        self.tile(start, length, TileState::Live { block: length });
        self.heap.in_use.0 -= length - bytes;
    }

    /// Address space that was given back and is kept for later.
    pub fn returned(&mut self, start: u64, length: u64) {
        self.heap.size.0 += length;
        self.pass(start, length, TileState::Free { kept: 0 });
    }

    /// `count` blocks of `size` bytes from `start` on, behind which an area ends at `end`. Neighbours of one
    /// state become one tile. A free block stays where it is: its pages go back only with the whole area.
    pub fn blocks(
        &mut self,
        (start, end): (u64, u64),
        (size, count): (u64, u64),
        is_free: impl Fn(u64) -> bool,
    ) {
        let mut first = 0;
        while first < count {
            let free = is_free(first);
            let mut behind = first + 1;
            while behind < count && is_free(behind) == free {
                behind += 1;
            }
            let length = (behind - first) * size;
            let state = match free {
                true => TileState::Free { kept: length },
                false => TileState::Live { block: size },
            };
            self.tiles(start + first * size, length, state, behind - first);
            first = behind;
        }
        let used = start + count * size;
        self.tile(used, end.saturating_sub(used), TileState::Bookkeeping);
    }

    /// The heap: `count` parts of it, and whether its sums are the allocator's own. None if there is
    /// nothing, or too much of it changed.
    pub fn heap(mut self, count: u64, is_counted: bool, returns: Returns) -> Option<HeapFacts> {
        self.close();
        let mut heap = self.heap;
        if count == 0 || heap.changed.0 > heap.size.0 / MAY_CHANGE {
            return None;
        }
        heap.count = count;
        if is_counted && heap.changed == Bytes(0) {
            heap.check = HeapCheck::Counter;
        }
        Some(HeapFacts {
            heap,
            extents: self.starts,
            returns,
        })
    }

    /// Bytes of all tiles so far.
    pub fn size(&self) -> u64 {
        self.heap.size.0
    }

    /// A tile of `count` blocks.
    fn tiles(&mut self, start: u64, length: u64, state: TileState, count: u64) {
        let heap = &mut self.heap;
        heap.size.0 += length;
        match state {
            _ if length == 0 => {}
            TileState::Live { .. } => {
                heap.in_use.0 += length;
                heap.blocks += count;
            }
            TileState::Free { .. } => {
                heap.free.0 += length;
                heap.free_blocks += count;
                heap.large_free.0 += if length / count >= LARGE { length } else { 0 };
            }
            TileState::Reserve { .. } => heap.reserve.0 += length,
            TileState::Changed => heap.changed.0 += length,
            TileState::Bookkeeping => {}
        }
        self.pass(start, length, state);
    }

    fn pass(&mut self, start: u64, length: u64, state: TileState) {
        if length == 0 {
            return;
        }
        if self.end != Some(start) {
            self.close();
            self.sink.start(start);
            self.starts.push(start);
        }
        self.sink.tile(Tile {
            start,
            length,
            state,
        });
        self.end = Some(start + length);
    }

    fn close(&mut self) {
        if self.end.take().is_some() {
            self.sink.finish(true);
        }
    }
}

/// Blocks of one size, of which those in lists are free.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Listed {
    /// The first block, and the bytes of each.
    pub start: u64,
    pub size: u64,
    free: Vec<bool>,
}

impl Listed {
    /// `count` blocks, none of them free.
    pub fn new(start: u64, size: u64, count: u64) -> Self {
        Self {
            start,
            size,
            free: vec![false; usize::try_from(count).unwrap_or(0)],
        }
    }

    /// Follows the list that begins at `at`; how many blocks it has. `None` if it leads elsewhere, in a circle, or to
    /// a block that another list has.
    ///
    /// # Errors
    /// [`Hole`] where it cannot be read.
    pub fn follow(&mut self, mut at: u64, image: &mut Image<'_>) -> Result<Option<u64>, Hole> {
        let mut count = 0;
        while at != 0 {
            let offset = at.wrapping_sub(self.start);
            let number = usize::try_from(offset / self.size).unwrap_or(usize::MAX);
            match self.free.get_mut(number) {
                Some(seen) if offset.is_multiple_of(self.size) && !*seen => *seen = true,
                _ => return Ok(None),
            }
            count += 1;
            at = image.word(at)?;
        }
        Ok(Some(count))
    }

    /// All blocks.
    pub fn count(&self) -> u64 {
        self.free.len() as u64
    }

    /// Whether the block of this number is free.
    pub fn is_free(&self, number: u64) -> bool {
        let number = usize::try_from(number).unwrap_or(usize::MAX);
        self.free.get(number).copied().unwrap_or(false)
    }

    /// Where the last one ends.
    pub fn end(&self) -> u64 {
        self.start + self.count() * self.size
    }
}
