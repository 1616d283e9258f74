//! What the threads of a process tree were doing at sampled moments: the evidence of where elapsed
//! time went while nothing ran.

use crate::tasks::{OtherTasks, SeenTask};
use crate::units::Nanos;
use serde::{Deserialize, Serialize};

/// The samples ("looks") of a process tree. Looks with the same result are one [`Scene`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Looks {
    /// Looks taken, as many equally spaced ones as would be as precise.
    pub count: u64,
    /// Elapsed time from the first to the last look: the times of all scenes, and `unkept`.
    pub span: Nanos,
    /// Kernel functions that threads slept in (`/proc/PID/wchan`). For a function that sleeps on
    /// files of many kinds, a blank and the kind of file follow, such as `wait_woken socket`.
    pub places: Vec<String>,
    /// Scenes, longest first.
    pub scenes: Vec<Scene>,
    /// Elapsed time of looks with a new scene when there were already too many scenes.
    pub unkept: Nanos,
    /// Time in which threads were ready to run but had no CPU, added up over all threads
    /// (`/proc/PID/task/TID/schedstat`, Documentation/scheduler/sched-stats.rst); `None` where the
    /// kernel does not count it.
    pub run_delay: Option<Nanos>,
    /// What was counted for single threads.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tasks: Vec<SeenTask>,
    /// Threads that are not among them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub other_tasks: Option<OtherTasks>,
}

/// What all processes of the tree were doing at one moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Scene {
    /// Elapsed time of the looks with this scene.
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
    /// Index of its parent in the scene; `None` for the first process, and if the parent is not in
    /// the scene.
    pub parent: Option<u32>,
    /// Its first thread.
    pub main: ThreadState,
    /// The states of its other threads, each once, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<ThreadState>,
}

/// What a thread was doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ThreadState {
    /// State letter of `/proc/PID/stat`: `R` for running or ready to run, `S` asleep, `D` asleep
    /// and not woken by signals, `T` and `t` stopped.
    pub letter: char,
    /// Where it slept, an index into [`Looks::places`]; `None` where that could not be seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<u32>,
}
