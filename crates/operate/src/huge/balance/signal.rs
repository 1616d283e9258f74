//! The cost of the processes' work, by a ladder of signals: the best that this machine has is used.

use anyhow::{Result, bail};
use pagewise_linux::hugepages::progress::Progress;
use pagewise_linux::hugepages::walks::{Count, Counting, Cpu, Table, table_for};
use pagewise_linux::proc::ProcRoot;
use pagewise_linux::sys::machine::process_cpu_time;
use pagewise_model::units::Nanos;
use pagewise_simulate::balance::Refills;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

/// What counts as work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Work {
    /// A counter that the user named.
    Named(Progress),
    /// Instructions in user mode.
    Instructions,
    /// Read and write calls: a stand-in for requests.
    Calls,
}

/// Results of one interval.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sample {
    /// Its length.
    pub elapsed: Nanos,
    /// CPU time of the processes in it.
    pub cpu: Nanos,
    /// Units of work in it.
    pub work: f64,
    /// Counts of the hardware counters.
    pub count: Count,
}

/// Reads CPU time, work and page walks.
pub struct Signal {
    proc: ProcRoot,
    work: Work,
    /// Whether the counter is shared by all processes.
    is_common: bool,
    counting: Option<Counting>,
    /// Table of this CPU's events.
    pub table: Option<Table>,
    /// Why there are no hardware counts.
    pub no_counters: Option<String>,
    resolved: BTreeMap<i32, Progress>,
    last: BTreeMap<i32, (Nanos, u64)>,
    last_common: Option<u64>,
    last_count: Count,
    last_at: Instant,
    /// The last reason why the counter could not be read, until it is read for the first time.
    trouble: Option<String>,
    works: bool,
}

/// With fewer calls than this in an interval, their number is not enough to measure work.
const FEWEST_CALLS: f64 = 20.0;
/// A process that ran for less than this share of an interval gives no cost.
const LEAST_BUSY: f64 = 0.02;

impl Signal {
    /// Opens the available counters. `named` is the user's counter.
    pub fn open(named: Option<&Progress>) -> Self {
        let proc = ProcRoot::default();
        let table = table_for(&Cpu::this());
        let counting = Counting::prepare(Path::new("/sys"), table.as_ref());
        let (counting, no_counters) = match counting {
            Ok(counting) => (Some(counting), None),
            Err(refusal) => (None, Some(refusal.message())),
        };
        let work = match (named, &counting) {
            (Some(progress), _) => Work::Named(progress.clone()),
            (None, Some(_)) => Work::Instructions,
            (None, None) => Work::Calls,
        };
        Self {
            proc,
            is_common: matches!(work, Work::Named(Progress::File(_))),
            work,
            counting,
            table,
            no_counters,
            resolved: BTreeMap::new(),
            last: BTreeMap::new(),
            last_common: None,
            last_count: Count::default(),
            last_at: Instant::now(),
            trouble: None,
            works: false,
        }
    }

    /// What to do where no work was seen.
    pub fn remedy(&self) -> String {
        match &self.work {
            Work::Named(progress) => format!(
                "{} stood still while it was observed: name one that counts work as it is done.",
                progress.label()
            ),
            Work::Instructions | Work::Calls => {
                format!(
                    "No work was seen ({}): name a counter with --progress.",
                    self.label()
                )
            }
        }
    }

    /// Text for the user.
    pub fn label(&self) -> String {
        match &self.work {
            Work::Named(progress) => format!("CPU time by {}", progress.label()),
            Work::Instructions => "CPU time by instructions".to_owned(),
            Work::Calls => "CPU time by read and write calls (a stand-in for work)".to_owned(),
        }
    }

