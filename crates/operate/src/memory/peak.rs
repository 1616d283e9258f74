//! Looks at a process tree while it runs: the largest account, and the sums of all.

use super::budget::{Allowance, Budget, Now, has_idle_cpu};
use super::look::{Manner, Stops};
use super::{Scope, cgroup, moment};
use pagewise_linux::proc::ProcRoot;
use pagewise_linux::sys::machine::thread_cpu_time;
use pagewise_memory::{Largest, finding};
use pagewise_model::memory::{Memory, MemoryMoment, MemoryPoint, MemoryWhen};
use pagewise_model::units::{Bytes, Nanos};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// A look follows when so much more is resident than at the last: a part of it (1 in so many), and
/// at least this.
const MORE: u64 = 20;
const LEAST_MORE: u64 = 1 << 20;
/// A look follows in any case when so much time has passed since the last: a part of the time so far (1 in
/// so many), so that the last looks are close to the end.
const LATER: u32 = 12;
/// Time from which any size is worth a look.
const ANY_SIZE: Duration = Duration::from_secs(2);
/// What a first look is expected to take for each MiB: at 1 GiB per second.
const NANOS_PER_MIB: u64 = 1 << 20;

/// How closely a tree is watched.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// Time between two readings of the resident size, at least and at most: a tenth of the time so far.
    pub intervals: (Duration, Duration),
    /// CPU time that looks may take.
    pub allowance: Allowance,
    /// Resident size of the first look; after two seconds it no longer matters.
    pub first: u64,
    /// Whether looks go on where nothing was added.
    pub goes_on: bool,
    /// Whether a look may stop the processes.
    pub stops: Stops,
}

impl Pace {
    /// For an account that was asked for.
    pub const CLOSE: Self = Self {
        intervals: (Duration::from_millis(2), Duration::from_millis(10)),
        allowance: Allowance {
            usual: (Duration::from_millis(500), 10),
            reserve: (Duration::from_millis(500), Duration::from_secs(2)),
            where_idle: 2,
        },
        first: 0,
        goes_on: true,
        stops: Stops::Allowed,
    };
    /// Beside a recording, which it must not disturb.
    pub const BESIDE: Self = Self {
        intervals: (Duration::from_millis(10), Duration::from_millis(50)),
        allowance: Allowance {
            usual: (Duration::from_millis(50), 100),
            reserve: (Duration::from_millis(150), Duration::from_secs(1)),
            where_idle: 8,
        },
        first: 16 << 20,
        goes_on: false,
        stops: Stops::Never,
    };
}

/// What the looks saw.
#[derive(Debug, Default)]
pub struct Watched {
    /// The looks that may stand for the run.
    pub largest: Largest,
    /// The sums of all looks.
    pub course: Vec<MemoryPoint>,
}

/// The start of a program.
#[derive(Clone, Copy, Debug)]
pub struct Start {
    at: Instant,
    /// What its cgroup held then, of files that others had read.
    page_cache: Option<Bytes>,
}

impl Start {
    /// That of a look at what ran before.
    pub fn unseen() -> Self {
        Self {
            at: Instant::now(),
            page_cache: None,
        }
    }

    /// That of process `pid`, which has just been started.
    pub fn read(proc: &ProcRoot, pid: i32) -> Self {
        Self {
            page_cache: cgroup::read(proc, pid).map(|cgroup| cgroup.page_cache),
            ..Self::unseen()
        }
    }
}

/// Looks at a tree on a thread of its own.
pub struct PeakWatch {
    over: Sender<()>,
    is_ending: Arc<AtomicBool>,
    watcher: JoinHandle<Watched>,
}

impl PeakWatch {
    /// Starts with process `pid`; `None` if there are no threads left.
    pub fn start(pid: i32, start: Start, pace: Pace) -> Option<Self> {
        let (over, is_over) = mpsc::channel();
        let is_ending = Arc::new(AtomicBool::new(false));
        let ends = Ends {
            is_over,
            is_ending: Arc::clone(&is_ending),
        };
        let work = move || watch(&ProcRoot::default(), pid, start, pace, &ends);
        let watcher = thread::Builder::new().spawn(work).ok()?;
        Some(Self {
            over,
            is_ending,
            watcher,
        })
    }

