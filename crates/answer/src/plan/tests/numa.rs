//! Memory nodes: what NUMA balancing costs, memory on another node, and when nothing is said of
//! them.

use super::*;
use pagewise_model::advice::Settings;
use pagewise_model::numa::{MemoryNode, MemoryNodes, OnNode, ProcessOnNodes};

const GIB: u64 = 1 << 30;

/// Nodes of 4 CPUs and 64 GiB each.
fn machine(nodes: u32, processes: Vec<ProcessOnNodes>) -> MemoryNodes {
    let node = |id: u32| MemoryNode {
        id,
        cpus: (4 * id..4 * id + 4).collect(),
        memory: Some(Bytes(64 * GIB)),
        ..MemoryNode::default()
    };
    MemoryNodes {
        nodes: (0..nodes).map(node).collect(),
        policy_can_be_set: true,
        processes,
        ..MemoryNodes::default()
    }
}

/// A process with memory (GiB) and shares of its CPU time by node, and what that gives for the share
/// of misplaced memory.
fn process(on: &[(u64, f64)], misplaced: f64) -> ProcessOnNodes {
    let nodes = (0..).zip(on).map(|(node, &(memory, time))| OnNode {
        node,
        memory: Bytes(memory * GIB),
        time: Some(Estimate::exact(time)),
        ..OnNode::default()
    });
    ProcessOnNodes {
        pid: 17,
        name: "server".into(),
        policy: "default".into(),
        nodes: nodes.collect(),
        share_of_cpu: Some(1.0),
        misplaced: Some(Estimate {
            value: misplaced,
            low: misplaced - 0.02,
            high: (misplaced + 0.02).min(1.0),
        }),
    }
}

/// A run of 10 s on one CPU.
fn seen(numa: MemoryNodes) -> Findings {
    let mut findings = run(9_900, 100, 2_000);
    findings.numa = Some(numa);
    findings
}

fn ids(answer: &Findings) -> Vec<&str> {
    answer.diagnoses.iter().map(|one| &*one.id).collect()
}

fn rules(answer: &Findings) -> Vec<&str> {
    answer.advice.iter().map(|one| &*one.rule).collect()
}

/// The arms of a proof: their names and options of numactl.
fn arms(findings: &Findings) -> Vec<(String, String)> {
    let rules = Rules::shipped().expect("shipped rules");
    let trials = crate::plan::trials(findings, &rules, &Surroundings::default());
    let options = |settings: &Settings| match &settings.0[..] {
        [Setting::Numa { options }] => Some(options.clone()),
        _ => None,
    };
    trials
        .iter()
        .filter_map(|one| Some((one.name(), options(&one.settings)?)))
        .collect()
}

fn arm(name: &str, options: &str) -> (String, String) {
    (name.to_owned(), options.to_owned())
}

#[test]
fn remote_memory_has_no_cost_and_is_bound_in_a_proof() {
    let findings = seen(machine(2, vec![process(&[(4, 0.03), (0, 0.97)], 0.97)]));
    assert_eq!(
        arms(&findings),
        [arm("one node", "--cpunodebind=1 --membind=1")]
    );
    let answer = concluded(findings);
    let message = &answer.diagnoses[0];
    assert_eq!(
        (&*message.id, message.severity),
        ("numa.remote", Severity::Costly)
    );
    assert_eq!(
        (message.share_of_cpu, message.share_of_elapsed),
        (None, None)
    );
    assert_eq!(
        message.evidence[0],
        "server (17), 4.00 GiB with policy default: node 0 has 100 % of the memory and 3.0 % of the CPU time; node 1 has 0 % of the memory and 97 % of the CPU time"
    );
    assert!(
        message
            .evidence
            .iter()
            .any(|line| line.contains("only a trial can show it"))
    );
    let best = &answer.advice[0];
    assert_eq!(best.rule, "numa.bind");
    let manual = best.manual.as_deref().unwrap_or_default();
    assert!(
        manual.contains("numactl --cpunodebind=1 --membind=1 COMMAND"),
        "{manual}"
    );
    assert!(manual.contains("taskset -c 4-7 COMMAND"), "{manual}");
    assert!(answer.verdict.contains("'one node'"), "{}", answer.verdict);
    assert!(!answer.verdict.contains('%'), "{}", answer.verdict);
}

#[test]
fn what_no_single_node_holds_is_not_bound_to_one() {
    let large = seen(machine(2, vec![process(&[(60, 0.0), (0, 1.0)], 1.0)]));
    assert_eq!(arms(&large), []);
    assert_eq!(rules(&concluded(large)), ["numa.near"]);
    let mut busy = seen(machine(2, vec![process(&[(4, 0.0), (0, 1.0)], 1.0)]));
    busy.cost.wall = Nanos(2_000_000_000);
    assert_eq!(arms(&busy), [], "five CPUs of four");
    assert_eq!(rules(&concluded(busy)), ["numa.near"]);
}

#[test]
fn memory_that_one_thread_touched_for_all_is_spread() {
    let quarter = [(8, 0.25), (0, 0.25), (0, 0.25), (0, 0.25)];
    let mut findings = seen(machine(4, vec![process(&quarter, 0.75)]));
    findings.cost.wall = Nanos(1_000_000_000);
    assert_eq!(arms(&findings), [arm("interleaved", "--interleave=all")]);
    let answer = concluded(findings.clone());
    assert_eq!(ids(&answer)[0], "numa.one_node");
    assert_eq!(rules(&answer), ["numa.spread"]);
    // Where one node has room for all that runs, that may be better.
    findings.cost.wall = Nanos(10_000_000_000);
    let names: Vec<String> = arms(&findings).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["one node", "interleaved"]);
}

