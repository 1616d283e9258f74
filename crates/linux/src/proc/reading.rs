//! One reading of everything that a timeline holds, each part at the beat that its cost allows.

use super::sampler::SamplerOptions;
use super::{Counters, PressureStall, ProcRoot, ProcessReading, StallTimes, Tree};
use crate::memcg::{MemoryCgroup, MemoryUse};
use crate::sys::machine;
use pagewise_model::timeline::{PressurePoint, TimelinePoint};
use pagewise_model::units::{Bytes, Nanos};
use std::path::PathBuf;

/// Pressure is read no more often than this: it costs about 60 µs.
const PRESSURE_INTERVAL: Nanos = Nanos(500_000_000);

/// The proportional set size is read no more often than this.
const PSS_INTERVAL: Nanos = Nanos(1_000_000_000);

/// Reading the proportional set size may take one part in so many of the time: 0.3 %.
const PSS_SHARE: u64 = 300;

/// What one beat gave.
pub(super) struct Reading {
    pub point: TimelinePoint,
    pub pressure: Option<PressurePoint>,
    pub processes: Vec<ProcessReading>,
    pub unreadable: u64,
}

/// Reads a process tree, and the machine around it.
pub(super) struct Probe {
    tree: Option<Tree>,
    proc: ProcRoot,
    pss_due: Option<Nanos>,
    pressure: Option<Pressure>,
    pressure_due: Nanos,
    /// What went wrong on the way, for the user.
    pub notes: Vec<String>,
}

impl Probe {
    /// A probe of `pid`; `notes` tells what cannot be read from the start.
    pub fn new(pid: i32, options: SamplerOptions, notes: &mut Vec<String>) -> Self {
        let tree = match options.from_birth {
            true => Tree::from_birth(options.proc.clone(), pid),
            false => {
                let roots = [&[pid], &*options.also].concat();
                Tree::of_several(options.proc.clone(), &roots)
            }
        };
        let tree = match tree {
            Ok(Some(tree)) => Some(tree),
            Ok(None) => {
                notes.push(format!("No timeline: there is no process {pid}."));
                None
            }
            Err(error) => {
                notes.push(format!("No timeline: {error}."));
                None
            }
        };
        let pressure =
            (options.pressure && tree.is_some()).then(|| Pressure::new(pid, &options, notes));
        Self {
            tree,
            proc: options.proc,
            pss_due: options.pss.then_some(Nanos(0)),
            pressure,
            pressure_due: Nanos(0),
            notes: Vec::new(),
        }
    }

    /// Whether there is nothing to read.
    pub fn is_empty(&self) -> bool {
        self.tree.is_none()
    }

    /// Reads what is due at `time` after observation started.
    pub fn read(&mut self, time: Nanos) -> Reading {
        let pressure = self.read_pressure(time);
        let Some(tree) = &mut self.tree else {
            return Reading {
                point: TimelinePoint::default(),
                pressure,
                processes: Vec::new(),
                unreadable: 0,
            };
        };
        let mut reading = tree.read();
        reading.point.time = time;
        reading.point.pss = self.read_pss(time);
        Reading {
            point: reading.point,
            pressure,
            processes: reading.processes,
            unreadable: reading.unreadable,
        }
    }

    /// The counters of the machine at the end, whatever the beat: what was counted since the last
    /// reading belongs to the run.
    pub fn last_pressure(&mut self, time: Nanos) -> Option<PressurePoint> {
        let (point, _) = self.pressure.as_mut()?.read(time).ok()?;
        Some(point)
    }

    fn read_pressure(&mut self, time: Nanos) -> Option<PressurePoint> {
        if time < self.pressure_due {
            return None;
        }
        self.pressure_due = time + PRESSURE_INTERVAL;
        let pressure = self.pressure.as_mut()?;
        match pressure.read(time) {
            Ok((point, swapped)) => {
                if let Some(tree) = &mut self.tree {
                    tree.set_read_swap(swapped);
                }
                Some(point)
            }
            Err(error) => {
                self.notes
                    .push(format!("Memory pressure was no longer recorded: {error}."));
                self.pressure = None;
                None
            }
        }
    }

