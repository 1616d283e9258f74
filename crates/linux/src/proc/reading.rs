//! One reading of everything in a timeline, each part at the beat that its cost allows.

use super::sampler_options::SamplerOptions;
use super::{Counters, PressureStall, ProcRoot, ProcessReading, StallTimes, Tree};
use crate::memcg::MemoryCgroup;
use crate::sys::machine;
use pagewise_model::timeline::{PressurePoint, TimelinePoint};
use pagewise_model::units::{Bytes, Nanos};
use std::path::PathBuf;

/// Pressure is read no more often than this: it costs about 60 µs.
const PRESSURE_INTERVAL: Nanos = Nanos(500_000_000);

/// The proportional set size is read no more often than this.
const PSS_INTERVAL: Nanos = Nanos(1_000_000_000);

/// Reading the proportional set size may take one part in this many of the time: 0.3 %.
const PSS_SHARE: u64 = 300;

/// Results of one beat.
pub(super) struct Reading {
    pub point: TimelinePoint,
    pub pressure: Option<PressurePoint>,
    pub processes: Vec<ProcessReading>,
    pub unreadable: u64,
}

/// Reads a process tree, and machine-wide figures.
pub(super) struct Probe {
    tree: Option<Tree>,
    proc: ProcRoot,
    pss_due: Option<Nanos>,
    pressure: Option<Pressure>,
    pressure_due: Nanos,
    /// Problems along the way, for the user.
    pub notes: Vec<String>,
}

impl Probe {
    /// A probe of `pid`; `notes` receives what cannot be read from the start.
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

    /// The machine's counters at the end, whatever the beat: their increase since the last reading
    /// belongs to the run.
    pub fn last_pressure(&mut self, time: Nanos) -> Option<PressurePoint> {
        let living = self.tree.iter().flat_map(Tree::living).collect::<Vec<_>>();
        let (point, _) = self.pressure.as_mut()?.read(time, &living).ok()?;
        Some(point)
    }

