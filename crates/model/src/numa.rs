//! Memory nodes (NUMA) while a program was observed: what the machine has, what its kernel counted,
//! and where the program's memory and its CPU time were.

use crate::units::{Bytes, Estimate};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What was seen of them. There is none where at most one node has memory.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MemoryNodes {
    /// The nodes, by number.
    pub nodes: Vec<MemoryNode>,
    /// Growth of the kernel's counters of NUMA balancing meanwhile, over the whole machine
    /// (`numa_*` of `/proc/vmstat`); those that it lacks are absent.
    pub balancing: BTreeMap<String, u64>,
    /// Whether a launcher may set the policy of the program's memory (set_mempolicy(2)): containers
    /// often may not.
    pub policy_can_be_set: bool,
    /// Processes whose memory was looked at, the largest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub processes: Vec<ProcessOnNodes>,
}

/// A node of the machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MemoryNode {
    /// Its number.
    pub id: u32,
    /// Its CPUs; a node of memory alone has none.
    pub cpus: Vec<u32>,
    /// Its memory; 0 for a node of CPUs alone. `None` if it could not be read.
    pub memory: Option<Bytes>,
    /// Growth of its counters meanwhile, over all programs (`numastat`).
    pub counters: BTreeMap<String, u64>,
}

/// Where the memory of a process was, and where it ran.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProcessOnNodes {
    /// Its id.
    pub pid: i32,
    /// Its name.
    pub name: String,
    /// Policy of most of its memory, as in `numa_maps`: `default`, `bind:0`, `interleave:0-1`…
    pub policy: String,
    /// Node by node.
    pub nodes: Vec<OnNode>,
    /// Its share of the program's CPU time; `None` without samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share_of_cpu: Option<f64>,
    /// Share of its memory that would have to be on other nodes for memory to be distributed over
    /// them as its CPU time is; `None` without samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub misplaced: Option<Estimate>,
}

/// What a process has and does on one node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OnNode {
    /// The node.
    pub node: u32,
    /// Anonymous and shared memory, on average over the looks at it.
    pub memory: Bytes,
    /// Pages of mapped files, likewise: other programs may have read them.
    pub files: Bytes,
    /// Share of the process's CPU time on CPUs of the node; `None` without samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<Estimate>,
}

impl MemoryNodes {
    /// The node of a CPU.
    #[must_use]
    pub fn of_cpu(&self, cpu: u32) -> Option<u32> {
        let has = |node: &&MemoryNode| node.cpus.contains(&cpu);
        self.nodes.iter().find(has).map(|node| node.id)
    }

    /// A node by its number.
    #[must_use]
    pub fn node(&self, id: u32) -> Option<&MemoryNode> {
        self.nodes.iter().find(|node| node.id == id)
    }
}

impl ProcessOnNodes {
    /// Its anonymous and shared memory.
    #[must_use]
    pub fn held(&self) -> Bytes {
        self.nodes.iter().map(|node| node.memory).sum()
    }

    /// The node with most of its CPU time, and the share of it.
    #[must_use]
    pub fn mostly_on(&self) -> Option<(u32, Estimate)> {
        let timed = self.nodes.iter();
        let timed = timed.filter_map(|one| Some((one.node, one.time?)));
        timed.max_by(|a, b| a.1.value.total_cmp(&b.1.value))
    }
}

/// Numbers as in sysfs: `0-3,8`.
#[must_use]
pub fn list(numbers: &[u32]) -> String {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for &number in numbers {
        match ranges.last_mut() {
            Some((_, end)) if *end + 1 == number => *end = number,
            _ => ranges.push((number, number)),
        }
    }
    let range = |(start, end): (u32, u32)| match start == end {
        true => start.to_string(),
        false => format!("{start}-{end}"),
    };
    ranges.into_iter().map(range).collect::<Vec<_>>().join(",")
}

/// The most numbers that a list may name: kernels have at most 8,192 CPUs and 1,024 nodes.
const MOST_NUMBERS: usize = 1 << 14;

/// Reads such a list; `None` if it is malformed. An empty one has no numbers.
#[must_use]
pub fn numbers(list: &str) -> Option<Vec<u32>> {
    let mut found: Vec<u32> = Vec::new();
    for part in list.trim().split(',').filter(|_| !list.trim().is_empty()) {
        let (start, end) = part.split_once('-').unwrap_or((part, part));
        let (start, end): (u32, u32) = (start.parse().ok()?, end.parse().ok()?);
        let many = usize::try_from(end.checked_sub(start)?).ok()?;
        if found.len() + many >= MOST_NUMBERS {
            return None;
        }
        found.extend(start..=end);
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_the_kernel_are_read_and_written() {
        for text in ["", "0", "0-3", "0-3,8", "1,3,5-7"] {
            assert_eq!(list(&numbers(text).unwrap()), text);
        }
        for wrong in ["a", "3-1", "0-", "1,,2", "0-4294967295"] {
            assert_eq!(numbers(wrong), None, "{wrong}");
        }
    }
}
