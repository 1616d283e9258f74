//! Symptoms of NUMA nodes: what NUMA balancing costs, and memory on other nodes than the threads
//! that use it.
//!
//! The first is a share of the CPU time, by samples. What the second costs is unknown: without
//! counters of memory accesses no one can tell how often memory is reached, and a prediction would be
//! invented. It is told with what was seen, and a proof shows what placing it otherwise brings.

use super::case::{Case, faults_of, plain, share_of_work};
use super::grade::range;
use super::phrases;
use super::symptom::Symptom;
use pagewise_model::findings::{Cause, Findings};
use pagewise_model::numa::{MemoryNode, MemoryNodes, ProcessOnNodes, list};
use pagewise_model::quantity::{count, percent, percent_seen};
use pagewise_model::units::{Bytes, Estimate};

/// The kind of work in `kernel.toml`.
pub(super) const WORK: &str = "numa";
/// Memory on other nodes is told from this share of a program's memory on…
const MISPLACED: f64 = 0.3;
/// … of processes with at least this much, far more than a core's caches hold.
const LEAST_MEMORY: Bytes = Bytes(64 << 20);
/// As what it ranks among other symptoms: as the least that is worth a change. No figure is told.
const RANKS_AS: f64 = 0.05;
/// A process runs on one node if this share of its CPU time was there.
const MOSTLY: f64 = 0.7;
/// Memory that a program may take of a node for binding it there: others need some, too.
const FITS: f64 = 0.8;
/// Memory that was looked at stands for the largest that the program had from this part of it on: with
/// fewer looks, one may be of a moment when half of the threads had filled their memory.
const STANDS_FOR: f64 = 0.6;
/// Most processes in the evidence.
const MOST: usize = 3;

/// A node that holds the program as it was seen, and the one with most of its CPU time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FittingNode {
    pub node: u32,
    /// Its CPUs, as `taskset -c` takes them.
    pub cpus: String,
}

pub(super) fn all(findings: &Findings) -> impl Iterator<Item = Case> {
    let balancing = share_of_work(findings, WORK).map(|cost| Case {
        cost,
        ..plain(findings, Symptom::NumaBalancing, 0.0, &[])
    });
    balancing.into_iter().chain(misplaced(findings))
}

/// Hinting faults are no write protection of a tool: where they are most of these faults, they are
/// told as what NUMA balancing costs.
pub(super) fn of_hinting_faults(findings: &Findings, symptoms: &mut Vec<Case>) {
    let hints = findings
        .numa
        .as_ref()
        .and_then(|numa| numa.balancing.get("numa_hint_faults"));
    let protected = faults_of(findings, &[Cause::WriteProtect]);
    let costs = symptoms
        .iter()
        .any(|one| one.kind == Symptom::NumaBalancing);
    if costs && hints.is_some_and(|hints| *hints as f64 >= 0.5 * protected) {
        symptoms.retain(|one| one.kind != Symptom::WriteProtect);
    }
}

/// Large processes whose memory and time are known, and whose user did not spread it over the nodes,
/// the most misplaced first.
fn placed(numa: &MemoryNodes) -> Vec<&ProcessOnNodes> {
    let spread_by_choice = |one: &&ProcessOnNodes| one.policy.contains("interleave");
    let large = numa
        .processes
        .iter()
        .filter(|one| one.held() >= LEAST_MEMORY);
    let mut placed: Vec<_> = large
        .filter(|one| one.misplaced.is_some() && !spread_by_choice(one))
        .collect();
    placed.sort_by(|a, b| weight(b).total_cmp(&weight(a)));
    placed
}

/// Its misplaced share at least, weighted with its part of the program's time.
fn weight(process: &ProcessOnNodes) -> f64 {
    let misplaced = process.misplaced.map_or(0.0, |share| share.low);
    misplaced * process.share_of_cpu.unwrap_or_default()
}

/// Whether what was seen of one process's memory is most of what it had. Of several, the sizes are not
/// known one by one.
fn stands_for_all(findings: &Findings, numa: &MemoryNodes) -> bool {
    let [one] = numa.processes.as_slice() else {
        return true;
    };
    one.held().0 as f64 >= STANDS_FOR * findings.cost.max_rss.0 as f64
}

