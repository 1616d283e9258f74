//! On which NUMA nodes a program's CPU time was spent, beside where its memory was.
//!
//! No sample tells which access went to which node, so nothing here is a cost. What is compared are
//! two distributions over nodes: of a process's memory, and of its CPU time. The share of memory that
//! would have to move for the one to equal the other is 0 for a process that runs where its memory
//! is, whether that is one node or all of them, and 1 for one that has all of it elsewhere.

use crate::account::cpu_event;
use crate::attribute::wilson;
use crate::causes::Weight;
use pagewise_model::numa::{MemoryNodes, OnNode, ProcessOnNodes};
use pagewise_model::profile::Profile;
use pagewise_model::units::Estimate;
use std::collections::BTreeMap;

/// With fewer samples of a process its shares are too imprecise (see `account`).
const FEWEST: f64 = 30.0;

/// CPU time of a process by node.
#[derive(Default)]
struct Spent {
    all: Weight,
    by_node: BTreeMap<u32, f64>,
}

/// What was seen of NUMA nodes, with the CPU time according to samples.
pub(crate) fn with_time(seen: &MemoryNodes, profile: Option<&Profile>) -> MemoryNodes {
    let mut nodes = seen.clone();
    let Some(profile) = profile else {
        return nodes;
    };
    let spent = spent(seen, profile);
    let all: f64 = spent.values().map(|one| one.all.sum).sum();
    for process in &mut nodes.processes {
        let own = spent.get(&process.pid);
        if let Some(own) = own.filter(|own| own.all.effective_samples() >= FEWEST) {
            process.share_of_cpu = Some(own.all.sum / all);
            place(process, own);
        }
    }
    nodes
}

fn spent(seen: &MemoryNodes, profile: &Profile) -> BTreeMap<i32, Spent> {
    let mut spent: BTreeMap<i32, Spent> = BTreeMap::new();
    let Some(event) = cpu_event(profile) else {
        return spent;
    };
    let nodes = seen.nodes.iter();
    let node_of: BTreeMap<u32, u32> = nodes
        .flat_map(|node| node.cpus.iter().map(|cpu| (*cpu, node.id)))
        .collect();
    for sample in profile.samples.iter().filter(|one| one.event == event) {
        let thread = profile.threads.get(sample.thread as usize);
        let node = node_of.get(&u32::from(sample.cpu));
        if let (Some(thread), Some(node)) = (thread, node) {
            let own = spent.entry(thread.pid).or_default();
            own.all.add(sample.weight as f64);
            *own.by_node.entry(*node).or_default() += sample.weight as f64;
        }
    }
    spent
}

