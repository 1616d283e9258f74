//! Time of single tasks (threads), as counted and sampled while a program was observed: the
//! evidence for an account by process and thread ([`crate::account::Tasks`]).

use crate::delays::Delays;
use crate::units::Nanos;
use serde::{Deserialize, Serialize};

/// Number of tasks of each kind that a recording keeps individually, those with the most CPU time;
/// about 300 bytes each. The others are added up.
pub const MOST_RECORDED: usize = 1_000;

/// A task that ended, with the kernel's counts at that time (taskstats).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CountedTask {
    /// Process id.
    pub pid: i32,
    /// Thread id.
    pub tid: i32,
    /// Its process's parent when it ended.
    pub parent: i32,
    /// Name, at most 15 bytes.
    pub name: String,
    /// When its end was reported, on the events' clock.
    pub ended: Nanos,
    /// From its birth until it began to end.
    pub lifetime: Nanos,
    /// Time on a CPU until then.
    pub run: Nanos,
    /// What it waited for until then.
    pub delays: Delays,
}

/// A task as seen in samples ("looks") of the process tree
/// (`/proc/PID/task/TID/{stat,wchan,schedstat}`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SeenTask {
    /// Process id.
    pub pid: i32,
    /// Thread id.
    pub tid: i32,
    /// Its process's parent.
    pub parent: i32,
    /// Name, at most 15 bytes.
    pub name: String,
    /// When it first existed, on the events' clock: at the first look, or, for a task that was
    /// created later, when it was first seen, less the time that it had run and been ready by then.
    pub began: Nanos,
    /// When it was last seen. The fields below were counted until then.
    pub last: Nanos,
    /// Whether it had ended by then, so that no time is missing.
    pub is_over: bool,
    /// Time on a CPU.
    pub run: Nanos,
    /// Time ready to run without a CPU.
    pub ready: Nanos,
    /// What it slept in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sleeps: Vec<Sleep>,
}

/// Looks in which a task slept in one place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Sleep {
    /// An index into [`crate::looks::Looks::places`]; `None` where the place is not shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<u32>,
    /// Number of these looks.
    pub looks: u64,
    /// Time between those looks and the ones before them.
    pub time: Nanos,
}

/// Tasks that are not kept individually.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OtherTasks {
    /// How many.
    pub tasks: u64,
    /// Their lifetimes, added up.
    pub lifetime: Nanos,
    /// Time on a CPU.
    pub run: Nanos,
    /// Time ready to run without a CPU; `None` if it was not counted for all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready: Option<Nanos>,
}

impl OtherTasks {
    /// Sum of both.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            tasks: self.tasks + other.tasks,
            lifetime: self.lifetime + other.lifetime,
            run: self.run + other.run,
            ready: self.ready.zip(other.ready).map(|(a, b)| a + b),
        }
    }
}

impl From<&CountedTask> for OtherTasks {
    fn from(task: &CountedTask) -> Self {
        Self {
            tasks: 1,
            lifetime: task.lifetime,
            run: task.run,
            ready: task.delays.ready.map(|ready| ready.time),
        }
    }
}

impl From<&SeenTask> for OtherTasks {
    fn from(task: &SeenTask) -> Self {
        Self {
            tasks: 1,
            lifetime: task.last - task.began,
            run: task.run,
            ready: Some(task.ready),
        }
    }
}

/// Keeps those of `tasks` with the most CPU time, and adds up the others.
#[must_use]
pub fn largest<T>(mut tasks: Vec<T>, run: fn(&T) -> Nanos) -> (Vec<T>, Option<OtherTasks>)
where
    for<'a> OtherTasks: From<&'a T>,
{
    tasks.sort_by_key(|task| std::cmp::Reverse(run(task)));
    let others = tasks.split_off(MOST_RECORDED.min(tasks.len()));
    let sum = others.iter().map(OtherTasks::from).reduce(OtherTasks::and);
    (tasks, sum)
}