    fn read_pressure(&mut self, time: Nanos) -> Option<PressurePoint> {
        if time < self.pressure_due {
            return None;
        }
        self.pressure_due = time + PRESSURE_INTERVAL;
        let living = self.tree.iter().flat_map(Tree::living).collect::<Vec<_>>();
        let pressure = self.pressure.as_mut()?;
        match pressure.read(time, &living) {
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

    /// Proportional set size of the tree. A costly reading delays the next one; after one that
    /// fails for lack of permission there are no more.
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
    groups: Vec<Group>,
    before: Option<Absolute>,
}

/// A control group that contains or contained a process of the tree.
struct Group {
    cgroup: MemoryCgroup,
    /// Hits of its limit when it was first seen.
    hits_before: Option<u64>,
}

/// Most groups read, and processes whose groups are looked up, at a beat, at 10 µs each.
const MOST_GROUPS: usize = 16;
const MOST_PROCESSES: usize = 32;

/// Figures as the kernel counts them.
#[derive(Clone)]
struct Absolute {
    vmstat: Counters,
    stall: Option<StallTimes>,
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
        let mut pressure = Self {
            proc,
            pid,
            cgroups: options.cgroups.clone(),
            groups: Vec::new(),
            before: None,
        };
        if let Err(error) = pressure.follow(pid) {
            notes.push(format!("Memory of the cgroup was not recorded: {error}."));
        }
        pressure
    }

    /// A process may enter another control group after it started: a shell before it executes a
    /// program, or a child by itself. From then on the limits of both count.
    fn follow(&mut self, pid: i32) -> super::Result<()> {
        let now = MemoryCgroup::of_process(&self.proc, &self.cgroups, pid)?;
        let is_known = |now: &MemoryCgroup| self.groups.iter().any(|known| known.cgroup == *now);
        let Some(cgroup) = now.filter(|now| !is_known(now)) else {
            return Ok(());
        };
        if self.groups.len() < MOST_GROUPS {
            let hits_before = cgroup.read().ok().and_then(|read| read.limit_hits);
            self.groups.push(Group {
                cgroup,
                hits_before,
            });
        }
        Ok(())
    }

    /// The figures at `time` for a tree of these processes, and whether anything on this machine
    /// was ever swapped out.
    fn read(&mut self, time: Nanos, living: &[i32]) -> super::Result<(PressurePoint, bool)> {
        let own = [self.pid];
        for pid in own.iter().chain(living.iter().take(MOST_PROCESSES)) {
            // The process may have ended meanwhile.
            let _ = self.follow(*pid);
        }
        let now = Absolute {
            vmstat: self.proc.vmstat()?.unwrap_or_default(),
            stall: match self.proc.memory_pressure() {
                Ok(PressureStall::Counted(times)) => Some(times),
                _ => None,
            },
        };
        let swapped = now.vmstat.count("pswpout") + now.vmstat.count("zswpout") > 0;
        let groups = self.groups_now();
        let before = self.before.get_or_insert_with(|| now.clone());
        let mut point = difference(before, &now, time);
        point.cgroup_usage = groups.usage;
        point.cgroup_limit_hits = groups.hits;
        Ok((point, swapped))
    }

    /// Limit hits of all groups, and the usage of the group with the most hits, or of the first
    /// group while there are none.
    fn groups_now(&self) -> GroupsNow {
        let mut sum = GroupsNow::default();
        let mut most = None;
        for group in &self.groups {
            let Ok(now) = group.cgroup.read() else {
                continue;
            };
            let hits = now.limit_hits.zip(group.hits_before);
            let hits = hits.map(|(now, before)| now.saturating_sub(before));
            if most.is_none_or(|most| hits.unwrap_or(0) > most) {
                most = Some(hits.unwrap_or(0));
                sum.usage = now.usage;
            }
            sum.hits = match (sum.hits, hits) {
                (Some(sum), Some(hits)) => Some(sum + hits),
                (known, hits) => known.or(hits),
            };
        }
        sum
    }
}

#[derive(Default)]
struct GroupsNow {
    usage: Option<Bytes>,
    hits: Option<u64>,
}

fn difference(before: &Absolute, now: &Absolute, time: Nanos) -> PressurePoint {
    let grown = |name: &str| {
        now.vmstat
            .count(name)
            .saturating_sub(before.vmstat.count(name))
    };
    let grown_all = |prefix: &str| {
        let count = |counters: &Counters| match counters.get(prefix) {
            Some(total) => total,
            None => counters.sum_of(&format!("{prefix}_")),
        };
        count(&now.vmstat).saturating_sub(count(&before.vmstat))
    };
    let stall = |of: fn(&StallTimes) -> Nanos| Some(of(&now.stall?) - of(&before.stall?));
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
        cgroup_usage: None,
        cgroup_limit_hits: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn absolute(vmstat: &str) -> Absolute {
        Absolute {
            vmstat: Counters::parse(vmstat, Path::new("vmstat")).unwrap(),
            stall: None,
        }
    }

    #[test]
    fn pressure_counts_from_the_beginning_of_observation() {
        let before = absolute("pswpin 5\npgscan_direct 100\npgscan_direct_throttle 7\n");
        let now = absolute("pswpin 8\npgscan_direct 150\npgscan_direct_throttle 9\n");
        let point = difference(&before, &now, Nanos(1));
        assert_eq!((point.swap_in, point.direct_scanned), (3, 50));
        assert_eq!((point.stall_some, point.swap_out), (None, 0));
    }

    #[test]
    fn kernels_that_count_scans_by_zone_are_summed() {
        let before = absolute("pgscan_kswapd_dma 1\npgscan_kswapd_normal 10\n");
        let now = absolute("pgscan_kswapd_dma 4\npgscan_kswapd_normal 30\n");
        assert_eq!(difference(&before, &now, Nanos(1)).kswapd_scanned, 23);
    }

    /// A shell enters a control group, then executes the program that is to run in it.
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
            let (point, _) = pressure.read(Nanos(0), &[10]).unwrap();
            point.cgroup_limit_hits
        };
        assert_eq!(hits(&mut pressure), Some(0));
        write("cg/memory/a/memory.failcnt", "9\n");
        assert_eq!(hits(&mut pressure), Some(2));
        write("proc/9/cgroup", "4:memory:/b\n");
        assert_eq!(hits(&mut pressure), Some(2));
        write("cg/memory/b/memory.failcnt", "150\n");
        assert_eq!(hits(&mut pressure), Some(52));
        // A child enters a group of its own.
        write("cg/memory/c/memory.usage_in_bytes", "8192\n");
        write("cg/memory/c/memory.failcnt", "5\n");
        write("proc/10/cgroup", "4:memory:/c\n");
        assert_eq!(hits(&mut pressure), Some(52));
        write("cg/memory/c/memory.failcnt", "1005\n");
        let (point, _) = pressure.read(Nanos(0), &[10]).unwrap();
        assert_eq!(point.cgroup_limit_hits, Some(1052));
        assert_eq!(point.cgroup_usage, Some(Bytes(8192)));
        // Hits in the group it left still count.
        write("cg/memory/b/memory.failcnt", "151\n");
        assert_eq!(hits(&mut pressure), Some(1053));
    }
}