    /// Proportional set size of the tree. A reading that costs much delays the next one; one that
    /// fails for lack of permission is the last.
    fn read_pss(&mut self, time: Nanos) -> Option<Bytes> {
        if time < self.pss_due? {
            return None;
        }
        let begin = machine::thread_cpu_time();
        let mut sum = Bytes(0);
        for pid in self.tree.iter().flat_map(Tree::living) {
            match self.proc.smaps_rollup(pid) {
                Ok(rollup) => sum += rollup.unwrap_or_default().pss,
                Err(error) => {
                    self.notes
                        .push(format!("Proportional set size was not read: {error}."));
                    self.pss_due = None;
                    return None;
                }
            }
        }
        let cost = machine::thread_cpu_time() - begin;
        let pause = PSS_INTERVAL.max(Nanos(cost.0.saturating_mul(PSS_SHARE)));
        self.pss_due = Some(time + pause);
        Some(sum)
    }
}

/// Reclaim, swap, huge pages, stalls and the cgroup since observation started.
struct Pressure {
    proc: ProcRoot,
    pid: i32,
    /// Where control groups are mounted.
    cgroups: PathBuf,
    cgroup: Option<MemoryCgroup>,
    before: Option<Absolute>,
    /// Hits of the limits of control groups that the process was in before this one.
    earlier_hits: u64,
    /// All hits so far.
    hits: u64,
}

/// Figures as the kernel counts them.
struct Absolute {
    vmstat: Counters,
    stall: Option<StallTimes>,
    cgroup: Option<MemoryUse>,
}

impl Pressure {
    fn new(pid: i32, options: &SamplerOptions, notes: &mut Vec<String>) -> Self {
        let proc = options.proc.clone();
        match proc.memory_pressure() {
            Ok(PressureStall::Counted(_)) => {}
            Ok(PressureStall::OffAtBoot) => notes.push(
                "Memory stalls were not recorded: the kernel was started without psi=1."
                    .to_string(),
            ),
            Ok(PressureStall::NotBuiltIn) => notes.push(
                "Memory stalls were not recorded: this kernel has no pressure stall information."
                    .to_string(),
            ),
            Err(error) => notes.push(format!("Memory stalls were not recorded: {error}.")),
        }
        let cgroup = MemoryCgroup::of_process(&proc, &options.cgroups, pid);
        Self {
            cgroup: cgroup.unwrap_or_else(|error| {
                notes.push(format!("Memory of the cgroup was not recorded: {error}."));
                None
            }),
            proc,
            pid,
            cgroups: options.cgroups.clone(),
            before: None,
            earlier_hits: 0,
            hits: 0,
        }
    }

    /// A process may enter another control group after it started (a shell does for what it then
    /// executes): from then on that one's limit counts.
    fn follow(&mut self) {
        let now = MemoryCgroup::of_process(&self.proc, &self.cgroups, self.pid);
        let Some(now) = now.ok().flatten() else {
            return;
        };
        if self.cgroup.as_ref() == Some(&now) {
            return;
        }
        if let Some(before) = &mut self.before {
            before.cgroup = now.read().ok();
        }
        self.earlier_hits = self.hits;
        self.cgroup = Some(now);
    }

    /// The figures at `time`, and whether anything of this machine was ever swapped out.
    fn read(&mut self, time: Nanos) -> super::Result<(PressurePoint, bool)> {
        self.follow();
        let now = Absolute {
            vmstat: self.proc.vmstat()?.unwrap_or_default(),
            stall: match self.proc.memory_pressure() {
                Ok(PressureStall::Counted(times)) => Some(times),
                _ => None,
            },
            cgroup: self.cgroup.as_ref().map(MemoryCgroup::read).transpose()?,
        };
        let swapped = now.vmstat.of("pswpout") + now.vmstat.of("zswpout") > 0;
        let before = self.before.get_or_insert_with(|| now.clone_counters());
        let mut point = difference(before, &now, time);
        if let Some(hits) = &mut point.cgroup_limit_hits {
            *hits += self.earlier_hits;
            self.hits = *hits;
        }
        Ok((point, swapped))
    }
}

impl Absolute {
    fn clone_counters(&self) -> Self {
        Self {
            vmstat: self.vmstat.clone(),
            stall: self.stall,
            cgroup: self.cgroup.clone(),
        }
    }

    fn limit_hits(&self) -> Option<u64> {
        self.cgroup.as_ref()?.limit_hits
    }
}