    /// Starts the next interval, and returns the last one's sample.
    ///
    /// # Errors
    /// If the counter that the user named can be read for no process.
    pub fn sample(&mut self, pids: &[i32]) -> Result<Sample> {
        let now = Instant::now();
        let mut sample = Sample {
            elapsed: (now - self.last_at).into(),
            ..Sample::default()
        };
        self.last_at = now;
        let mut readings = BTreeMap::new();
        for &pid in pids {
            let Ok(cpu) = process_cpu_time(pid) else {
                continue;
            };
            let work = self.work_of(pid).unwrap_or_default();
            if let Some((before_cpu, before_work)) = self.last.get(&pid) {
                sample.cpu += cpu - *before_cpu;
                sample.work += as_float(work.saturating_sub(*before_work));
            }
            readings.insert(pid, (cpu, work));
        }
        self.last = readings;
        if self.is_common {
            sample.work = self.common_work(pids);
        }
        if let Some(counting) = &mut self.counting {
            counting.follow(&self.proc, pids);
            let count = counting.read();
            sample.count = count.since(&self.last_count);
            self.last_count = count;
            if self.work == Work::Instructions {
                sample.work = sample.count.instructions.unwrap_or(0.0);
            }
        }
        Ok(sample)
    }

    /// Fails if the user's counter could never be read.
    ///
    /// # Errors
    /// The counter's own.
    pub fn check(&self) -> Result<()> {
        match &self.trouble {
            Some(trouble) if !self.works => bail!("--progress: {trouble}"),
            _ => Ok(()),
        }
    }

    fn work_of(&mut self, pid: i32) -> Option<u64> {
        let progress = match &self.work {
            Work::Instructions => return None,
            Work::Calls => Progress::Calls,
            Work::Named(Progress::File(_)) => return None,
            Work::Named(named) => self.resolve(pid, &named.clone())?,
        };
        self.keep(progress.read(&self.proc, pid))
    }

    fn resolve(&mut self, pid: i32, named: &Progress) -> Option<Progress> {
        if let Some(found) = self.resolved.get(&pid) {
            return Some(found.clone());
        }
        let found = self.keep(named.resolve(&self.proc, pid))?;
        self.resolved.insert(pid, found.clone());
        Some(found)
    }

    fn common_work(&mut self, pids: &[i32]) -> f64 {
        let Work::Named(progress) = &self.work else {
            return 0.0;
        };
        let now = progress.read(&self.proc, pids.first().copied().unwrap_or(0));
        let Some(now) = self.keep(now) else {
            return 0.0;
        };
        let before = self.last_common.replace(now).unwrap_or(now);
        as_float(now.saturating_sub(before))
    }

    fn keep<T>(
        &mut self,
        read: Result<T, pagewise_linux::hugepages::progress::Error>,
    ) -> Option<T> {
        match read {
            Ok(value) => {
                self.works = true;
                Some(value)
            }
            Err(error) => {
                self.trouble = Some(error.to_string());
                None
            }
        }
    }

    /// CPU seconds per unit of work; `None` for an interval without a usable figure.
    pub fn cost(&self, sample: &Sample) -> Option<f64> {
        let least = match self.work {
            Work::Calls => FEWEST_CALLS,
            _ => 1.0,
        };
        let busy = sample.cpu.as_secs_f64() >= LEAST_BUSY * sample.elapsed.as_secs_f64();
        (busy && sample.work >= least).then(|| sample.cpu.as_secs_f64() / sample.work)
    }

    /// Page walks of huge and of base pages per second, if they are counted by size.
    pub fn walks_by_size(sample: &Sample) -> Option<(f64, f64)> {
        let (all, huge) = (sample.count.all?, sample.count.huge?);
        let seconds = sample.elapsed.as_secs_f64().max(1e-9);
        Some((huge / seconds, (all - huge).max(0.0) / seconds))
    }

    /// Page walks, if they are counted.
    pub fn refills(sample: &Sample) -> Option<Refills> {
        Some(Refills {
            all: as_count(sample.count.all?),
            huge: sample.count.huge.map(as_count),
        })
    }
}

fn as_float(count: u64) -> f64 {
    count as f64
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "scaled counts are never negative and far below 2^64"
)]
fn as_count(count: f64) -> u64 {
    count as u64
}
