//! What became of page sizes that controllers had changed, taken back.

use crate::document::Kind;
use serde::{Deserialize, Serialize};

/// Version of [`HugeUndo`] as JSON.
pub const HUGE_UNDO_VERSION: u32 = 1;

/// What was taken back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HugeUndo {
    /// [`HUGE_UNDO_VERSION`].
    pub schema_version: u32,
    /// [`Kind::HugeUndo`].
    pub kind: Kind,
    /// Each process that a controller had at work.
    pub processes: Vec<Undone>,
}

/// What became of one process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Undone {
    /// Process id.
    pub pid: i32,
    /// Its name.
    pub comm: String,
    /// Whether the process is still the one in the journal.
    pub running: bool,
    /// Slots that have their first page size again, by us or without us.
    pub restored: u64,
    /// Slots that the program has given back or unmapped since.
    pub gone: u64,
    /// Slots that could not be changed back.
    pub refused: u64,
    /// Settings of the machine that are as they were.
    pub settings: u64,
    /// Settings that somebody else has written since: left to them.
    pub settings_left: u64,
}
