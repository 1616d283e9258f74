//! NUMA nodes while a program runs: the machine's (`/sys/devices/system/node`), the kernel's
//! counters, and where the memory of the program's processes is.
//!
//! Where at most one node has memory, two small files are read and nothing else. `numa_maps` of a large
//! process takes long: it is read only if all such readings together, this one included, take at
//! most 1 % of the time that has passed; what was never read is reported.

use crate::proc::{Counters, NumaMaps, ProcRoot, family};
use crate::pseudo_file::{self, Result, malformed};
use crate::sys::machine;
use crate::sys::numa as sys;
use pagewise_model::numa::{MemoryNode, MemoryNodes, OnNode, ProcessOnNodes, numbers};
use pagewise_model::units::{Bytes, Nanos};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A reading may cost one part in this many of the time that has passed.
const COST_SHARE: u64 = 100;
/// Time per page until one was measured (`ProcRoot::numa_maps`).
const NANOS_PER_PAGE: u64 = 26;
/// Smaller processes are left out: their memory fits into the caches of one node.
const LEAST_MEMORY: Bytes = Bytes(16 << 20);
/// Most processes that are looked at.
const MOST: usize = 64;
/// Counters of NUMA balancing in `/proc/vmstat` (mm/vmstat.c).
const OF_BALANCING: [&str; 5] = [
    "numa_pte_updates",
    "numa_huge_pte_updates",
    "numa_hint_faults",
    "numa_hint_faults_local",
    "numa_pages_migrated",
];

/// Follows NUMA nodes from a moment on.
#[derive(Debug)]
pub struct NodeWatch {
    proc: ProcRoot,
    sys: PathBuf,
    /// With counters since boot.
    before: Vec<(MemoryNode, Counters)>,
    balancing: Counters,
    policy_can_be_set: bool,
    looked: BTreeMap<i32, Looked>,
    /// Large processes that were seen but not read, or only when they were much smaller.
    left_out: BTreeMap<i32, (String, Bytes)>,
    notes: Vec<String>,
    began: Instant,
    last: Duration,
    spent: Nanos,
    nanos_per_page: u64,
    is_measured: bool,
}

/// What readings of one process showed, each weighted with the time that it stands for.
#[derive(Debug, Default)]
struct Looked {
    name: String,
    policy: String,
    time: f64,
    /// When it was last read, and its resident memory then.
    last: Duration,
    resident: Bytes,
    memory: BTreeMap<u32, (f64, f64)>,
}

impl NodeWatch {
    /// Starts now; `None` where at most one node has memory.
    #[must_use]
    pub fn begin() -> Option<Self> {
        Self::begin_at(
            ProcRoot::default(),
            Path::new("/sys"),
            sys::policy_can_be_set(),
        )
    }

    fn begin_at(proc: ProcRoot, sys: &Path, policy_can_be_set: bool) -> Option<Self> {
        let mut watch = Self {
            before: Vec::new(),
            balancing: Counters::default(),
            policy_can_be_set,
            looked: BTreeMap::new(),
            left_out: BTreeMap::new(),
            notes: Vec::new(),
            began: Instant::now(),
            last: Duration::ZERO,
            spent: Nanos(0),
            nanos_per_page: NANOS_PER_PAGE,
            is_measured: false,
            sys: sys.to_path_buf(),
            proc,
        };
        match nodes(sys) {
            Ok(None) => return None,
            Ok(Some(found)) if with_memory(&found) < 2 => return None,
            Ok(Some(found)) => watch.before = found,
            Err(error) => watch.note(&error),
        }
        match watch.proc.vmstat() {
            Ok(counters) => watch.balancing = counters.unwrap_or_default(),
            Err(error) => watch.note(&error),
        }
        Some(watch)
    }

    /// Looks at the memory of `pid` and its descendants, as far as that costs little.
    pub fn look(&mut self, pid: i32) {
        if self.before.is_empty() {
            return;
        }
        let start = machine::thread_cpu_time();
        let elapsed = self.began.elapsed();
        for member in family(&self.proc, pid).into_iter().take(MOST) {
            let spent = self.spent + (machine::thread_cpu_time() - start);
            self.look_at(member, elapsed, spent);
        }
        self.spent += machine::thread_cpu_time() - start;
        self.last = elapsed;
    }

