//! Changing the page sizes of a running process, one slot at a time, each change verified.
//!
//! Nothing here changes the contents of memory: the kernel, under its own locks, either copies a
//! slot into a huge page or splits its mapping into a page table. Stopping at any moment leaves a
//! correct process.

use super::map::{self, Error, PageSizes};
use crate::proc::ProcRoot;
use crate::sys::machine::thread_cpu_time;
use crate::sys::page_map::{self, Advice, PageRun, category};
use crate::sys::process::pidfd_open;
use pagewise_model::huge_pages::{HugeMap, Slot};
use pagewise_model::units::Nanos;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::time::Instant;

/// A change of one slot's page size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// Base pages into one huge page.
    Collapse,
    /// A huge page into base pages.
    Split,
}

impl Change {
    /// The change that reverses this one.
    #[must_use]
    pub fn inverse(self) -> Self {
        match self {
            Self::Collapse => Self::Split,
            Self::Split => Self::Collapse,
        }
    }
}

/// Why a slot stayed as it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Refusal {
    /// Pages are shared with another process since a fork: a split would have no effect, and a
    /// collapse would double the memory.
    ForkShared,
    /// No free huge page (`ENOMEM`), or the memory cgroup is full.
    NoMemory,
    /// Pages are pinned or under I/O at the moment (`EAGAIN`, `EBUSY`).
    Busy,
    /// The kernel does not support this mapping (`EINVAL`).
    NotAllowed,
    /// The mapping is gone.
    Unmapped,
    /// The call succeeded, but the page map shows no change.
    NoEffect,
    /// No page of the slot is in memory.
    Empty,
}

impl Refusal {
    /// Text for the user.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::ForkShared => "shared with another process since a fork",
            Self::NoMemory => "no free huge page",
            Self::Busy => "pinned or busy",
            Self::NotAllowed => "not allowed for this mapping",
            Self::Unmapped => "unmapped meanwhile",
            Self::NoEffect => "accepted without effect",
            Self::Empty => "nothing in memory",
        }
    }
}

/// Result of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The page map shows the change.
    Done,
    /// The slot was in the wanted state before.
    Already,
    /// The slot stayed as it was.
    Refused(Refusal),
}

/// One attempt to change a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Act {
    /// Address of the slot.
    pub address: u64,
    /// What was tried.
    pub change: Change,
    /// State of the slot before.
    pub before: Slot,
    /// State of the slot now.
    pub after: Slot,
    /// Result.
    pub outcome: Outcome,
    /// Time of the system call alone, without verification.
    pub call: Nanos,
    /// CPU time of our thread for all of it.
    pub cpu: Nanos,
}

/// A process whose page sizes can be read and changed.
#[derive(Debug)]
pub struct Target {
    pid: i32,
    start_ticks: u64,
    proc: ProcRoot,
    pidfd: OwnedFd,
    pagemap: File,
    sizes: PageSizes,
}

impl Target {
    /// Opens process `pid`.
    ///
    /// # Errors
    /// [`Error::Gone`], [`Error::PageMap`] without the right to read it, [`Error::Scan`] before
    /// Linux 6.7, [`Error::NoHugePages`].
    pub fn open(proc: &ProcRoot, pid: i32, sizes: PageSizes) -> Result<Self, Error> {
        let hold = |source: io::Error| match source.raw_os_error() {
            Some(libc::ESRCH) => Error::Gone(pid),
            _ => Error::Hold { pid, source },
        };
        let pidfd = pidfd_open(pid).map_err(hold)?;
        let start_ticks = proc.stat(pid)?.ok_or(Error::Gone(pid))?.start_ticks;
        let pagemap =
            File::open(proc.process_path(pid, "pagemap")).map_err(|source| {
                match source.raw_os_error() {
                    Some(libc::ENOENT | libc::ESRCH) => Error::Gone(pid),
                    _ => Error::PageMap { pid, source },
                }
            })?;
        page_map::scan(&pagemap, 0, sizes.huge.0, &mut Vec::new()).map_err(
            |source| match source.raw_os_error() {
                Some(libc::ESRCH) => Error::Gone(pid),
                _ => Error::Scan(source),
            },
        )?;
        Ok(Self {
            pid,
            start_ticks,
            proc: proc.clone(),
            pidfd,
            pagemap,
            sizes,
        })
    }

    /// Process id.
    #[must_use]
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// When it started, in clock ticks since boot.
    #[must_use]
    pub fn start_ticks(&self) -> u64 {
        self.start_ticks
    }

    /// Page sizes of the machine.
    #[must_use]
    pub fn sizes(&self) -> PageSizes {
        self.sizes
    }

