//! The result of undoing the page size changes of controllers.

use crate::answer::{Evidence, Kind};
use crate::quantity::{count, counted};
use serde::{Deserialize, Serialize};

/// What was undone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HugeUndo {
    /// Each process that a controller had changed.
    pub processes: Vec<Undone>,
}

impl Evidence for HugeUndo {
    const KIND: Kind = Kind::HugeUndo;

    fn verdict(&self) -> String {
        let sum = |of: fn(&Undone) -> u64| -> u64 { self.processes.iter().map(of).sum() };
        let restored = counted(sum(|one| one.restored), "slot");
        match sum(|one| one.refused) {
            _ if self.processes.is_empty() => "Nothing to undo.".to_owned(),
            0 => format!("{restored} restored to the original page size."),
            refused => format!(
                "{restored} restored to the original page size; {} could not be changed.",
                count(refused)
            ),
        }
    }
}

/// The result for one process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Undone {
    /// Process id.
    pub pid: i32,
    /// Its name.
    pub comm: String,
    /// Whether the process is still the one in the journal.
    pub running: bool,
    /// Slots that have their original page size again, through us or otherwise.
    pub restored: u64,
    /// Slots that the program has given back or unmapped since.
    pub gone: u64,
    /// Slots that could not be changed back.
    pub refused: u64,
    /// Settings of the machine that are as they were.
    pub settings: u64,
    /// Settings that another process has written since; they are left as they are.
    pub settings_left: u64,
}
