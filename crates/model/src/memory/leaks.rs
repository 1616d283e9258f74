//! Blocks in use to which no pointer leads.

use super::{BlockGroup, ByteRange};
use crate::units::Bytes;
use serde::{Deserialize, Serialize};

/// What a search for leaked blocks found in a process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LeakCheck {
    /// Why nothing can be said; the figures are then 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unknown: Option<LeaksUnknown>,
    /// Bytes in blocks in use to which pointers were searched, and the number of these blocks.
    pub searched: Bytes,
    /// Number of these blocks.
    pub blocks: u64,
    /// Bytes in blocks to which no pointer leads. At least those that cannot be freed blocks in the cache
    /// of a thread; at most those with pointers into their middle alone, too.
    pub leaked: ByteRange,
    /// Number of blocks to which no pointer leads.
    pub leaked_blocks: u64,
    /// Snapshots that agree; of a process that ran on, a block is leaked only if it is in all of them.
    pub snapshots: u64,
    /// Whether it was stopped for the snapshot, or about to exit.
    pub was_stopped: bool,
    /// The leaked blocks by what they hold, or by size where that cannot be seen, the largest group
    /// first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<BlockGroup>,
}

impl LeakCheck {
    /// A search that could not be made.
    #[must_use]
    pub const fn unknown(why: LeaksUnknown) -> Self {
        let none = ByteRange {
            low: Bytes(0),
            high: Bytes(0),
        };
        Self {
            unknown: Some(why),
            searched: Bytes(0),
            blocks: 0,
            leaked: none,
            leaked_blocks: 0,
            snapshots: 0,
            was_stopped: false,
            groups: Vec::new(),
        }
    }
}

/// Why leaks could not be searched for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum LeaksUnknown {
    /// The process may not be stopped, so that its registers cannot be read.
    NotAllowed,
    /// Pages are swapped out, and pointers in them cannot be seen.
    Swapped,
    /// The kernel holds pointers that it does not show: requests of `io_uring(7)`.
    InKernel,
    /// Memory could not be read, or changed too fast.
    Unreadable,
    /// There are more blocks or pointers than are kept.
    TooMany,
    /// No heap was read whose blocks the program frees itself.
    NoHeap,
}
