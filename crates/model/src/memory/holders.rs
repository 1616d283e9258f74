//! Who holds memory: live blocks by the call stacks that allocated them, estimated from samples.

use crate::frame::Frame;
use crate::units::{Bytes, Estimate};
use serde::{Deserialize, Serialize};

/// What was sampled of a program's allocations.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Holders {
    /// Mean number of allocated bytes between two samples.
    pub period: Bytes,
    /// Processes that were not sampled because there was no room for them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub refused: u64,
    /// Processes whose allocations were seen, that with the highest peak first.
    pub processes: Vec<ProcessHolders>,
}

#[allow(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// The stacks of one process. A forked process has those of what it allocated itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProcessHolders {
    /// Process id.
    pub pid: i32,
    /// Its program.
    pub program: String,
    /// The process that forked it with the same program, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<i32>,
    /// Whether the allocator brings C++'s operators with it: what `new` allocates is then missing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub bypassed: bool,
    /// Number of samples.
    pub samples: u64,
    /// Samples that are missing because there was no room to follow their blocks.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub untracked: u64,
    /// Samples that count for the stack without frames because there was no room for theirs.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub crowded: u64,
    /// Samples whose stack lacks its outermost frames.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cut: u64,
    /// Time from the first allocation to the peak of live bytes.
    pub peak_ns: u64,
    /// Live at this peak.
    pub peak: Held,
    /// Live at the end.
    pub end: Held,
    /// Ever allocated.
    pub allocated: Held,
    /// Functions of the stacks.
    pub functions: Vec<HolderFunction>,
    /// Stacks, the one that held most at the peak first.
    pub stacks: Vec<HeldStack>,
}

/// A function of a stack.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HolderFunction {
    /// Its name, `[unknown]` if it has none.
    pub name: String,
    /// Short name of the file that contains it; empty where not known.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub module: String,
    /// Whether the compiler inlined it into its caller.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub inlined: bool,
}

impl HolderFunction {
    /// The function of a stack's frame.
    #[must_use]
    pub fn from_frame(frame: &Frame) -> Self {
        Self {
            name: frame.name.to_string(),
            module: frame.module.to_string(),
            inlined: frame.kind == crate::frame::FrameKind::Inlined,
        }
    }
}

/// The innermost of these functions that is not a part of C++'s operators or of containers, for a stack
/// that starts with the innermost.
pub fn holder<'a>(
    functions: impl Iterator<Item = &'a HolderFunction> + Clone,
) -> Option<&'a HolderFunction> {
    let first = functions.clone().next();
    let mut functions = functions;
    let own = functions.find(|function| !function.passes_on());
    own.or(first)
}

impl HolderFunction {
    /// Whether it only passes allocations on.
    fn passes_on(&self) -> bool {
        let starts = [
            "operator new",
            "std::",
            "__gnu_cxx::",
            "void std::",
            "alloc::",
            "__rust_alloc",
            "_Zn",
            "<alloc::",
        ];
        starts.iter().any(|start| self.name.starts_with(start))
    }
}

/// What blocks from one stack add up to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HeldStack {
    /// Numbers of functions, innermost first.
    pub frames: Vec<u32>,
    /// Live at the peak.
    pub peak: Held,
    /// Live at the end.
    pub end: Held,
    /// Ever allocated.
    pub allocated: Held,
}

/// Blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Held {
    /// Requested bytes.
    pub bytes: Estimate,
    /// Number of blocks.
    pub blocks: Estimate,
}
