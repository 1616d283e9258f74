//! Traces of memory accesses: our compact file, valgrind lackey's text, `perf script`'s samples.
//!
//! All three end in the same batches of addresses ([`Batch`]), so that simulations need not know
//! where they come from. [`read`] takes any of them; none is kept in memory as a whole.
//!
//! # The compact file
//!
//! Little-endian, made to be written by a few lines of C inside an emulator's plugin:
//!
//! ```text
//! file    = "PWMTRACE"  version:u8 (1, or 2 where blocks of kind 4 may follow)  block*
//! block   = kind:u8  length:varint  payload (length bytes, at most 16 MiB)
//! varint  = LEB128: 7 bits per byte, lowest first, top bit set on all but the last
//!
//! kind 1, accesses of one thread in program order:
//!   thread:varint  instructions:varint  count:varint  count × delta
//!   instructions   executed by this thread since its last block; 0 where they are not counted
//!   delta          varint of zigzag(v − previous v) with v = address × 2 + (1 for a write, else 0),
//!                  modulo 2^64; the first of a block counts from 0, so that blocks stand alone
//!   zigzag(d)      (d << 1) ^ (d >> 63), d signed
//! kind 2, a mapping:      start:varint  bytes:varint  flags:varint (1: anonymous)  name in UTF-8
//! kind 3, a note:         UTF-8, for people: which program, by which tool
//! kind 4, accesses of one thread in program order, by page:
//!   thread:varint  instructions:varint  accesses:varint  writes:varint  record* (to the block's end)
//!   record         u16: slot << 5 | more << 1, for 1 + more accesses (at most 16) to the 4 KiB that
//!                  the slot (11 bits) holds; or
//!                  u64: number << 16 | slot << 5 | more << 1 | 1, which puts a page into the slot
//!                  first: number = address >> 12, signed, 48 bits
//!   Slots begin empty (page 0) in each block; which page goes into which is the writer's choice.
//! kind 127, the end:      accesses:varint  dropped:varint (accesses that the writer left out)
//! other kinds             are skipped and counted
//! ```
//!
//! Blocks by page contain what simulations of TLBs need, in two fifths of the bytes for awk filling
//! a table (for a program that seldom returns to a page they save nothing). They lack the offset
//! within a page, and which of the accesses were writes. Such files have version 2, so that readers
//! that do not know kind 4 do not take them for empty.
//!
//! Addresses are canonical (bits 63 and 62 equal), as on all processors. A file without an end was
//! cut short; its contents are used and [`Summary::is_complete`] is false. The file may be
//! compressed as a whole; the caller that opens it decompresses it.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    reason = "deltas are taken modulo 2^64, bytes are cut off on purpose"
)]

mod compact;
mod lackey;
mod pages;
mod perf_script;
#[cfg(test)]
mod tests;
mod varint;
mod writer;

pub use pages::Run;
pub use writer::Writer;

use std::io::{self, BufRead};

/// First bytes of the compact file.
pub const MAGIC: &[u8; 8] = b"PWMTRACE";
/// Version of the compact file.
pub const VERSION: u8 = 1;
/// Version of a compact file with blocks by page.
pub const VERSION_BY_PAGE: u8 = 2;

/// Most bytes of a block's payload.
const MOST_PAYLOAD: u64 = 16 << 20;

/// Accesses of one thread in program order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Batch<'a> {
    /// The thread, as the trace numbers them.
    pub thread: u64,
    /// Instructions that it executed since its last batch; 0 where unknown.
    pub instructions: u64,
    /// What it accessed.
    pub accesses: Accesses<'a>,
}

/// Accesses of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accesses<'a> {
    /// Virtual addresses.
    Addresses(&'a [u64]),
    /// Pages of 4 KiB, where the trace contains no more detail.
    Pages(&'a [Run]),
}

/// A mapping recorded in a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// First address.
    pub start: u64,
    /// Bytes.
    pub bytes: u64,
    /// Whether it is anonymous memory, which transparent huge pages can back.
    pub is_anonymous: bool,
    /// File or purpose.
    pub name: String,
}

