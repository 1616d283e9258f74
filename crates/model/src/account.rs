//! Where CPU time went, as far as the evidence shows: the kernel's part of an account of time.

use crate::delays::Delays;
use crate::units::{Estimate, Nanos};
use serde::{Deserialize, Serialize};

/// Name of the allocator's part of the CPU time.
pub const ALLOCATOR: &str = "allocator";
/// Name of the part that a runtime's garbage collector takes.
pub const COLLECTOR: &str = "collector";

/// Name of the part that takes and releases locks in user mode.
pub const LOCKS: &str = "locks";
/// Name of the part that zeroes memory for calloc.
pub const CALLOC: &str = "calloc";
/// Name of the kernel's work for threads that queue for a lock of the program.
pub const QUEUE: &str = "queue";

/// Name of the work on faults of processes that are forked for one task each.
pub const FORKED: &str = "forked";

/// Name of the copying of page tables for processes that then execute another program.
pub const SPAWNED: &str = "spawned";

/// What the CPU time of a run went into. Sums to the exact CPU time that the run used.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Account {
    /// Samples of CPU time behind it, as many of equal weight as would be as precise; 0 where none
    /// could be taken.
    pub samples: u64,
    /// Nanoseconds in the kernel: as wait4(2) reports them where samples agree; its split rests on
    /// ticks, and where samples contradict it, theirs, with an interval that spans both.
    pub kernel: Estimate,
    /// The kernel's time by why it was entered, most first. Empty where the kernel's stacks could
    /// not be seen.
    pub entries: Vec<KernelEntry>,
    /// Nanoseconds in the kernel by the work done, whatever the entry: reclaim, zeroing of huge
    /// pages… Parts of the entries; they do not add up to a whole.
    pub work: Vec<KernelWork>,
    /// Time of page faults, most first: `zeroing` and `copying` page contents, and `handling` the
    /// fault apart from that. Adds up to the entry `fault`; empty where the kernel's stacks do not
    /// show it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<TimePart>,
    /// Nanoseconds in the kernel that no evidence explains.
    pub unexplained: Estimate,
    /// CPU time by what it was spent on, most first: the program's own code, the allocator's, each
    /// of the kernel's entries, and what is unexplained. Adds up to the CPU time of the run. Empty
    /// where the kernel's stacks could not be seen.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cpu: Vec<TimePart>,
    /// Elapsed time by what the program did or waited for, most first. Adds up to the elapsed time
    /// of the run. Empty where too few samples were taken.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub elapsed: Vec<TimePart>,
    /// What tasks waited for, as the kernel counted it, added up over all of them; absent where it was
    /// not counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delays: Option<Delays>,
    /// The same time by process and thread; absent where no thread was counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tasks: Option<Tasks>,
}

/// Time by process and thread.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Tasks {
    /// Processes, most CPU time first.
    pub processes: Vec<ProcessTime>,
    /// Threads of processes that are not among them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub others: Option<TaskSum>,
    /// Threads that ended before their time could be read; part of their lifetimes is the CPU time
    /// `elsewhere`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unseen: Option<TaskSum>,
    /// Nanoseconds of the run's CPU time that were counted for none of these: time of threads that
    /// ended unseen, and of others after they were last seen.
    pub elsewhere: Nanos,
}

/// Time of a process.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProcessTime {
    /// Process id.
    pub pid: i32,
    /// Its parent, as last seen.
    pub parent: i32,
    /// Name of its first thread.
    pub name: String,
    /// From the start of the observation to its own start.
    pub began: Nanos,
    /// From its start to its end, or the observation's.
    pub lifetime: Nanos,
    /// All its threads together.
    pub all: TaskSum,
    /// Its threads, most CPU time first.
    pub threads: Vec<ThreadTime>,
    /// Threads that are not among them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub others: Option<TaskSum>,
}

/// Time of a thread.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ThreadTime {
    /// Thread id.
    pub tid: i32,
    /// Name.
    pub name: String,
    /// From the start of the observation to its own start.
    pub began: Nanos,
    /// Its time, which adds up to its lifetime.
    pub all: TaskSum,
    /// What it waited for in memory management, by the kernel's count. These times overlap the
    /// parts and each other; absent where they were not counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delays: Option<Delays>,
}

