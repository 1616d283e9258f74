//! The metadata of a recording, in addition to its events.

use crate::advice::Advice;
use crate::allocator::{Allocator, AllocatorKind, ProcessAllocators};
use crate::contention::Contention;
use crate::delays::Delays;
use crate::diagnosis::Diagnosis;
use crate::host::HostSnapshot;
use crate::kernel_threads::KernelThread;
use crate::looks::Looks;
use crate::loss::Losses;
use crate::memory::{Memory, PresentPages};
use crate::numa::MemoryNodes;
use crate::proof::Proof;
use crate::run::{Ending, RunCost};
use crate::tasks::{CountedTask, OtherTasks};
use crate::timeline::Timeline;
use crate::units::{Bytes, Nanos};
use serde::{Deserialize, Serialize};

/// The facts for which perf.data has no section. Stored as JSON in a feature section that perf
/// skips, so the file remains readable everywhere.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Sidecar {
    /// Version of this structure's schema.
    pub schema_version: u32,
    /// Command that was observed; empty when attached to a running process.
    pub command: Vec<String>,
    /// Process that was observed (the root of the tree).
    pub pid: i32,
    /// Unix time in milliseconds when observation began.
    pub started_unix_ms: u64,
    /// The clock value (same clock as the events) when observation began.
    pub started_clock: Nanos,
    /// Resources used while observed; exact fault counts come from here.
    pub cost: RunCost,
    /// How the program ended.
    pub ending: Ending,
    /// Process tree over time.
    pub timeline: Timeline,
    /// Allocators found in the main process.
    pub allocators: Vec<Allocator>,
    /// Allocators by process, if others of the tree were examined, too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub processes: Vec<ProcessAllocators>,
    /// The machine.
    pub host: HostSnapshot,
    /// What the collector lost.
    pub losses: Losses,
    /// How events were collected.
    pub collection: Collection,
    /// Counters over time; empty if none were read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub counters: Vec<Counter>,
    /// Remedies that the machine offers.
    #[serde(default, skip_serializing_if = "Surroundings::is_empty")]
    pub surroundings: Surroundings,
    /// Page sizes, if they were examined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page_sizes: Option<PageSizesSeen>,
    /// Huge pages of the process tree, if any were seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub huge_pages: Option<HugePageUse>,
    /// How much the CPUs were shared with others meanwhile; `None` without any evidence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contention: Option<Contention>,
    /// What the threads were doing meanwhile; `None` if they were not sampled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub looks: Option<Looks>,
    /// What its tasks waited for, as counted by the kernel; `None` if it was not counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delays: Option<Delays>,
    /// Threads that ended, with the kernel's counts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tasks: Vec<CountedTask>,
    /// Other threads that ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub other_tasks: Option<OtherTasks>,
    /// Kernel threads that managed memory meanwhile.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kernel_threads: Vec<KernelThread>,
    /// Memory nodes; `None` where at most one has memory, or they were not looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub numa: Option<MemoryNodes>,
    /// Where the memory of the tree was at the peak; `None` if there was no time to look.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<Memory>,
    /// The pages that were in memory then.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub present: Vec<PresentPages>,
    /// What was concluded after settings had been tried; `None` if none were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concluded: Option<Concluded>,
}

/// The sentences about a run after settings were tried, as they were printed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Concluded {
    /// The answer.
    pub verdict: String,
    /// What is wrong.
    pub diagnoses: Vec<Diagnosis>,
    /// What to change, what was proved first.
    pub advice: Vec<Advice>,
    /// The runs.
    pub proof: Proof,
}

/// Remedies that the machine offers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Surroundings {
    /// Allocator libraries that could be preloaded, with their paths.
    pub libraries: Vec<(AllocatorKind, String)>,
    /// Path of Pagewise's own preloadable library.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own_library: Option<String>,
    /// Time to read a single page from their disk, by path, for files that threads waited for at
    /// random positions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub page_reads: Vec<(String, Nanos)>,
}