/// The contents of a trace apart from its accesses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Accesses read.
    pub accesses: u64,
    /// Writes among them.
    pub writes: u64,
    /// Instructions; 0 where unknown.
    pub instructions: u64,
    /// Accesses that the writer reports as left out.
    pub dropped: u64,
    /// Blocks or lines that were not understood.
    pub unknown: u64,
    /// Whether the trace has an end mark, or is text, which has none.
    pub is_complete: bool,
    /// Whether the addresses are samples, between which others are missing.
    pub is_sampled: bool,
    /// Mappings.
    pub mappings: Vec<Mapping>,
    /// Notes.
    pub notes: Vec<String>,
}

/// Which of the formats a trace has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Our compact file.
    Compact,
    /// `valgrind --tool=lackey --trace-mem=yes`.
    Lackey,
    /// `perf script` with addresses.
    PerfScript,
}

/// Why a trace can't be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Reading failed.
    #[error("cannot read the trace: {0}")]
    Io(#[from] io::Error),
    /// Another version.
    #[error(
        "the trace has version {found}, this program reads version {VERSION}: record it again with \
         the plugin of this release"
    )]
    Version {
        /// The version found.
        found: u8,
    },
    /// Invalid bytes.
    #[error("byte {offset} of the trace: {what}")]
    Spoilt {
        /// Bytes from the start (decompressed).
        offset: u64,
        /// What was found, what was expected.
        what: String,
    },
    /// Text without a single access.
    #[error(
        "no memory access in {lines} lines: expected the text of valgrind --tool=lackey \
         --trace-mem=yes (\" L 1ffeffe7e0,8\") or of perf script -F tid,time,event,addr"
    )]
    Nothing {
        /// Lines read.
        lines: u64,
    },
    /// An address that is not canonical.
    #[error("address {address:#x} is not canonical and can't be written")]
    Address {
        /// The address.
        address: u64,
    },
}

/// Reads a trace; `take` gets each batch.
///
/// Text in neither format contains no access, which is an error.
///
/// # Errors
/// When reading fails or the trace is damaged. A trace cut short is not an error.
pub fn read(mut input: impl BufRead, take: &mut dyn FnMut(&Batch<'_>)) -> Result<Summary, Error> {
    if input.fill_buf()?.first() == Some(&MAGIC[0]) {
        return compact::read(input, take);
    }
    read_text(input, take)
}

/// Number of accesses of a text that form a batch.
const TEXT_BATCH: usize = 1 << 14;

/// The contents of a line of text.
enum Line {
    /// Data was read or written.
    Access { address: u64, is_write: bool },
    /// Data was read, then written.
    Modify { address: u64 },
    /// An instruction was executed.
    Instruction,
    /// A line that belongs to the format and contains no access.
    Nothing,
    /// Another line.
    Unknown,
}

fn read_text(mut input: impl BufRead, take: &mut dyn FnMut(&Batch<'_>)) -> Result<Summary, Error> {
    let mut summary = Summary {
        is_complete: true,
        ..Summary::default()
    };
    let mut addresses = Vec::with_capacity(TEXT_BATCH + 1);
    let (mut lines, mut batch_instructions) = (0_u64, 0_u64);
    let mut line = Vec::new();
    loop {
        line.clear();
        let is_end = input.read_until(b'\n', &mut line)? == 0;
        if is_end || addresses.len() >= TEXT_BATCH {
            take(&Batch {
                thread: 0,
                instructions: std::mem::take(&mut batch_instructions),
                accesses: Accesses::Addresses(&addresses),
            });
            addresses.clear();
        }
        if is_end {
            break;
        }
        lines += 1;
        let text = line.trim_ascii_end();
        let parsed = match lackey::parse(text) {
            Line::Unknown => {
                let parsed = perf_script::parse(text);
                summary.is_sampled |= matches!(parsed, Line::Access { .. });
                parsed
            }
            parsed => parsed,
        };
        match parsed {
            Line::Access { address: 0, .. } => summary.dropped += 1,
            Line::Access { address, is_write } => {
                addresses.push(address);
                summary.writes += u64::from(is_write);
                summary.accesses += 1;
            }
            Line::Modify { address } => {
                addresses.push(address);
                summary.writes += 1;
                summary.accesses += 1;
            }
            Line::Instruction => {
                summary.instructions += 1;
                batch_instructions += 1;
            }
            Line::Nothing => {}
            Line::Unknown => summary.unknown += 1,
        }
    }
    if summary.accesses == 0 {
        return Err(Error::Nothing { lines });
    }
    Ok(summary)
}
