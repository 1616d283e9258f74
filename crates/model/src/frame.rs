//! Frames of stacks, and their numbers.

use crate::column::Number;
use crate::normal_name::{normal, normal_module};
use crate::symbol::Unnamed;
use serde::{Deserialize, Serialize};

/// Leaf functions of a CPU that has nothing to do (kernel/sched/idle.c, drivers/idle, arch idle
/// loops of x86, arm64 and guests).
const IDLE: [&str; 16] = [
    "pv_native_safe_halt",
    "native_safe_halt",
    "default_idle",
    "arch_cpu_idle",
    "cpu_idle_poll",
    "intel_idle",
    "intel_idle_irq",
    "mwait_idle",
    "mwait_idle_with_hints",
    "acpi_idle_do_entry",
    "acpi_safe_halt",
    "io_idle",
    "poll_idle",
    "cpu_do_idle",
    "psci_cpu_suspend_enter",
    "haltpoll_enter_idle",
];

/// What kind of code a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum FrameKind {
    /// Kernel code.
    Kernel,
    /// User code.
    User,
    /// A call that the compiler inlined into the frame above it.
    Inlined,
    /// Code made at run time, named by a map file.
    Jit,
    /// The name of a process or thread at a stack's root.
    Task,
}

/// One function as it appears in stacks. Frames with the same text are one frame.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Frame {
    /// Demangled function name, or `[unknown]`.
    pub name: Box<str>,
    /// Short name of the file that contains the code; empty where not known.
    pub module: Box<str>,
    /// What kind of code it is.
    pub kind: FrameKind,
    /// Why it has no name, if it has none.
    pub unnamed: Option<Unnamed>,
}

impl Frame {
    /// Whether a CPU in this function is idle.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.kind == FrameKind::Kernel && IDLE.contains(&&*self.name)
    }

    /// Whether it is a bogus address from a broken chain of frame pointers. How many of them follow
    /// each other means nothing.
    #[must_use]
    pub fn is_of_broken_chain(&self) -> bool {
        self.unnamed == Some(Unnamed::NoMapping)
    }

    /// The frame in a form that is comparable between hosts, builds and runs: by its normal name,
    /// and whether or not it was inlined.
    #[must_use]
    pub fn comparable(&self) -> Self {
        Self {
            name: normal(&self.name).into(),
            module: normal_module(&self.module).into(),
            kind: match self.kind {
                FrameKind::Inlined => FrameKind::User,
                kind => kind,
            },
            unnamed: self.unnamed,
        }
    }
}

/// Number of a frame in [`crate::profile::Profile::frames`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FrameId(pub u32);

/// Number of a node in a [`crate::profile::StackTree`]; the stack is the path from the root to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(pub u32);

impl Number for NodeId {
    #[inline]
    fn wide(self) -> u64 {
        self.0.wide()
    }

    #[inline]
    fn narrow(wide: u64) -> Self {
        Self(u32::narrow(wide))
    }
}

impl NodeId {
    /// The empty stack.
    pub const ROOT: Self = Self(0);
}