fn difference(before: &Absolute, now: &Absolute, time: Nanos) -> PressurePoint {
    let grown = |name: &str| now.vmstat.of(name).saturating_sub(before.vmstat.of(name));
    let grown_all = |prefix: &str| {
        let count = |counters: &Counters| match counters.get(prefix) {
            Some(total) => total,
            None => counters.sum_of(&format!("{prefix}_")),
        };
        count(&now.vmstat).saturating_sub(count(&before.vmstat))
    };
    let stall = |of: fn(&StallTimes) -> Nanos| Some(of(&now.stall?) - of(&before.stall?));
    let hits = now.limit_hits().zip(before.limit_hits());
    PressurePoint {
        time,
        stall_some: stall(|times| times.some),
        stall_full: stall(|times| times.full),
        swap_in: grown("pswpin"),
        swap_out: grown("pswpout"),
        direct_scanned: grown_all("pgscan_direct"),
        kswapd_scanned: grown_all("pgscan_kswapd"),
        compact_stalls: grown("compact_stall"),
        thp_fault_alloc: grown("thp_fault_alloc"),
        thp_fault_fallback: grown("thp_fault_fallback"),
        thp_collapse: grown("thp_collapse_alloc"),
        thp_split: grown("thp_split_page"),
        refaults_file: grown("workingset_refault_file"),
        refaults_anon: grown("workingset_refault_anon"),
        cgroup_usage: now.cgroup.as_ref().and_then(|cgroup| cgroup.usage),
        cgroup_limit_hits: hits.map(|(now, before)| now.saturating_sub(before)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn absolute(vmstat: &str, hits: u64) -> Absolute {
        Absolute {
            vmstat: Counters::parse(vmstat, Path::new("vmstat")).unwrap(),
            stall: None,
            cgroup: Some(MemoryUse {
                usage: Some(Bytes(4096)),
                limit_hits: Some(hits),
                ..MemoryUse::default()
            }),
        }
    }

    #[test]
    fn pressure_counts_from_the_beginning_of_observation() {
        let before = absolute("pswpin 5\npgscan_direct 100\npgscan_direct_throttle 7\n", 2);
        let now = absolute("pswpin 8\npgscan_direct 150\npgscan_direct_throttle 9\n", 5);
        let point = difference(&before, &now, Nanos(1));
        assert_eq!((point.swap_in, point.direct_scanned), (3, 50));
        assert_eq!(point.cgroup_limit_hits, Some(3));
        assert_eq!(point.cgroup_usage, Some(Bytes(4096)));
        assert_eq!((point.stall_some, point.swap_out), (None, 0));
    }

    #[test]
    fn kernels_that_count_scans_by_zone_are_summed() {
        let before = absolute("pgscan_kswapd_dma 1\npgscan_kswapd_normal 10\n", 0);
        let now = absolute("pgscan_kswapd_dma 4\npgscan_kswapd_normal 30\n", 0);
        assert_eq!(difference(&before, &now, Nanos(1)).kswapd_scanned, 23);
    }

    /// A shell enters a control group, then executes what is to run in it.
    #[test]
    fn a_process_is_followed_into_another_control_group() {
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("proc/vmstat", "pswpin 0\n");
        for (group, hits) in [("a", "7\n"), ("b", "100\n")] {
            let folder = format!("cg/memory/{group}");
            write(&format!("{folder}/memory.usage_in_bytes"), "4096\n");
            write(&format!("{folder}/memory.failcnt"), hits);
        }
        write("proc/9/cgroup", "4:memory:/a\n");
        let options = SamplerOptions {
            proc: ProcRoot::at(root.path().join("proc")),
            cgroups: root.path().join("cg"),
            ..SamplerOptions::every(std::time::Duration::from_secs(1))
        };
        let mut pressure = Pressure::new(9, &options, &mut Vec::new());
        let hits = |pressure: &mut Pressure| {
            let (point, _) = pressure.read(Nanos(0)).unwrap();
            point.cgroup_limit_hits
        };
        assert_eq!(hits(&mut pressure), Some(0));
        write("cg/memory/a/memory.failcnt", "9\n");
        assert_eq!(hits(&mut pressure), Some(2));
        write("proc/9/cgroup", "4:memory:/b\n");
        assert_eq!(hits(&mut pressure), Some(2));
        write("cg/memory/b/memory.failcnt", "150\n");
        assert_eq!(hits(&mut pressure), Some(52));
    }
}
