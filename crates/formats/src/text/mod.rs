//! Long texts read in blocks of whole records, on one thread or several.
//!
//! A block ends where a record does, so that it can be read without the next one; each format
//! defines its records ([`Records`]). Blocks come from a stream or are in memory ([`blocks`]), and
//! threads take them in turn ([`threads`]).

pub(super) mod blocks;
pub(super) mod threads;

pub(super) use blocks::{Block, Memory, Records, Source, Stream, WINDOW};
pub(super) use threads::{Shared, on_threads};

/// Bytes read at a time: several thousand lines, so that the borders cost little, yet few enough
/// that they are still in a core's cache when they are parsed.
pub(super) const BLOCK: usize = 256 << 10;
