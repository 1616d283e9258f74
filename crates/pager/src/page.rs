//! How pages are named.

/// Base-2 logarithm of the page size. The pager runs on x86-64 alone, where the architecture fixes
/// it; the start checks it against the kernel's word (`AT_PAGESZ`).
pub const PAGE_SHIFT: u32 = 12;
/// Bytes in a page.
pub const PAGE_BYTES: usize = 1 << PAGE_SHIFT;
/// Base-2 logarithm of the pages in a chunk: a chunk is 1 GiB of address space, aligned.
pub const CHUNK_SHIFT: u32 = 18;
/// Pages in a chunk.
pub const CHUNK_PAGES: u32 = 1 << CHUNK_SHIFT;
/// Most chunks that a process can have: 16 TiB of address space holding managed memory.
pub const MAX_CHUNKS: u32 = 1 << (32 - CHUNK_SHIFT);

/// A page of managed memory.
///
/// Chunks are numbered in the order in which they come into use; the number of a page is its
/// chunk's number and its place in there. So numbers are dense, neighbours in one chunk are
/// neighbours in memory, and pages of different chunks never are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Page(pub u32);

impl Page {
    /// Page number `offset` (below [`CHUNK_PAGES`]) of chunk number `chunk`.
    #[must_use]
    pub const fn new(chunk: u32, offset: u32) -> Self {
        Self(chunk << CHUNK_SHIFT | offset)
    }

    /// Number of its chunk.
    #[must_use]
    pub const fn chunk(self) -> u32 {
        self.0 >> CHUNK_SHIFT
    }

    /// Its place in the chunk.
    #[must_use]
    pub const fn offset(self) -> u32 {
        self.0 & (CHUNK_PAGES - 1)
    }

    /// The page `distance` pages on, if that is in the same chunk.
    #[must_use]
    pub fn neighbour(self, distance: i32) -> Option<Self> {
        let offset = self.offset().checked_add_signed(distance)?;
        (offset < CHUNK_PAGES).then(|| Self::new(self.chunk(), offset))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_stay_in_their_chunk() {
        let last = Page::new(3, CHUNK_PAGES - 1);
        assert_eq!((last.chunk(), last.offset()), (3, CHUNK_PAGES - 1));
        assert_eq!(last.neighbour(1), None);
        assert_eq!(last.neighbour(-1), Some(Page::new(3, CHUNK_PAGES - 2)));
        assert_eq!(Page::new(3, 0).neighbour(-1), None);
    }
}
