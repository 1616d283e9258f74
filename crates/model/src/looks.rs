//! What the threads of a process tree were seen to do at moments at which they were looked at:
//! the evidence of where elapsed time went while nothing ran.

use crate::tasks::{OtherTasks, SeenTask};
use crate::units::Nanos;
use serde::{Deserialize, Serialize};

/// The looks at a process tree. Looks that saw the same are one [`Scene`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Looks {
    /// Looks taken.
    pub count: u64,
    /// Elapsed time from the first to the last look: the times of all scenes, and `unkept`.
    pub span: Nanos,
    /// Kernel functions that threads slept in (`/proc/PID/wchan`). A function that sleeps for
    /// files of many kinds is followed by a blank and what the file is, such as
    /// `wait_woken socket`.
    pub places: Vec<String>,
    /// What was seen, longest first.
    pub scenes: Vec<Scene>,
    /// Elapsed time of looks that saw something new when there were too many scenes already.
    pub unkept: Nanos,
    /// Time that threads were ready to run and had no CPU, added up over all threads
    /// (`/proc/PID/task/TID/schedstat`, Documentation/scheduler/sched-stats.rst); `None` where the
    /// kernel does not count it.
    pub run_delay: Option<Nanos>,
    /// What was counted of single threads.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tasks: Vec<SeenTask>,
    /// Threads that are not among them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub other_tasks: Option<OtherTasks>,
}

/// What all processes of the tree did at a moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Scene {
    /// Elapsed time of the looks that saw it.
    pub time: Nanos,
    /// Living processes, parents before their children.
    pub processes: Vec<SeenProcess>,
}

/// A process in a scene.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SeenProcess {
    /// Name (`comm`).
    pub name: String,
    /// Its parent's place in the scene; `None` for the first, and where the parent is not in it.
    pub parent: Option<u32>,
    /// Its first thread.
    pub main: ThreadState,
    /// What its other threads did, each state once, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<ThreadState>,
}

/// What a thread did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ThreadState {
    /// State letter of `/proc/PID/stat`: `R` for running or ready to run, `S` asleep, `D` asleep
    /// and not to be woken by signals, `T` and `t` stopped.
    pub letter: char,
    /// Where it slept, a number into [`Looks::places`]; `None` where that could not be seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<u32>,
}