#[test]
fn local_or_placed_memory_gets_no_advice() {
    let numa = |answer: &Findings| ids(answer).iter().any(|id| id.starts_with("numa"));
    let local = seen(machine(2, vec![process(&[(2, 0.5), (2, 0.5)], 0.02)]));
    assert!(!numa(&concluded(local)));
    let mut chosen = process(&[(2, 1.0), (2, 0.0)], 0.5);
    chosen.policy = "interleave:0-1".into();
    assert!(!numa(&concluded(seen(machine(2, vec![chosen])))));
    let mut small = process(&[(1, 0.0), (0, 1.0)], 1.0);
    small.nodes[0].memory = Bytes(32 << 20);
    assert!(!numa(&concluded(seen(machine(2, vec![small])))));
    // A helper with little of the time.
    let mut helper = process(&[(1, 0.0), (0, 1.0)], 1.0);
    helper.share_of_cpu = Some(0.2);
    assert!(!numa(&concluded(seen(machine(2, vec![helper])))));
    // Looked at while half of it was there.
    let mut early = seen(machine(2, vec![process(&[(2, 0.0), (0, 1.0)], 1.0)]));
    early.cost.max_rss = Bytes(4 * GIB);
    assert!(!numa(&concluded(early)));
    let mut unsampled = process(&[(1, 0.0), (0, 1.0)], 1.0);
    (unsampled.misplaced, unsampled.share_of_cpu) = (None, None);
    assert!(!numa(&concluded(seen(machine(2, vec![unsampled])))));
}

#[test]
fn a_launcher_that_may_set_no_policy_tries_none() {
    let mut findings = seen(machine(2, vec![process(&[(4, 0.0), (0, 1.0)], 1.0)]));
    findings.numa.as_mut().expect("nodes").policy_can_be_set = false;
    assert_eq!(arms(&findings), []);
    assert_eq!(rules(&concluded(findings)), ["numa.bind"]);
}

/// A run of 10 s with a tenth of its CPU time in the kernel's NUMA balancing.
fn balanced(share: f64) -> Findings {
    let placed = process(&[(4, 0.5), (4, 0.5)], 0.02);
    let mut findings = run(8_800, 1_200, 2_000);
    findings.numa = Some(machine(2, vec![placed]));
    let numa = findings.numa.as_mut().expect("nodes");
    let counts = [
        ("numa_hint_faults", 900_000),
        ("numa_hint_faults_local", 450_000),
    ];
    numa.balancing = counts.map(|(name, count)| (name.to_owned(), count)).into();
    findings.account.kernel = Estimate::exact(1.2e9);
    findings.account.samples = 3_000;
    findings.account.work = vec![KernelWork {
        id: "numa".into(),
        time: Estimate {
            value: share * 1e10,
            low: share * 0.9e10,
            high: share * 1.1e10,
        },
        in_faults: Estimate::exact(0.0),
    }];
    findings
}

#[test]
fn numa_balancing_has_its_cost_setting_and_price() {
    let mut findings = balanced(0.1);
    // Hinting faults look like those of write protection.
    findings.by_cause = vec![share(Cause::WriteProtect, 800_000.0)];
    let names: Vec<String> = arms(&findings).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["local memory", "one node"]);
    let answer = concluded(findings.clone());
    let message = &answer.diagnoses[0];
    assert_eq!(
        (&*message.id, message.severity),
        ("numa.balancing", Severity::Costly)
    );
    let cost = message.share_of_cpu.expect("by samples");
    assert!((cost.value - 0.1).abs() < 1e-9 && cost.low < 0.1 && cost.high > 0.1);
    assert!(
        message.evidence.iter().any(|line| line
            == "Meanwhile, on the whole machine: 900,000 hinting faults, 450,000 of them on pages of the same node"),
        "{:?}",
        message.evidence
    );
    assert!(
        !ids(&answer).contains(&"write_protect"),
        "{:?}",
        ids(&answer)
    );
    let best = &answer.advice[0];
    assert_eq!(best.rule, "numa.balancing-off");
    assert!(
        best.settings.0.is_empty(),
        "the host's setting is not tried"
    );
    let manual = best.manual.as_deref().unwrap_or_default();
    assert!(
        manual.contains("sysctl kernel.numa_balancing=0"),
        "{manual}"
    );
    assert!(manual.contains("may become slower"), "{manual}");
    // Where hardly any of them are hinting faults, something else protects pages.
    let numa = findings.numa.as_mut().expect("nodes");
    numa.balancing.insert("numa_hint_faults".into(), 100_000);
    assert!(ids(&concluded(findings)).contains(&"write_protect"));
    let little = concluded(balanced(0.03));
    let note = little
        .diagnoses
        .iter()
        .find(|one| one.id == "numa.balancing");
    assert_eq!(note.map(|one| one.severity), Some(Severity::Note));
    assert!(!ids(&concluded(balanced(0.01))).contains(&"numa.balancing"));
}
