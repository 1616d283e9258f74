//! Why a file could not be read at all. Data that is merely missing from it is counted instead.

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
