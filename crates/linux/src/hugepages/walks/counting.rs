//! Counting instructions, cycles and page walks of running processes.

use super::table::{Event, Table};
use crate::proc::ProcRoot;
use crate::sys::perf_event::{self, EventFd};
use perf_event_open_sys::bindings::{
    PERF_COUNT_HW_CPU_CYCLES, PERF_COUNT_HW_INSTRUCTIONS, PERF_TYPE_HARDWARE, PERF_TYPE_RAW,
    perf_event_attr,
};
use std::collections::BTreeMap;
use std::io;
use std::path::Path;

/// Counts since counting started, user mode only. `None` if the CPU has no such event or the kernel
/// gave it no counter.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Count {
    /// Instructions.
    pub instructions: Option<f64>,
    /// Cycles.
    pub cycles: Option<f64>,
    /// Cycles with a page walk in progress.
    pub active: Option<f64>,
    /// Completed walks.
    pub all: Option<f64>,
    /// Completed walks to huge pages.
    pub huge: Option<f64>,
}

impl Count {
    /// The increase since `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let less = |now: Option<f64>, then: Option<f64>| Some((now? - then?).max(0.0));
        Self {
            instructions: less(self.instructions, earlier.instructions),
            cycles: less(self.cycles, earlier.cycles),
            active: less(self.active, earlier.active),
            all: less(self.all, earlier.all),
            huge: less(self.huge, earlier.huge),
        }
    }

    /// Share of cycles with a walk in progress, 0 to 1.
    #[must_use]
    pub fn walk_share(&self) -> Option<f64> {
        let cycles = self.cycles.filter(|&cycles| cycles > 0.0)?;
        Some((self.active? / cycles).min(1.0))
    }
}

/// Why nothing can be counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The machine (or virtual machine) has no PMU.
    NoPmu,
    /// The kernel does not allow it (`perf_event_paranoid`, seccomp).
    NotAllowed,
    /// Anything else, in the kernel's words.
    Other(String),
}

