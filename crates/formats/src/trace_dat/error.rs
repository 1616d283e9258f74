//! Why a trace.dat file can't be read.

use thiserror::Error;

/// Why a trace.dat file can't be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ReadError {
    /// The first bytes are different.
    #[error("it does not start like a trace.dat file")]
    NotTraceDat,
    /// Something reaches beyond the end.
    #[error(
        "{what} at byte {offset} extends beyond the end: the file is truncated, or still being written"
    )]
    Cut {
        /// What was to be read.
        what: &'static str,
        /// Where in the file; within a packed section, where that section begins.
        offset: u64,
    },
    /// Bytes contradict the format.
    #[error("{what} at byte {offset} is not what trace-cmd writes: the file is damaged")]
    Malformed {
        /// What was read.
        what: &'static str,
        /// Where in the file; within a packed section, where that section begins.
        offset: u64,
    },
    /// A file of a kind that is not read.
    #[error("{what} cannot be read; {advice}")]
    Unsupported {
        /// What the file is.
        what: String,
        /// What to do instead.
        advice: &'static str,
    },
}