    fn look_at(&mut self, pid: i32, elapsed: Duration, spent: Nanos) {
        let Ok(Some(size)) = self.proc.statm(pid) else {
            return;
        };
        if size.resident < LEAST_MEMORY && !self.looked.contains_key(&pid) {
            return;
        }
        let pages = size.resident.0 / machine::page_size();
        let cost = Nanos(pages.saturating_mul(self.nanos_per_page));
        if !is_affordable(spent + cost, elapsed) {
            let read = self
                .looked
                .get(&pid)
                .map_or(Bytes(0), |looked| looked.resident);
            // What was read stands for what is there now, unless that is much more.
            if size.resident.0 >= 2 * read.0 {
                let name = self.proc.comm(pid).ok().flatten().unwrap_or_default();
                self.left_out.insert(pid, (name, size.resident));
            }
            return;
        }
        let start = machine::thread_cpu_time();
        match self.proc.numa_maps(pid) {
            Ok(Some(maps)) => self.take(pid, &maps, size.resident, elapsed),
            Ok(None) => {}
            Err(error) => self.note(&error),
        }
        // The least counts: on a virtual machine, time that was stolen may be in the others.
        let took = machine::thread_cpu_time() - start;
        if pages >= LEAST_MEMORY.0 / machine::page_size() {
            let each = (took.0 / pages).max(1);
            self.nanos_per_page = match self.is_measured {
                true => self.nanos_per_page.min(each),
                false => each,
            };
            self.is_measured = true;
        }
    }

    /// A reading stands for the time since the one before, and the first since the look before it.
    fn take(&mut self, pid: i32, maps: &NumaMaps, resident: Bytes, elapsed: Duration) {
        let name = self.proc.comm(pid).ok().flatten();
        self.left_out.remove(&pid);
        let looked = self.looked.entry(pid).or_insert_with(|| Looked {
            last: self.last,
            ..Looked::default()
        });
        // At least a moment, so that there is an average.
        let since = elapsed.saturating_sub(looked.last);
        let since = since.max(Duration::from_millis(1)).as_secs_f64();
        looked.last = elapsed;
        looked.resident = resident;
        looked.time += since;
        looked.name = name.unwrap_or_else(|| std::mem::take(&mut looked.name));
        looked.policy.clone_from(&maps.policy);
        for one in &maps.nodes {
            let sum = looked.memory.entry(one.node).or_default();
            sum.0 += bytes(one.memory) * since;
            sum.1 += bytes(one.files) * since;
        }
    }

    /// Once each.
    fn note(&mut self, error: &pseudo_file::Error) {
        let note = format!("NUMA nodes: {error}.");
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    /// What was seen, and notes on what was not.
    #[must_use]
    pub fn stop(mut self) -> (MemoryNodes, Vec<String>) {
        let after = match nodes(&self.sys) {
            Ok(after) => after.unwrap_or_default(),
            Err(error) => {
                self.note(&error);
                Vec::new()
            }
        };
        let now = self.proc.vmstat().ok().flatten();
        let mut balancing = now
            .map(|now| now.growth(&self.balancing))
            .unwrap_or_default();
        balancing.retain(|name, _| OF_BALANCING.contains(&&**name));
        for (pid, (name, size)) in &self.left_out {
            self.notes.push(format!(
                "On which NUMA nodes the {size} of {name} ({pid}) were is not known: reading that would have taken more than 1 % of the time."
            ));
        }
        let mut processes: Vec<ProcessOnNodes> = self
            .looked
            .into_iter()
            .map(|(pid, looked)| looked.on_nodes(pid))
            .collect();
        processes.sort_by_key(|one| std::cmp::Reverse(one.held()));
        let nodes = self.before.into_iter().map(|(node, before)| {
            let now = after.iter().find(|(now, _)| now.id == node.id);
            MemoryNode {
                counters: now.map_or_else(BTreeMap::new, |(_, now)| now.growth(&before)),
                ..node
            }
        });
        let seen = MemoryNodes {
            nodes: nodes.collect(),
            balancing,
            policy_can_be_set: self.policy_can_be_set,
            processes,
        };
        (seen, self.notes)
    }
}

/// Whether readings that cost this much are within their share of the time.
fn is_affordable(cost: Nanos, elapsed: Duration) -> bool {
    cost.0.saturating_mul(COST_SHARE) <= Nanos::from(elapsed).0
}

impl Looked {
    /// Averages over the time.
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "averages of sizes are sizes"
    )]
    fn on_nodes(self, pid: i32) -> ProcessOnNodes {
        let mean = |sum: f64| Bytes((sum / self.time).round() as u64);
        let node = |(node, (memory, files))| OnNode {
            node,
            memory: mean(memory),
            files: mean(files),
            time: None,
        };
        ProcessOnNodes {
            pid,
            name: self.name,
            policy: self.policy,
            nodes: self.memory.into_iter().map(node).collect(),
            share_of_cpu: None,
            misplaced: None,
        }
    }
}

