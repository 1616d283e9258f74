//! The largest account of a process tree while it runs.

use super::look::{Manner, Stops};
use super::{Scope, moment};
use pagewise_linux::proc::{ProcRoot, family};
use pagewise_memory::finding;
use pagewise_model::memory::{Memory, MemoryMoment, MemoryWhen};
use pagewise_model::units::{Bytes, Nanos};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// A look follows when so much more is resident than at the last: a part of it (1 in so many), and
/// at least this.
const MORE: u64 = 20;
const LEAST_MORE: u64 = 1 << 20;
/// Time from which any size is worth a look.
const ANY_SIZE: Duration = Duration::from_secs(2);
/// Size from which a look tells what one more MiB takes: below, most of it is for opening files.
const TELLING: u64 = 16 << 20;
/// What a first look is expected to take for each MiB: at 1 GiB per second.
const NANOS_PER_MIB: u64 = 1 << 20;

/// How closely a tree is watched.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// Time between two readings of the resident size, at least and at most: a tenth of the time so far.
    pub intervals: (Duration, Duration),
    /// CPU time that looks may take in all: so much, and a part of the time so far (1 in so many).
    pub allowance: (Duration, u32),
    /// Resident size of the first look; after two seconds it no longer matters.
    pub first: u64,
    /// Whether a look may stop the processes.
    pub stops: Stops,
}

impl Pace {
    /// For an account that was asked for.
    pub const CLOSE: Self = Self {
        intervals: (Duration::from_millis(10), Duration::from_millis(10)),
        allowance: (Duration::from_millis(500), 10),
        first: 0,
        stops: Stops::Allowed,
    };
    /// Beside a recording, which it must not disturb.
    pub const BESIDE: Self = Self {
        intervals: (Duration::from_millis(10), Duration::from_millis(100)),
        allowance: (Duration::from_millis(50), 100),
        first: 16 << 20,
        stops: Stops::Never,
    };
}

/// Looks at a tree on a thread of its own, each time that clearly more is resident than ever before.
pub struct PeakWatch {
    over: Sender<()>,
    watcher: JoinHandle<Option<MemoryMoment>>,
}

impl PeakWatch {
    /// Starts with process `pid`; `None` if there are no threads left.
    pub fn start(pid: i32, pace: Pace) -> Option<Self> {
        let (over, is_over) = mpsc::channel();
        let started = Instant::now();
        let work = move || watch(&ProcRoot::default(), pid, started, pace, &is_over);
        let watcher = thread::Builder::new().spawn(work).ok()?;
        Some(Self { over, watcher })
    }

    /// The largest account, if there was time for one.
    pub fn stop(self) -> Option<MemoryMoment> {
        drop(self.over);
        self.watcher.join().unwrap_or_default()
    }

    /// The same, with what it shows.
    pub fn judged(self) -> Option<Memory> {
        self.stop().map(|moment| Memory {
            finding: finding(&moment),
            moments: vec![moment],
            growth: None,
            holders: None,
        })
    }
}

/// A look at the tree of `pid` now.
pub fn look(
    proc: &ProcRoot,
    pid: i32,
    started: Instant,
    when: MemoryWhen,
    manner: Manner,
) -> Option<MemoryMoment> {
    let elapsed = Nanos::from(started.elapsed()).0;
    let mut found = moment(proc, pid, Scope::Tree, when, manner).ok()?;
    found.elapsed_ns = Some(elapsed);
    Some(found)
}

fn watch(
    proc: &ProcRoot,
    pid: i32,
    started: Instant,
    pace: Pace,
    is_over: &Receiver<()>,
) -> Option<MemoryMoment> {
    let mut best: Option<MemoryMoment> = None;
    let mut seen = 0;
    let mut spent = Duration::ZERO;
    let mut nanos_per_mib = NANOS_PER_MIB;
    loop {
        let (least, most) = pace.intervals;
        match is_over.recv_timeout((started.elapsed() / 10).clamp(least, most)) {
            Err(RecvTimeoutError::Timeout) => {}
            Ok(()) | Err(RecvTimeoutError::Disconnected) => return best,
        }
        let resident = resident(proc, pid);
        let is_more = resident >= seen + (seen / MORE).max(LEAST_MORE);
        let is_early = resident < pace.first && started.elapsed() < ANY_SIZE;
        let mib = (resident >> 20).max(1);
        let expected = Duration::from_nanos(mib.saturating_mul(nanos_per_mib));
        let may_spend = pace.allowance.0 + started.elapsed() / pace.allowance.1;
        if !is_more || is_early || spent + expected > may_spend {
            continue;
        }
        let before = Instant::now();
        let found = look(proc, pid, started, MemoryWhen::Peak, Manner::of(pace.stops));
        let took = before.elapsed();
        spent += took;
        if resident >= TELLING {
            nanos_per_mib = Nanos::from(took).0 / mib;
        }
        if let Some(found) = found {
            seen = resident;
            let most = best.as_ref().map_or(Bytes(0), MemoryMoment::total);
            if found.total() > most {
                best = Some(found);
            }
        }
    }
}

fn resident(proc: &ProcRoot, pid: i32) -> u64 {
    let family = family(proc, pid).into_iter();
    family
        .filter_map(|one| proc.statm(one).ok().flatten())
        .map(|statm| statm.resident.0)
        .sum()
}
