//! How a heap is laid out: tiles that follow each other without a gap.

use super::Heap;

/// What a tile of a heap is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TileState {
    /// Blocks in use, each with its header, one after the other.
    Live {
        /// Bytes of each.
        block: u64,
    },
    /// A freed block.
    Free {
        /// Bytes at its start that the allocator needs even if it returns the rest.
        kept: u64,
    },
    /// The end of a heap, not cut into blocks.
    Reserve {
        /// As in [`Self::Free`].
        kept: u64,
    },
    /// The allocator's own data.
    Bookkeeping,
    /// Blocks that could not be found, because they changed meanwhile.
    Changed,
}

impl TileState {
    /// Whether it is blocks in use.
    #[must_use]
    pub fn is_live(self) -> bool {
        matches!(self, Self::Live { .. })
    }
}

/// A part of a heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tile {
    /// First address.
    pub start: u64,
    /// Bytes.
    pub length: u64,
    /// What it is.
    pub state: TileState,
}

/// Receives the tiles of heaps while they are read.
pub trait TileSink {
    /// A heap starts, or the one that starts here is read again.
    fn start(&mut self, address: u64);
    /// The next tile, in order of address.
    fn tile(&mut self, tile: Tile);
    /// The heap is complete and was found right; otherwise it is dropped.
    fn finish(&mut self, is_right: bool);
}

/// A heap, and where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeapFacts {
    /// The heap; what it would return is filled in here.
    pub heap: Heap,
    /// Where its extents start.
    pub extents: Vec<u64>,
    /// What the allocator returns when it is asked to.
    pub returns: Returns,
}

/// What an allocator returns when it is asked to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Returns {
    /// Whole pages inside freed blocks, and the end of the heap.
    PagesAndReserve,
    /// Whole pages inside freed blocks.
    Pages,
    /// Nothing.
    Nothing,
}