/// Time of one or more threads.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TaskSum {
    /// How many threads.
    pub threads: u64,
    /// Their lifetimes, added up.
    pub lifetime: Nanos,
    /// What they did or waited for in that time, most first: `cpu`, `ready`, kinds of waiting as in
    /// [`Account::elapsed`], and `unexplained`. Adds up to the lifetimes.
    pub parts: Vec<TimePart>,
}

impl TaskSum {
    /// Nanoseconds of one part; 0 where there is no such part.
    #[must_use]
    pub fn part(&self, id: &str) -> f64 {
        let part = self.parts.iter().find(|part| part.id == id);
        part.map_or(0.0, |part| part.time.value)
    }

    /// What was waited for, most first.
    pub fn waits(&self) -> impl Iterator<Item = &TimePart> {
        let no_waits = ["cpu", "ready", "unexplained"];
        let parts = self.parts.iter();
        parts.filter(move |part| !no_waits.contains(&&*part.id))
    }

    /// Times of several threads, part by part; `None` without any thread.
    #[must_use]
    pub fn total<'a>(sums: impl Iterator<Item = &'a Self>) -> Option<Self> {
        sums.fold(None, |all, one| match all {
            None => Some(one.clone()),
            Some(all) => Some(all.and(one)),
        })
    }

    fn and(mut self, other: &Self) -> Self {
        self.threads += other.threads;
        self.lifetime += other.lifetime;
        for part in &other.parts {
            match self.parts.iter_mut().find(|held| held.id == part.id) {
                Some(held) => {
                    held.time.value += part.time.value;
                    held.time.low += part.time.low;
                    held.time.high += part.time.high;
                }
                None => self.parts.push(part.clone()),
            }
        }
        let largest = |a: &TimePart, b: &TimePart| b.time.value.total_cmp(&a.time.value);
        self.parts.sort_by(largest);
        self
    }
}

impl Tasks {
    /// Whether there is more than one thread: for a single one, the account of the whole is enough.
    #[must_use]
    pub fn tells_apart(&self) -> bool {
        let one_by_one = self.processes.iter().map(|process| process.all.threads);
        one_by_one.sum::<u64>() > 1 || self.others.is_some() || self.unseen.is_some()
    }
}

/// CPU time that went into one thing, or elapsed time in which the program did or waited for one
/// thing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TimePart {
    /// Stable name. Of CPU time: `own`, `allocator`, `collector`, `unexplained`, or the name of a
    /// [`KernelEntry`]; of elapsed time: `cpu`, `ready` (no CPU was free), `unseen`, or a kind of
    /// waiting: `sleep`, `disk`, `network`…
    pub id: String,
    /// Display name: `waiting for a disk`.
    pub label: String,
    /// Nanoseconds.
    pub time: Estimate,
    /// Functions that most of it was spent in, or waited in, most first.
    pub places: Vec<String>,
    /// Share of the CPU time that each of `places` takes; empty where that is not reported.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shares: Vec<f64>,
    /// Names of the processes that waited, most first; empty for parts that are not waits.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub who: Vec<String>,
    /// What to do next to find out more, if anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

impl TimePart {
    /// A part without further detail.
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

    /// Whether it is time in which the program waited for something other than a CPU.
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
    /// Display name: `reading (pread64)`.
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
        self.part(ALLOCATOR)
    }

    /// A runtime's garbage collector, where it was seen to take time.
    #[must_use]
    pub fn collector(&self) -> Option<&TimePart> {
        self.part(COLLECTOR)
    }

    /// A part of the CPU time, where it was seen.
    #[must_use]
    pub fn part(&self, id: &str) -> Option<&TimePart> {
        self.cpu.iter().find(|part| part.id == id)
    }

    /// One kind of work, where it was seen.
    #[must_use]
    pub fn work(&self, id: &str) -> Option<&KernelWork> {
        self.work.iter().find(|work| work.id == id)
    }
}