fn place(process: &mut ProcessOnNodes, spent: &Spent) {
    let samples = spent.all.effective_samples();
    for node in spent.by_node.keys() {
        if !process.nodes.iter().any(|one| one.node == *node) {
            process.nodes.push(OnNode {
                node: *node,
                ..OnNode::default()
            });
        }
    }
    process.nodes.sort_by_key(|one| one.node);
    let held = process.held().0 as f64;
    // Of each node, what is there but would have to be elsewhere.
    let mut moved = Estimate::default();
    for one in &mut process.nodes {
        let share = spent.by_node.get(&one.node).copied().unwrap_or_default() / spent.all.sum;
        let time = wilson(share, samples);
        one.time = Some(time);
        let here = one.memory.0 as f64 / held;
        moved.value += (here - time.value).max(0.0);
        moved.low += (here - time.high).max(0.0);
        moved.high += (here - time.low).max(0.0);
    }
    moved.high = moved.high.min(1.0);
    process.misplaced = (held > 0.0).then_some(moved);
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagewise_model::numa::MemoryNode;
    use pagewise_model::profile::{
        NO_CPU, NodeId, ProfileEvent, ProfileSample, ProfileThread, WeightUnit,
    };
    use pagewise_model::units::Bytes;

    /// Nodes with two CPUs each; the last has memory alone.
    fn machine(processes: &[(i32, &[u64])], nodes: u32) -> MemoryNodes {
        let node = |id: u32| MemoryNode {
            id,
            cpus: if id + 1 < nodes {
                vec![2 * id, 2 * id + 1]
            } else {
                Vec::new()
            },
            ..MemoryNode::default()
        };
        let process = |&(pid, memory): &(i32, &[u64])| ProcessOnNodes {
            pid,
            nodes: (0..)
                .zip(memory)
                .filter(|(_, memory)| **memory > 0)
                .map(|(node, memory)| OnNode {
                    node,
                    memory: Bytes(memory << 20),
                    ..OnNode::default()
                })
                .collect(),
            ..ProcessOnNodes::default()
        };
        MemoryNodes {
            nodes: (0..nodes).map(node).collect(),
            processes: processes.iter().map(process).collect(),
            ..MemoryNodes::default()
        }
    }

    /// Samples of processes on CPUs, so many of each.
    fn profile(samples: &[(i32, u16, usize)]) -> Profile {
        let mut profile = Profile {
            events: vec![ProfileEvent {
                name: "cpu-clock".into(),
                unit: WeightUnit::Nanoseconds,
                frequency: None,
            }],
            ..Profile::default()
        };
        for (thread, &(pid, cpu, count)) in (0..).zip(samples) {
            profile.threads.push(ProfileThread {
                pid,
                tid: pid,
                comm: "it".into(),
                cgroup: "".into(),
            });
            for _ in 0..count {
                profile.samples.push(ProfileSample {
                    time: 0,
                    thread,
                    cpu,
                    event: 0,
                    weight: 1_000_000,
                    stack: NodeId::ROOT,
                });
            }
        }
        profile
    }

    fn misplaced(memory: &[u64], samples: &[(i32, u16, usize)]) -> Estimate {
        let seen = machine(&[(7, memory)], 5);
        let placed = with_time(&seen, Some(&profile(samples)));
        placed.processes[0].misplaced.expect("there are samples")
    }

    #[test]
    fn memory_that_is_distributed_as_cpu_time_is_in_its_place() {
        assert!(misplaced(&[0, 100], &[(7, 2, 500), (7, 3, 500)]).low < 1e-9);
        let everywhere = [(7, 0, 250), (7, 2, 250), (7, 4, 250), (7, 6, 250)];
        assert!(misplaced(&[25, 25, 25, 25], &everywhere).value < 1e-9);
    }

    #[test]
    fn what_would_have_to_move_is_misplaced() {
        let all = misplaced(&[100, 0], &[(7, 2, 1000)]);
        assert!((all.value - 1.0).abs() < 1e-9 && all.low > 0.99, "{all:?}");
        // First touched by one thread, used by four on as many nodes.
        let everywhere = [(7, 0, 250), (7, 2, 250), (7, 4, 250), (7, 6, 250)];
        let one = misplaced(&[100, 0, 0, 0], &everywhere);
        assert!((one.value - 0.75).abs() < 1e-9, "{one:?}");
        assert!(
            one.low > 0.7 && one.low < 0.75 && one.high > 0.75,
            "{one:?}"
        );
        // Spread over two nodes, used on one.
        let half = misplaced(&[50, 50], &[(7, 0, 1000)]);
        assert!((half.value - 0.5).abs() < 1e-9, "{half:?}");
        // On a node without CPUs.
        assert!(misplaced(&[0, 0, 0, 0, 100], &[(7, 0, 1000)]).low > 0.99);
    }

    #[test]
    fn without_samples_nothing_is_said_of_time() {
        let seen = machine(&[(7, &[100, 0]), (8, &[0, 100])], 3);
        assert_eq!(with_time(&seen, None), seen);
        let few = with_time(&seen, Some(&profile(&[(7, 0, 29), (8, 0, 300)])));
        assert_eq!(few.processes[0], seen.processes[0]);
        let share = few.processes[1].share_of_cpu.expect("of all samples");
        assert!((share - 300.0 / 329.0).abs() < 1e-9);
        assert_eq!(few.processes[1].mostly_on().map(|(node, _)| node), Some(0));
        let without_cpus = with_time(&seen, Some(&profile(&[(7, NO_CPU, 300)])));
        assert_eq!(without_cpus, seen);
    }
}