fn bytes(size: Bytes) -> f64 {
    size.0 as f64
}

fn with_memory(nodes: &[(MemoryNode, Counters)]) -> usize {
    let has = |node: &&(MemoryNode, Counters)| node.0.memory != Some(Bytes(0));
    nodes.iter().filter(has).count()
}

/// Below sysfs.
const NODES: &str = "devices/system/node";

/// The nodes of the machine with their counters (`numastat`) since boot; `None` without any. Of a
/// machine with one node with memory nothing more is read.
fn nodes(sys: &Path) -> Result<Option<Vec<(MemoryNode, Counters)>>> {
    let folder = sys.join(NODES);
    let (Some(online), Some(with_memory)) = (
        numbers_of(&folder.join("online"))?,
        numbers_of(&folder.join("has_memory"))?,
    ) else {
        return Ok(None);
    };
    if with_memory.len() < 2 {
        return Ok(None);
    }
    let node = |id: u32| -> Result<(MemoryNode, Counters)> {
        let folder = folder.join(format!("node{id}"));
        let path = folder.join("numastat");
        let counters = pseudo_file::text(&path)?.map(|text| Counters::parse(&text, &path));
        let memory = match with_memory.contains(&id) {
            true => memory_of(&folder.join("meminfo"))?,
            false => Some(Bytes(0)),
        };
        let node = MemoryNode {
            id,
            cpus: cpus_of(sys, id)?.unwrap_or_default(),
            memory,
            counters: BTreeMap::new(),
        };
        Ok((node, counters.transpose()?.unwrap_or_default()))
    };
    online
        .into_iter()
        .map(node)
        .collect::<Result<_>>()
        .map(Some)
}

/// CPUs of a node; `None` if there is no such node.
pub(crate) fn cpus_of(sys: &Path, node: u32) -> Result<Option<Vec<u32>>> {
    numbers_of(&sys.join(NODES).join(format!("node{node}/cpulist")))
}

/// Nodes with memory; `None` if the kernel knows no nodes.
pub(crate) fn nodes_with_memory(sys: &Path) -> Result<Option<Vec<u32>>> {
    numbers_of(&sys.join(NODES).join("has_memory"))
}

fn numbers_of(path: &Path) -> Result<Option<Vec<u32>>> {
    let Some(text) = pseudo_file::text(path)? else {
        return Ok(None);
    };
    match numbers(&text) {
        Some(numbers) => Ok(Some(numbers)),
        None => Err(malformed(path, 1, "numbers such as 0-3,8", text.trim())),
    }
}

/// `Node 0 MemTotal:       16325372 kB`
fn memory_of(path: &Path) -> Result<Option<Bytes>> {
    let Some(text) = pseudo_file::text(path)? else {
        return Ok(None);
    };
    let Some((at, line)) = (1..)
        .zip(text.lines())
        .find(|(_, line)| line.contains("MemTotal:"))
    else {
        return Ok(None);
    };
    let size = line
        .split_whitespace()
        .nth(3)
        .and_then(|word| word.parse::<u64>().ok());
    let size = size.and_then(|size| size.checked_mul(1024));
    let wrong = || malformed(path, at, "Node N MemTotal: number kB", line);
    size.map(|size| Some(Bytes(size))).ok_or_else(wrong)
}

#[cfg(test)]
mod tests;
