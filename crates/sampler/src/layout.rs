//! The shared file: a header, then a segment for each process that was sampled.
//!
//! ```text
//! Header │ Segment 0: Head, modules, paths, sites, words │ Segment 1 …
//! ```
//!
//! A process writes its own segment alone, and nothing in it depends on the process's end: what was
//! written before a SIGKILL is there. The file is sparse; only what is used takes memory. Both sides
//! come from one build, which [`MAGIC`] checks.

use core::mem::{offset_of, size_of};
use core::sync::atomic::{AtomicU8, AtomicU32, AtomicU64};

/// First word of the file; its end is the version of the layout.
pub const MAGIC: u64 = u64::from_le_bytes(*b"PWALLOC1");

/// Processes that have room in the file.
pub const SEGMENTS: u32 = 256;
/// Distinct stacks of a process that have room; further ones add to the first site, which has no frames.
pub const SITES: usize = 1 << 14;
/// Return addresses of all these stacks.
pub const WORDS: usize = 1 << 19;
/// Parts of programs and libraries with code.
pub const MODULES: usize = 1 << 11;
/// Bytes of all their paths.
pub const PATHS: usize = 1 << 18;
/// Bytes of a build id: a SHA-1, the longest that linkers make.
pub const BUILD_ID: usize = 20;
/// Frames of a stack, the innermost ones of a deeper one.
pub const FRAMES: usize = 128;

/// Start of the file: written by pagewise, but for the last two.
#[repr(C, align(4096))]
pub struct Header {
    /// [`MAGIC`].
    pub magic: AtomicU64,
    /// Mean number of allocated bytes between two samples.
    pub period: AtomicU64,
    /// Seed of the random draws; 0 for a random one.
    pub seed: AtomicU64,
    /// The next segment that is free.
    pub next: AtomicU32,
    /// Processes that found none.
    pub refused: AtomicU32,
}

/// What is known about a process.
#[repr(C, align(4096))]
pub struct Head {
    /// Its id; 0 until the segment is in use.
    pub pid: AtomicU32,
    /// The id of the process that forked it with the same program, else 0.
    pub parent: AtomicU32,
    /// Modules in use.
    pub modules: AtomicU32,
    /// Bytes of paths in use.
    pub paths: AtomicU32,
    /// Bytes of the program's own path, the first one.
    pub program: AtomicU32,
    /// Sites in use.
    pub sites: AtomicU32,
    /// Words in use.
    pub words: AtomicU32,
    /// 1 if the allocator brings C++'s operators with it, which go past `malloc`.
    pub bypassed: AtomicU32,
    /// Samples.
    pub samples: AtomicU64,
    /// Those among them that were freed.
    pub freed: AtomicU64,
    /// Samples whose free would go unnoticed, and which are not counted for that reason.
    pub untracked: AtomicU64,
    /// Samples of stacks that found no room, in the first site.
    pub crowded: AtomicU64,
    /// Samples whose stack has more frames than [`FRAMES`].
    pub deep: AtomicU64,
    /// When the process was first seen, by `CLOCK_MONOTONIC` in nanoseconds.
    pub began: AtomicU64,
    /// When most was live.
    pub peaked: AtomicU64,
    /// Estimated bytes that are live, and the most so far; of type `f64`, as all estimates here.
    pub live: AtomicU64,
    /// See `live`.
    pub peak: AtomicU64,
    /// Number of the last peak.
    pub epoch: AtomicU64,
}

/// A part of a program or library with code.
#[repr(C)]
pub struct Module {
    /// First address.
    pub start: AtomicU64,
    /// First address behind it.
    pub end: AtomicU64,
    /// Offset of the first byte in the file.
    pub offset: AtomicU64,
    /// Where the path is.
    pub path: AtomicU32,
    /// Its bytes; 0 for the program itself.
    pub path_bytes: AtomicU32,
    /// Sites that were known when it was first met: their frames are in a module from before.
    pub sites: AtomicU64,
    /// The file's build id.
    pub build_id: [AtomicU8; BUILD_ID],
    /// Its bytes; 0 if it has none.
    pub build_id_bytes: AtomicU32,
}

/// Sums over blocks, each divided by the probability of its being sampled.
#[repr(C)]
pub struct Sums {
    /// Bytes.
    pub bytes: AtomicU64,
    /// Estimated variance of `bytes`.
    pub bytes_variance: AtomicU64,
    /// Blocks.
    pub blocks: AtomicU64,
    /// Estimated variance of `blocks`.
    pub blocks_variance: AtomicU64,
}

/// What blocks from one stack add up to.
#[repr(C)]
pub struct Site {
    /// Index of its innermost return address among the words.
    pub words: AtomicU32,
    /// Number of return addresses.
    pub frames: AtomicU32,
    /// The peak before which it last changed: `at_peak` is then the sum at the peak.
    pub epoch: AtomicU64,
    /// Live now.
    pub live: Sums,
    /// Live at the peak, if `epoch` is that of the last one; else the same as `live`.
    pub at_peak: Sums,
    /// Ever allocated.
    pub allocated: Sums,
}

/// The part of the file of one process.
#[repr(C)]
pub struct Segment {
    /// Counts.
    pub head: Head,
    /// Code.
    pub modules: [Module; MODULES],
    /// Paths, one after another.
    pub paths: [AtomicU8; PATHS],
    /// Stacks.
    pub sites: [Site; SITES],
    /// Their return addresses.
    pub words: [AtomicU64; WORDS],
}

/// Bytes of the header.
pub const HEADER_BYTES: usize = size_of::<Header>();
/// Bytes of a segment.
pub const SEGMENT_BYTES: usize = size_of::<Segment>();
/// Bytes of the file.
pub const FILE_BYTES: u64 = HEADER_BYTES as u64 + SEGMENTS as u64 * SEGMENT_BYTES as u64;

/// Where segment `number` is in the file.
#[must_use]
pub const fn segment_at(number: u32) -> u64 {
    HEADER_BYTES as u64 + number as u64 * SEGMENT_BYTES as u64
}

const _: () = assert!(size_of::<Header>() == 4096 && size_of::<Head>() == 4096);
const _: () = assert!(size_of::<Site>() == 112 && size_of::<Module>() == 64);
const _: () = assert!(SEGMENT_BYTES.is_multiple_of(4096));
const _: () = assert!(offset_of!(Segment, words).is_multiple_of(8));