impl Surroundings {
    /// Whether nothing is known about them.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Page sizes, as observed on the machine and in the program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PageSizesSeen {
    /// `transparent_hugepage/enabled`.
    pub enabled: String,
    /// Sizes between a base page and the largest, smallest first, and which memory gets them.
    pub between: Vec<(Bytes, String)>,
    /// The process of the tree that had the most memory that huge pages could map, at that moment;
    /// for a process that keeps running, at the end.
    pub process: Option<ProcessPages>,
    /// What the first touch of fresh memory costs here, if faults took a relevant share.
    pub first_touch: Option<FirstTouch>,
    /// The process that was attached to.
    pub attached: Option<i32>,
    /// The result of watching its address translations for one second.
    pub watched: Option<String>,
}

/// Page sizes of a process at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProcessPages {
    /// Memory in huge pages.
    pub huge: Bytes,
    /// Memory in whole slots of huge pages.
    pub memory: Bytes,
    /// Memory that making all of them huge would add.
    pub growth: Bytes,
}

/// Nanoseconds of CPU time per base page of memory touched for the first time, round by round.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FirstTouch {
    /// One fault per base page.
    pub base: Vec<f64>,
    /// One fault per huge page, if faults allocate huge pages.
    pub huge: Vec<f64>,
}

/// Huge pages seen in processes, and how much of them was in use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HugePageUse {
    /// Largest amount at one time.
    pub held: Bytes,
    /// Share (0 to 1) of their base pages that contained only zeros; `None` where that could not be
    /// read.
    pub zeros: Option<f64>,
}

/// A counter that was read while recording.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Counter {
    /// perf's name for it.
    pub name: String,
    /// Share of the time in which it actually counted (0 to 1): below 1 if there were more counters
    /// than the CPU has room for. Values are scaled up accordingly.
    pub counted: f64,
    /// Moments on the events' clock, each with the count since the one before.
    pub points: Vec<(Nanos, f64)>,
}

/// How events were collected, so that an analysis can take into account what may be missing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Collection {
    /// Name of the mode: `sampled` or `full`.
    pub mode: String,
    /// Whether every process of the machine was observed; the cost is then that of the machine, and
    /// the command only determines the duration.
    #[serde(default)]
    pub whole_machine: bool,
    /// Whether an already running process was observed.
    #[serde(default)]
    pub attached: bool,
    /// Windows during which each fault was recorded with begin and end, on the events' clock.
    pub latency_windows: Vec<(Nanos, Nanos)>,
    /// Windows during which faults were recorded, on the events' clock; between them they were not,
    /// to burden the program less. A fault in a window also stands for its share of the adjacent
    /// pauses. Empty when faults were recorded all the time.
    #[serde(default)]
    pub fault_windows: Vec<(Nanos, Nanos)>,
    /// Windows during which each memory system call was recorded, on the events' clock. Empty
    /// when none was.
    #[serde(default)]
    pub call_windows: Vec<(Nanos, Nanos)>,
    /// Windows during which each new mapping of data was recorded, on the events' clock. Empty
    /// when none was.
    #[serde(default)]
    pub mapping_windows: Vec<(Nanos, Nanos)>,
    /// Estimated nanoseconds that recording itself cost the program.
    pub own_cost: Nanos,
    /// What was requested but not available, in words for the user, each with its remedy.
    pub notes: Vec<String>,
}

impl Sidecar {
    /// Allocators of a process; those of the main process if it was not examined.
    #[must_use]
    pub fn allocators_of(&self, pid: i32) -> &[Allocator] {
        let own = self.processes.iter().find(|process| process.pid == pid);
        own.map_or(&self.allocators, |process| &process.allocators)
    }
}

/// Version of [`Sidecar`]'s schema that this code writes.
pub const SIDECAR_VERSION: u32 = 1;