impl Refusal {
    /// Text for the user, with a remedy.
    #[must_use]
    pub fn message(&self) -> String {
        match self {
            Self::NoPmu => "this machine shows no hardware counters (a virtual machine gets them \
                            only when its host passes the PMU through)"
                .into(),
            Self::NotAllowed => "hardware counters are not allowed: run as root, or sudo sysctl kernel.perf_event_paranoid=1"
                .into(),
            Self::Other(words) => format!("hardware counters cannot be opened: {words}"),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Instructions,
    Cycles,
    Active,
    All,
    Huge,
}

/// Counters of some processes, their threads and the threads that they start later.
#[derive(Debug)]
pub struct Counting {
    events: Vec<(Kind, u32, u64)>,
    open: BTreeMap<i32, Vec<(Kind, EventFd)>>,
    /// Counts of threads that ended.
    ended: BTreeMap<Kind, f64>,
}

impl Counting {
    /// Prepares the events of `table` (without one, only instructions and cycles) and tries on this
    /// process whether the machine can count at all.
    ///
    /// # Errors
    /// [`Refusal`].
    pub fn prepare(sys: &Path, table: Option<&Table>) -> Result<Self, Refusal> {
        let hardware = |event| (PERF_TYPE_HARDWARE, u64::from(event));
        let (kind, config) = hardware(PERF_COUNT_HW_INSTRUCTIONS);
        let mut events = vec![(Kind::Instructions, kind, config)];
        let (kind, config) = hardware(PERF_COUNT_HW_CPU_CYCLES);
        events.push((Kind::Cycles, kind, config));
        if let Some(table) = table {
            let raw = pmu_type(sys, table).unwrap_or(PERF_TYPE_RAW);
            let mut add = |kind, list: &[Event]| {
                events.extend(list.iter().map(|event| (kind, raw, event.config)));
            };
            add(Kind::Active, &table.active);
            add(Kind::All, &table.all);
            add(Kind::Huge, &table.huge);
        }
        open(events[0].1, events[0].2, 0).map_err(|error| refusal(&error))?;
        Ok(Self {
            events,
            open: BTreeMap::new(),
            ended: BTreeMap::new(),
        })
    }

    /// Counts the threads of `pids` from now on; threads already being counted continue.
    pub fn follow(&mut self, proc: &ProcRoot, pids: &[i32]) {
        let tasks: Vec<i32> = pids.iter().flat_map(|&pid| proc.tasks(pid)).collect();
        for &task in &tasks {
            if !self.open.contains_key(&task) {
                let counters = self.events.iter().filter_map(|&(kind, type_, config)| {
                    // A thread that has ended meanwhile has nothing to count.
                    Some((kind, open(type_, config, task).ok()?))
                });
                let counters: Vec<(Kind, EventFd)> = counters.collect();
                self.open.insert(task, counters);
            }
        }
        let gone: Vec<i32> = self
            .open
            .keys()
            .copied()
            .filter(|t| !tasks.contains(t))
            .collect();
        for task in gone {
            for (kind, event) in self.open.remove(&task).unwrap_or_default() {
                *self.ended.entry(kind).or_default() += read(&event).unwrap_or(0.0);
            }
        }
    }

    /// Counts so far.
    #[must_use]
    pub fn read(&self) -> Count {
        let mut sums = self.ended.clone();
        for (kind, event) in self.open.values().flatten() {
            if let Some(count) = read(event) {
                *sums.entry(*kind).or_default() += count;
            }
        }
        let of = |kind| sums.get(&kind).copied();
        Count {
            instructions: of(Kind::Instructions),
            cycles: of(Kind::Cycles),
            active: of(Kind::Active),
            all: of(Kind::All),
            huge: of(Kind::Huge),
        }
    }
}

/// Scaled for the time in which other events used the counter; `None` if it never ran.
fn read(event: &EventFd) -> Option<f64> {
    event.read_scaled().ok().flatten()
}

fn open(type_: u32, config: u64, task: i32) -> io::Result<EventFd> {
    let mut attr = perf_event_attr::default();
    attr.type_ = type_;
    attr.config = config;
    attr.read_format = perf_event::SCALED_FORMAT;
    attr.set_exclude_kernel(1);
    attr.set_exclude_hv(1);
    perf_event::open(&mut attr, task, -1, None)
}

/// Type number of a named PMU; hybrid machines have two.
fn pmu_type(sys: &Path, table: &Table) -> Option<u32> {
    let path = sys
        .join("bus/event_source/devices")
        .join(table.pmu.as_ref()?)
        .join("type");
    let number = crate::pseudo_file::number(&path).ok().flatten()?;
    u32::try_from(number).ok()
}

fn refusal(error: &io::Error) -> Refusal {
    match error.raw_os_error() {
        Some(libc::ENOENT | libc::ENODEV | libc::EOPNOTSUPP | libc::ENXIO) => Refusal::NoPmu,
        Some(libc::EACCES | libc::EPERM | libc::ENOSYS) => Refusal::NotAllowed,
        _ => Refusal::Other(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hugepages::walks::tables;

    #[test]
    fn counts_of_ourselves_grow_or_the_reason_is_told() {
        let table = tables().into_iter().next();
        match Counting::prepare(Path::new("/sys"), table.as_ref()) {
            Err(refusal) => {
                assert!(!refusal.message().is_empty());
                skipped!("{}", refusal.message());
            }
            Ok(mut counting) => {
                let me = i32::try_from(std::process::id()).unwrap();
                counting.follow(&ProcRoot::default(), &[me]);
                let first = counting.read();
                let sum: u64 = (0..1_000_000_u64).map(std::hint::black_box).sum();
                assert!(std::hint::black_box(sum) > 0);
                let counted = counting.read().since(&first).instructions;
                assert!(counted.is_none_or(|count| count > 1e5), "{counted:?}");
            }
        }
    }

    #[test]
    fn the_share_of_walks_needs_both_counts() {
        let count = Count {
            cycles: Some(200.0),
            active: Some(50.0),
            ..Count::default()
        };
        assert_eq!(count.walk_share(), Some(0.25));
        assert_eq!(Count::default().walk_share(), None);
    }
}
