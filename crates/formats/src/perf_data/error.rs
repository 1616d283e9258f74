//! Why a file could not be read at all. Data that is merely missing from it is counted instead.

use super::layout::RECORD_HEADER_SIZE;

/// A file that gives no events.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// Nothing in it.
    #[error("the file is empty: the recorder was stopped before it wrote anything")]
    Empty,
    /// The first bytes are different.
    #[error("this is not a perf.data file: it starts with {found:?} instead of PERFILE2")]
    NotPerfData {
        /// The first bytes, made printable.
        found: String,
    },
    /// Recorded on a machine of the other byte order.
    #[error(
        "this perf.data was recorded on a big-endian machine, which is not supported; \
         read it with perf on such a machine"
    )]
    BigEndian,
    /// The format before Linux 3.2.
    #[error("this perf.data has the format of perf before Linux 3.2 (PERFFILE); record it again")]
    OldVersion,
    /// The file ends before its first record.
    #[error(
        "the file is truncated in its {part}: it has {length} of {needed} bytes; copy or record it again"
    )]
    CutOff {
        /// What the end cuts off.
        part: &'static str,
        /// Bytes that are there.
        length: u64,
        /// Bytes that must be there.
        needed: u64,
    },
    /// A header that contradicts itself.
    #[error("the file is damaged: {what}; copy or record it again")]
    Damaged {
        /// What is wrong, with the number found.
        what: String,
    },
    /// No event source.
    #[error("the file describes no event that was recorded")]
    NoSources,
}

/// Bytes in which no record can be found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Damage {
    /// Offset of the record that cannot be one.
    pub offset: u64,
    /// The size that it claims.
    pub size: u16,
    /// Bytes from there to the end of the records.
    pub left: u64,
}

impl std::fmt::Display for Damage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "a record at byte {} claims a size of {}, where 8 is the least; the {} bytes from there on were not read",
            self.offset, self.size, self.left
        )
    }
}

/// Why these bytes at `offset` are not the start of a record.
pub(super) fn damage(bytes: &[u8], offset: usize) -> Option<Damage> {
    let size = u16::from_le_bytes(*bytes.get(6..)?.first_chunk()?);
    (usize::from(size) < RECORD_HEADER_SIZE).then_some(Damage {
        offset: offset as u64,
        size,
        left: bytes.len() as u64,
    })
}
