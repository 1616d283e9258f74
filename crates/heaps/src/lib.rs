//! Heaps: what allocators and runtimes hold, read from outside.
//!
//! A heap is read in the memory of another process, which runs on. Three rules keep that harmless
//! and right. Only pages that are present are read ([`mod@presence`] says which), because reading an
//! absent page makes one in the other process. Nothing is called or written there. And each reading
//! checks itself: blocks must fill the heap without a gap, and their sum must be the allocator's
//! own counter where there is one. A reading that fails says so, and gives no figure.
//!
//! One module per allocator, each an [`AllocatorReader`].

#![forbid(unsafe_code)]

#[cfg(test)]
#[macro_use]
#[path = "../../../tests/skipped.rs"]
mod skipped;

mod cpython;
mod glibc;
mod golang;
mod image;
mod jemalloc;
mod mimalloc;
mod musl;
mod objects;
mod presence;
mod scattered;
#[cfg(test)]
mod synthetic;
mod tcmalloc;
mod tiling;
mod variables;
mod words;
mod zeros;

pub use image::{Hole, Image, ProcessSource, Source};
pub use objects::Objects;
pub use presence::{Pagemap, presence};
pub use words::words;
pub use zeros::{Zeros, zeros};

use pagewise_linux::proc::MapsEntry;
use pagewise_model::memory::{HeapFacts, TileSink, Unread};

/// What was read of a process's heaps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeapsRead {
    /// Heaps that were found right.
    pub heaps: Vec<HeapFacts>,
    /// Ranges that belong to an allocator and could not be read.
    pub unread: Vec<(u64, u64, Unread)>,
    /// Blocks in use that only look so: freed ones in the caches of threads.
    pub cached: Vec<u64>,
    /// Caches with such blocks.
    pub caches: u64,
}

/// Reads the heaps of one allocator.
pub trait AllocatorReader {
    /// Reads what this allocator has in the process with these mappings. Nothing if it is not there.
    fn read(&self, maps: &[MapsEntry], image: &mut Image<'_>, sink: &mut dyn TileSink)
    -> HeapsRead;
}

/// All allocators that can be read.
#[must_use]
pub fn readers() -> Vec<Box<dyn AllocatorReader>> {
    vec![
        Box::new(glibc::Glibc),
        Box::new(cpython::Cpython),
        Box::new(jemalloc::Jemalloc),
        Box::new(golang::Golang),
        Box::new(musl::Musl),
        Box::new(mimalloc::Mimalloc),
        Box::new(tcmalloc::Tcmalloc),
    ]
}