fn misplaced(findings: &Findings) -> Option<Case> {
    let numa = findings.numa.as_ref()?;
    let placed = placed(numa);
    let share: f64 = placed.iter().map(|one| weight(one)).sum();
    let is_sure = share >= MISPLACED && stands_for_all(findings, numa);
    let worst = placed.first().filter(|_| is_sure)?;
    let (_, time) = worst.mostly_on()?;
    let kind = match time.value >= MOSTLY {
        true => Symptom::NumaRemote,
        false => Symptom::NumaOneNode,
    };
    Some(Case {
        cost: Estimate::exact(RANKS_AS),
        ..plain(findings, kind, 0.0, &[])
    })
}

/// The node to which the program could be bound: its memory fits there, and its CPUs are as many as
/// the program keeps busy.
pub(super) fn fitting_node(findings: &Findings) -> Option<FittingNode> {
    let numa = findings.numa.as_ref()?;
    let time = |node: &MemoryNode| -> f64 {
        let of = |process: &ProcessOnNodes| {
            let on = process.nodes.iter().find(|one| one.node == node.id);
            let time = on.and_then(|one| one.time).map_or(0.0, |time| time.value);
            time * process.share_of_cpu.unwrap_or_default()
        };
        numa.processes.iter().map(of).sum()
    };
    let most = numa
        .nodes
        .iter()
        .max_by(|a, b| time(a).total_cmp(&time(b)))?;
    let cost = &findings.cost;
    let held: Bytes = numa.processes.iter().map(ProcessOnNodes::held).sum();
    let held = held.max(cost.max_rss).0 as f64;
    let busy = cost.cpu().as_secs_f64() / cost.wall.as_secs_f64().max(1e-9);
    let fits = time(most) > 0.0
        && busy <= most.cpus.len() as f64
        && most
            .memory
            .is_some_and(|memory| held <= FITS * memory.0 as f64);
    fits.then(|| FittingNode {
        node: most.id,
        cpus: list(&most.cpus),
    })
}

/// The figures that show it.
pub(super) fn evidence(findings: &Findings, symptom: &Case) -> Vec<String> {
    let mut lines = Vec::new();
    if symptom.kind == Symptom::NumaBalancing {
        lines.push(phrases::balancing_takes(range(symptom.cost)));
    }
    let Some(numa) = &findings.numa else {
        return lines;
    };
    if symptom.kind == Symptom::NumaBalancing {
        lines.extend(balancing(numa));
    } else {
        lines.extend(placed(numa).into_iter().take(MOST).map(of_process));
        lines.push(phrases::remote_cost_unknown());
    }
    lines.extend(numa.nodes.iter().filter_map(missed));
    lines
}

/// "server (17): 4.00 GiB, of it 98 % on node 0; 93 % of its CPU time (…) on node 1; policy default".
fn of_process(process: &ProcessOnNodes) -> String {
    let held = process.held();
    let on: Vec<String> = process
        .nodes
        .iter()
        .map(|one| (one, one.memory.0 as f64 / held.0.max(1) as f64))
        .filter(|(one, share)| *share >= LEAST_SHARE || is_much(one.time))
        .map(|(one, share)| {
            let time = one
                .time
                .map_or_else(String::new, |time| percent_seen(&time));
            phrases::on_node(one.node, percent(share), time)
        })
        .collect();
    phrases::process_on_nodes(
        &process.name,
        process.pid,
        held,
        on.join("; "),
        &process.policy,
    )
}

/// Smaller shares are left out.
const LEAST_SHARE: f64 = 0.01;

fn is_much(time: Option<Estimate>) -> bool {
    time.is_some_and(|time| time.value >= LEAST_SHARE)
}

/// What the kernel counted, over the whole machine.
fn balancing(numa: &MemoryNodes) -> Option<String> {
    type Sentence = fn(String) -> String;
    let kinds: [(&str, Sentence); 3] = [
        ("numa_hint_faults", phrases::hinting_faults),
        ("numa_hint_faults_local", phrases::hinting_faults_local),
        ("numa_pages_migrated", phrases::pages_moved),
    ];
    let counted = kinds.iter().filter_map(|(name, message)| {
        let grown = numa.balancing.get(*name)?;
        Some(message(count(*grown)))
    });
    let counted: Vec<String> = counted.collect();
    (!counted.is_empty()).then(|| phrases::balancing_counted(counted.join(", ")))
}

/// Pages that a node could not give, so that another did.
fn missed(node: &MemoryNode) -> Option<String> {
    let foreign = node.counters.get("numa_foreign").copied()?;
    (foreign >= WORTH_A_LINE).then(|| phrases::node_was_full(count(foreign), node.id))
}

/// Pages (4 MiB) from which that is worth a line.
const WORTH_A_LINE: u64 = 1_024;
