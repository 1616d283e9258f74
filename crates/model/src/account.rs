//! Where CPU time went, as far as evidence tells: the kernel's part of an account of time.

use crate::delays::Delays;
use crate::units::Estimate;
use serde::{Deserialize, Serialize};

/// Name of the allocator's part of the CPU time.
pub const ALLOCATOR: &str = "allocator";
/// Name of the part that a runtime's garbage collector takes.
pub const COLLECTOR: &str = "collector";

/// What the CPU time of a run went into. Sums to the exact CPU time that the run used.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Account {
    /// Samples of CPU time that it rests on; 0 where none could be taken.
    pub samples: u64,
    /// Nanoseconds in the kernel.
    pub kernel: Estimate,
    /// The kernel's time by why it was entered, most first. Empty where the kernel's stacks could
    /// not be seen.
    pub entries: Vec<KernelEntry>,
    /// Nanoseconds in the kernel, whatever the entry, by what was done: reclaim, zeroing of huge
    /// pages… A part of the entries, and no sum.
    pub work: Vec<KernelWork>,
    /// Nanoseconds in the kernel that no evidence explains.
    pub unexplained: Estimate,
    /// CPU time by what it went into, most first: the program's own code, the allocator's, each of
    /// the kernel's entries, and what is unexplained. Adds up to the CPU time of the run. Empty where
    /// the kernel's stacks could not be seen.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cpu: Vec<TimePart>,
    /// Elapsed time by what the program did or waited for, most first. Adds up to the elapsed time
    /// of the run. Empty where too few moments were looked at.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub elapsed: Vec<TimePart>,
    /// What tasks waited for, as the kernel counted it, added up over all of them; absent where it was
    /// not counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delays: Option<Delays>,
}

/// CPU time that went into one thing, or elapsed time in which the program did or waited for one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TimePart {
    /// Stable name. Of CPU time: `own`, `allocator`, `collector`, `unexplained`, or a [`KernelEntry`]'s; of
    /// elapsed time: `cpu`, `ready` (for want of a CPU), `unseen`, or a kind of waiting: `sleep`,
    /// `disk`, `network`…
    pub id: String,
    /// What that is, for a person: `waiting for a disk`.
    pub label: String,
    /// Nanoseconds.
    pub time: Estimate,
    /// Functions that most of it was spent in, or waited in, most first.
    pub places: Vec<String>,
    /// Share of the CPU time that each of `places` takes; empty where that is not told.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shares: Vec<f64>,
    /// Names of the processes that waited, most first; empty of what is no waiting.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub who: Vec<String>,
    /// What to do next to learn more, where there is something.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

impl TimePart {
    /// A part of which no more is known.
    #[must_use]
    pub fn plain(id: &str, label: &str, time: Estimate) -> Self {
        Self {
            id: id.to_owned(),
            label: label.to_owned(),
            time,
            places: Vec::new(),
            shares: Vec::new(),
            who: Vec::new(),
            next: None,
        }
    }

    /// Whether it is time that the program waited for something else than a CPU.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        !self.who.is_empty()
    }
}

/// One reason for which the kernel was entered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct KernelEntry {
    /// Stable name: `fault`, `interrupt`, or `call.` and the system call's family.
    pub id: String,
    /// What that is, for a person: `reading (pread64)`.
    pub label: String,
    /// Nanoseconds.
    pub time: Estimate,
    /// Kernel functions in which most of it was spent, most first.
    pub functions: Vec<String>,
}

/// One thing that the kernel did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct KernelWork {
    /// Stable name: `huge`, `copy`, `reclaim`…
    pub id: String,
    /// Nanoseconds, whatever the entry.
    pub time: Estimate,
    /// Nanoseconds of it that page faults took.
    pub in_faults: Estimate,
}

impl Account {
    /// Whether the kernel's stacks were seen.
    #[must_use]
    pub fn sees_kernel(&self) -> bool {
        !self.entries.is_empty()
    }

    /// Nanoseconds of one entry; `None` where the kernel's stacks were not seen.
    #[must_use]
    pub fn entry(&self, id: &str) -> Option<Estimate> {
        let found = self.entries.iter().find(|entry| entry.id == id);
        self.sees_kernel()
            .then(|| found.map_or(Estimate::exact(0.0), |entry| entry.time))
    }

    /// The allocator's own code, where it was seen to take time.
    #[must_use]
    pub fn allocator(&self) -> Option<&TimePart> {
        self.cpu.iter().find(|part| part.id == ALLOCATOR)
    }

    /// A runtime's garbage collector, where it was seen to take time.
    #[must_use]
    pub fn collector(&self) -> Option<&TimePart> {
        self.cpu.iter().find(|part| part.id == COLLECTOR)
    }

    /// One kind of work, where it was seen.
    #[must_use]
    pub fn work(&self, id: &str) -> Option<&KernelWork> {
        self.work.iter().find(|work| work.id == id)
    }
}
