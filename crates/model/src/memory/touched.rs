//! Which call stacks touched the resident pages first.

use super::HolderFunction;
use crate::units::{Bytes, Estimate, Nanos};
use serde::{Deserialize, Serialize};

/// The private memory of a process at a look, by the call stack of the page fault that made each page.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TouchedMemory {
    /// Process id.
    pub pid: i32,
    /// Its name.
    pub name: String,
    /// Whether the look was at the peak of the run, not later.
    pub is_peak: bool,
    /// Time of the look.
    pub elapsed_ns: Nanos,
    /// Its private memory then: heaps, stacks, written variables.
    pub resident: Bytes,
    /// The part of it that was touched unseen: before the recording began, by a process that forked this
    /// one, or without a call stack.
    pub unseen: Bytes,
    /// Recorded faults that made pages which were in memory at the look.
    pub samples: u64,
    /// Functions of the stacks.
    pub functions: Vec<HolderFunction>,
    /// Stacks, the one with the most memory first. Those of less than a two-thousandth of it are in `other`.
    pub stacks: Vec<TouchedStack>,
    /// Memory of stacks that are left out.
    pub other: Bytes,
}

/// A stack, and the resident pages that it made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TouchedStack {
    /// Numbers of functions, innermost first.
    pub frames: Vec<u32>,
    /// The innermost function that does not only allocate or copy for its caller.
    pub culprit: String,
    /// Bytes of these pages.
    pub bytes: Estimate,
}

impl TouchedMemory {
    /// Functions of a stack, innermost first.
    pub fn functions_of<'a>(
        &'a self,
        stack: &'a TouchedStack,
    ) -> impl DoubleEndedIterator<Item = &'a HolderFunction> + Clone {
        let known = |&frame: &u32| self.functions.get(frame as usize);
        stack.frames.iter().filter_map(known)
    }
}