    /// The whole map.
    ///
    /// # Errors
    /// As [`map::read`].
    pub fn map(&self) -> Result<HugeMap, Error> {
        map::read(&self.proc, self.pid, &self.pagemap, self.sizes)
    }

    /// Reads the slots of a known map again, without re-reading the list of mappings: a hundred
    /// times cheaper than [`Target::map`].
    ///
    /// # Errors
    /// [`Error::Scan`].
    pub fn refresh(&self, map: &mut HugeMap) -> Result<(), Error> {
        for area in &mut map.areas {
            map::refresh(area, &self.pagemap, self.sizes)?;
        }
        Ok(())
    }

    /// Current state of the slot at `address`.
    ///
    /// # Errors
    /// [`Error::Scan`].
    pub fn slot(&self, address: u64) -> Result<Slot, Error> {
        map::slot_at(&self.pagemap, address, self.sizes)
    }

    /// Whether a page of the slot is also mapped by another process: bit 56 of a pagemap entry is
    /// set for pages that are mapped exactly once.
    ///
    /// # Errors
    /// [`Error::Scan`] when the page map cannot be read.
    pub fn is_shared(&self, address: u64) -> Result<bool, Error> {
        let mut runs = Vec::new();
        page_map::scan(
            &self.pagemap,
            address,
            address + self.sizes.huge.0,
            &mut runs,
        )
        .map_err(Error::Scan)?;
        for run in &runs {
            let own = run.categories & (category::ZERO | category::FILE | category::SWAPPED) == 0;
            if own && self.is_run_shared(run).map_err(Error::Scan)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn is_run_shared(&self, run: &PageRun) -> io::Result<bool> {
        const EXCLUSIVE: u64 = 1 << 56;
        const PRESENT: u64 = 1 << 63;
        let bytes = (run.end - run.start) / self.sizes.base.0 * 8;
        let mut entries = vec![0; usize::try_from(bytes).unwrap_or(0)];
        let offset = run.start / self.sizes.base.0 * 8;
        self.pagemap.read_exact_at(&mut entries, offset)?;
        Ok(entries.chunks_exact(8).any(|entry| {
            let entry = u64::from_ne_bytes(entry.try_into().unwrap_or_default());
            entry & PRESENT != 0 && entry & EXCLUSIVE == 0
        }))
    }

    /// Changes the slot at `address` and verifies the change.
    ///
    /// # Errors
    /// [`Error::Scan`] when the page map can no longer be read. What the kernel refuses is an
    /// [`Outcome`], not an error.
    pub fn apply(&self, change: Change, address: u64) -> Result<Act, Error> {
        let began = thread_cpu_time();
        let before = self.slot(address)?;
        let mut act = Act {
            address,
            change,
            before,
            after: before,
            outcome: Outcome::Already,
            call: Nanos(0),
            cpu: Nanos(0),
        };
        let wanted = change == Change::Collapse;
        if before.huge != wanted {
            act.outcome = self.change(&mut act)?;
        }
        act.cpu = thread_cpu_time() - began;
        Ok(act)
    }

    fn change(&self, act: &mut Act) -> Result<Outcome, Error> {
        if act.before.is_empty() {
            return Ok(Outcome::Refused(Refusal::Empty));
        }
        // A collapse would copy the pages, and each process would hold a copy.
        if act.change == Change::Collapse && self.is_shared(act.address)? {
            return Ok(Outcome::Refused(Refusal::ForkShared));
        }
        let (length, advice) = match act.change {
            Change::Collapse => (self.sizes.huge.0, Advice::Collapse),
            Change::Split => (self.sizes.base.0, Advice::Cold),
        };
        let started = Instant::now();
        let advised = page_map::advise(self.pidfd.as_fd(), &[(act.address, length)], advice);
        act.call = started.elapsed().into();
        act.after = self.slot(act.address)?;
        if act.after.huge == (act.change == Change::Collapse) {
            return Ok(Outcome::Done);
        }
        Ok(Outcome::Refused(match advised {
            Err(error) => refusal(&error),
            // The kernel skips pages that are mapped more than once, and reports success.
            Ok(_) if self.is_shared(act.address)? => Refusal::ForkShared,
            Ok(_) => Refusal::NoEffect,
        }))
    }

    /// Whether the process still runs under this id.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        matches!(self.proc.stat(self.pid), Ok(Some(stat))
            if stat.is_alive() && stat.start_ticks == self.start_ticks)
    }
}

fn refusal(error: &io::Error) -> Refusal {
    match error.raw_os_error() {
        Some(libc::ENOMEM) => Refusal::NoMemory,
        Some(libc::EAGAIN | libc::EBUSY) => Refusal::Busy,
        Some(libc::EFAULT | libc::ESRCH) => Refusal::Unmapped,
        _ => Refusal::NotAllowed,
    }
}