    /// Looks that are not over yet do not count: the program is about to end.
    pub fn end(&self) {
        self.is_ending.store(true, Ordering::Release);
    }

    /// What was seen, if there was time for a look.
    pub fn stop(self) -> Watched {
        drop(self.over);
        self.watcher.join().unwrap_or_default()
    }

    /// The largest account, with what it shows.
    pub fn judged(self) -> Option<Memory> {
        let Watched { largest, course } = self.stop();
        largest.into_moment().map(|moment| Memory {
            finding: finding(&moment),
            moments: vec![moment],
            course,
            growth: None,
            holders: None,
            touched: Vec::new(),
        })
    }
}

/// A look at the tree of `pid` now.
pub fn look(
    proc: &ProcRoot,
    pid: i32,
    start: Start,
    when: MemoryWhen,
    manner: Manner,
) -> Option<MemoryMoment> {
    let elapsed = Nanos::from(start.at.elapsed()).0;
    let mut found = moment(proc, pid, Scope::Tree, when, manner).ok()?;
    found.elapsed_ns = Some(elapsed);
    if let Some(cgroup) = &mut found.cgroup {
        cgroup.page_cache_before = start.page_cache;
    }
    Some(found)
}

fn watch(proc: &ProcRoot, pid: i32, start: Start, pace: Pace, ends: &Ends) -> Watched {
    let started = start.at;
    let mut largest = Largest::default();
    let mut course = Vec::new();
    let mut turn = Turn::new(pace);
    loop {
        let (least, most) = pace.intervals;
        match ends
            .is_over
            .recv_timeout((started.elapsed() / 10).clamp(least, most))
        {
            Err(RecvTimeoutError::Timeout) => {}
            Ok(()) | Err(RecvTimeoutError::Disconnected) => {
                return Watched { largest, course };
            }
        }
        let now = Now::read(proc, pid);
        if !turn.has_come(now, started.elapsed(), || has_idle_cpu(proc)) {
            continue;
        }
        let before = thread_cpu_time();
        let found = look(proc, pid, start, MemoryWhen::Peak, Manner::new(pace.stops));
        let is_seen = found.is_some();
        let cost = Duration::from_nanos((thread_cpu_time() - before).0);
        turn.took(now.resident, cost, started.elapsed(), is_seen);
        if let Some(found) = found.filter(|_| !ends.is_ending.load(Ordering::Acquire)) {
            let elapsed = Nanos::from(started.elapsed()).0;
            course.push(MemoryPoint::new(&found, elapsed));
            largest.add(found);
        }
    }
}

/// How looking ends.
struct Ends {
    is_over: Receiver<()>,
    is_ending: Arc<AtomicBool>,
}

/// When it is time for the next look.
struct Turn {
    pace: Pace,
    budget: Budget,
    /// Resident size at the largest look, and when the last one was over.
    seen: u64,
    last: Duration,
}

impl Turn {
    fn new(pace: Pace) -> Self {
        Self {
            pace,
            budget: Budget::new(pace.allowance, NANOS_PER_MIB),
            seen: 0,
            last: Duration::ZERO,
        }
    }

    fn has_come(&mut self, now: Now, elapsed: Duration, has_idle_cpu: impl Fn() -> bool) -> bool {
        let resident = now.resident;
        let is_more = resident >= self.seen + (self.seen / MORE).max(LEAST_MORE);
        let is_later = self.pace.goes_on && elapsed >= self.last + self.last / LATER;
        let is_early = resident < self.pace.first && elapsed < ANY_SIZE;
        let is_covered = self.budget.covers(now, self.seen, elapsed, has_idle_cpu);
        (is_more || is_later) && !is_early && is_covered
    }

    fn took(&mut self, resident: u64, cost: Duration, elapsed: Duration, is_seen: bool) {
        self.budget.took(resident, cost);
        if is_seen {
            (self.seen, self.last) = (self.seen.max(resident), elapsed);
        }
    }
}
