//! Which private pages of a tree are in memory: at its peak, and later.

use super::budget::{Allowance, Budget, Now, has_idle_cpu};
use super::look::pages;
use super::mappings;
use pagewise_linux::proc::{ProcRoot, family};
use pagewise_linux::sys::machine::thread_cpu_time;
use pagewise_linux::sys::perf_event::monotonic_now;
use pagewise_model::memory::PresentPages;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Time between two readings of the resident size, at least and at most: a tenth of the time so far.
const INTERVALS: (Duration, Duration) = (Duration::from_millis(4), Duration::from_millis(100));
/// The pages are read again when so much more is resident than at the last reading: a part of it (1 in
/// so many), and at least this.
const MORE: u64 = 16;
const LEAST_MORE: u64 = 256 << 10;
/// They are read in any case when so much time has passed since: a part of the time so far (1 in so many).
const LATER: u32 = 12;
/// CPU time that readings may take.
const ALLOWANCE: Allowance = Allowance {
    usual: (Duration::from_millis(10), 100),
    reserve: (Duration::from_millis(30), Duration::from_millis(200)),
    where_idle: 4,
};
/// What the first reading is expected to take for each MiB.
const NANOS_PER_MIB: u64 = 4000;
/// A reading is of the peak if no other saw more than this part (1 in so many) more.
const SAME: u64 = 20;
/// Most processes of a tree whose pages are read, and resident memory from which they are.
const MOST: usize = 16;
const WORTH: u64 = 1 << 20;

/// The private pages of the processes of a tree now.
pub fn present(proc: &ProcRoot, pid: i32) -> Vec<PresentPages> {
    let size = |pid| {
        proc.statm(pid)
            .ok()
            .flatten()
            .map_or(0, |statm| statm.resident.0)
    };
    let large = family(proc, pid)
        .into_iter()
        .filter(|one| size(*one) >= WORTH);
    large
        .take(MOST)
        .filter_map(|one| of_process(proc, one))
        .collect()
}

fn of_process(proc: &ProcRoot, pid: i32) -> Option<PresentPages> {
    let maps = proc.maps(pid).ok()??;
    let name = proc.comm(pid).ok()?.unwrap_or_default();
    let clock = monotonic_now();
    let presence = pages(proc, pid, &maps, mappings::is_private_and_writable).ok()?;
    Some(PresentPages::new((pid, name), clock, &presence))
}

/// Reads the pages of a tree on a thread of its own, so that no look at its heaps delays it.
pub struct PagesWatch {
    over: Sender<()>,
    watcher: JoinHandle<PagesSeen>,
}

impl PagesWatch {
    /// Starts with process `pid`; `None` if there are no threads left.
    pub fn start(pid: i32) -> Option<Self> {
        let (over, is_over) = mpsc::channel();
        let watcher = thread::Builder::new().spawn(move || watch(pid, &is_over));
        Some(Self {
            over,
            watcher: watcher.ok()?,
        })
    }

    /// What was seen: at the largest reading, and later where other pages were there then.
    pub fn stop(self) -> Vec<PresentPages> {
        self.stop_with(Vec::new())
    }

    /// The same, with a reading of the end, if there was one.
    pub fn stop_with(self, last: Vec<PresentPages>) -> Vec<PresentPages> {
        drop(self.over);
        let mut seen = self.watcher.join().unwrap_or_default();
        seen.take(last);
        seen.into_present()
    }
}

fn watch(pid: i32, is_over: &Receiver<()>) -> PagesSeen {
    let proc = ProcRoot::default();
    let started = Instant::now();
    let mut seen = PagesSeen::default();
    let mut budget = Budget::new(ALLOWANCE, NANOS_PER_MIB);
    loop {
        let pause = (started.elapsed() / 10).clamp(INTERVALS.0, INTERVALS.1);
        if is_over.recv_timeout(pause) != Err(RecvTimeoutError::Timeout) {
            return seen;
        }
        let now = Now::read(&proc, pid);
        seen.look(&mut budget, (&proc, pid), now, started.elapsed());
    }
}

/// Readings while a program runs: the largest, and the last.
#[derive(Default)]
struct PagesSeen {
    peak: Vec<PresentPages>,
    last: Vec<PresentPages>,
    /// Private memory at the peak, and resident size at the last reading.
    most: u64,
    seen: u64,
    read: Duration,
    /// Resident size at the largest reading.
    largest: u64,
}

impl PagesSeen {
    /// Reads the pages if it is time for it: so much is resident after this time.
    fn look(
        &mut self,
        budget: &mut Budget,
        (proc, pid): (&ProcRoot, i32),
        now: Now,
        elapsed: Duration,
    ) {
        let resident = now.resident;
        let is_more = resident >= self.seen + (self.seen / MORE).max(LEAST_MORE);
        let is_later = elapsed >= self.read + self.read / LATER && resident > 0;
        let is_covered = budget.covers(now, self.largest, elapsed, || has_idle_cpu(proc));
        if !(is_more || is_later) || !is_covered {
            return;
        }
        let before = thread_cpu_time();
        let found = present(proc, pid);
        let cost = Duration::from_nanos((thread_cpu_time() - before).0);
        budget.took(resident, cost);
        (self.seen, self.read) = (resident, elapsed);
        self.largest = self.largest.max(resident);
        self.take(found);
    }

    fn take(&mut self, found: Vec<PresentPages>) {
        let held: u64 = found.iter().map(|one| one.resident.0).sum();
        if held == 0 {
            return;
        }
        if held >= self.most - self.most / SAME {
            self.most = self.most.max(held);
            self.peak.clone_from(&found);
        }
        self.last = found;
    }

    fn into_present(self) -> Vec<PresentPages> {
        let later = match self.last == self.peak {
            true => Vec::new(),
            false => self.last,
        };
        let later = later.into_iter().map(|one| PresentPages {
            is_peak: false,
            ..one
        });
        self.peak.into_iter().chain(later).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagewise_model::units::{Bytes, Nanos};

    fn reading(clock: u64, mib: u64) -> Vec<PresentPages> {
        vec![PresentPages {
            pid: 7,
            clock: Nanos(clock),
            is_peak: true,
            resident: Bytes(mib << 20),
            ..PresentPages::default()
        }]
    }

    fn seen(readings: &[(u64, u64)]) -> Vec<(u64, bool)> {
        let mut seen = PagesSeen::default();
        for (clock, mib) in readings {
            seen.take(reading(*clock, *mib));
        }
        let present = seen.into_present().into_iter();
        present.map(|one| (one.clock.0, one.is_peak)).collect()
    }

    #[test]
    fn the_latest_reading_near_the_peak_and_the_last_are_kept() {
        let grows_and_shrinks = [(1, 100), (2, 300), (3, 296), (4, 100), (5, 101), (6, 0)];
        assert_eq!(seen(&grows_and_shrinks), [(3, true), (5, false)]);
        assert_eq!(seen(&[(1, 10), (2, 200), (3, 200)]), [(3, true)]);
        assert_eq!(seen(&[]), []);
    }
}
