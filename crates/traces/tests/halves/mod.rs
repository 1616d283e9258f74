//! Traces in two random halves, and changes planted into one of them.
//!
//! Halves are drawn by single faults or by runs of faults; any difference between them is chance.

#![allow(dead_code, reason = "tests and the example each use a part")]

pub use pagewise_formats::function_graph::CallTree;
use pagewise_formats::function_graph::{self, Names, Sink, Summary};
use pagewise_model::answer::Document;
use pagewise_model::fault_diff::{FaultDiff, Finding, Subject};
use pagewise_model::fault_paths::{Calibration, Class};
use pagewise_stats::Random;
use pagewise_traces::fault_paths::{Collector, Criteria, Input, compare, estimate};
use std::fmt::Write;
use std::fs::File;
use std::io;
use std::path::Path;

/// The trees of a trace, to be passed to several collectors.
pub struct Trees {
    pub all: Vec<CallTree>,
    pub summary: Summary,
}

#[derive(Default)]
struct Keep(Vec<CallTree>);

impl Sink for Keep {
    fn tree(&mut self, tree: &CallTree, _names: &Names) {
        self.0.push(tree.clone());
    }
}

/// A packed trace, or its first `most` faults.
pub fn read(path: &Path, most: usize) -> io::Result<Trees> {
    let mut keep = Keep::default();
    let input = zstd::Decoder::new(File::open(path)?)?;
    let summary = function_graph::read(input, &mut keep).map_err(io::Error::other)?;
    keep.0.truncate(most);
    Ok(Trees {
        all: keep.0,
        summary,
    })
}

/// A trace of `faults` faults of three kinds in phases, alternately slow and fast.
pub fn made(faults: usize) -> Trees {
    let mut random = Random::seeded(99);
    let mut text = String::from("# tracer: function_graph\n");
    let (mut now, mut pace, mut phase) = (1_000_000_000_u64, 100, 0);
    for _ in 0..faults {
        if random.below(40) == 0 {
            pace = 80 + random.below(60) as u64;
        }
        if random.below(150) == 0 {
            phase = random.below(3);
        }
        let kind = if random.below(10) < 7 {
            phase
        } else {
            random.below(3)
        };
        now += 20_000;
        fault(&mut text, &mut now, kind, pace, &mut random);
    }
    let mut keep = Keep::default();
    let summary = function_graph::read_bytes(text.as_bytes(), &mut keep);
    Trees {
        all: keep.0,
        summary,
    }
}

fn fault(text: &mut String, now: &mut u64, kind: usize, pace: u64, random: &mut Random) {
    let calls: &[(&str, u64)] = match kind {
        0 => &[
            ("vma_alloc_folio", 5_000),
            ("__mem_cgroup_charge", 900),
            ("_raw_spin_lock", 60),
            ("page_add_new_anon_rmap", 800),
            ("lru_cache_add", 700),
        ],
        1 => &[("filemap_map_pages", 4_000), ("_raw_spin_lock", 60)],
        _ => &[("do_wp_page", 300), ("ptep_set_access_flags", 500)],
    };
    let _ = writeln!(
        text,
        "{} |   0)     task-7     |               |  handle_mm_fault() {{",
        time(*now)
    );
    let mut total = 1_500;
    for (name, usual) in calls {
        // Occasionally a call is slow, as on a real machine.
        let slow = if random.below(60) == 0 {
            3 + random.below(4) as u64
        } else {
            1
        };
        let own = *usual * pace / 100 * slow + random.below(200) as u64 + 670;
        let _ = writeln!(
            text,
            "{} |   0)     task-7     | {}.{:03} us    |    {name}();",
            time(*now + total),
            own / 1000,
            own % 1000
        );
        total += own + 670;
    }
    let _ = writeln!(
        text,
        "{} |   0)     task-7     | {}.{:03} us    |  }} /* handle_mm_fault */",
        time(*now + total),
        total / 1000,
        total % 1000
    );
    *now += total;
}

fn time(ns: u64) -> String {
    format!("{}.{:06}", ns / 1_000_000_000, ns % 1_000_000_000 / 1000)
}

/// All of a trace.
pub fn collected(trees: &Trees) -> Collector {
    let mut all = Collector::for_comparison();
    for tree in &trees.all {
        all.tree(tree, &trees.summary.names);
    }
    all
}

/// Two collectors, to which trees are assigned at random, in runs of `run` trees.
pub fn halves(trees: &Trees, run: usize, seed: u64) -> [Collector; 2] {
    let mut random = Random::seeded(seed);
    let mut sides = [Collector::for_comparison(), Collector::for_comparison()];
    let mut side = 0;
    for (at, tree) in trees.all.iter().enumerate() {
        if at % run == 0 {
            side = random.below(2);
        }
        sides[side].tree(tree, &trees.summary.names);
    }
    sides
}

pub fn diff(both: &[Collector; 2], summary: &Summary, resamples: u32) -> Document<FaultDiff> {
    let costs = [&both[0], &both[1]].map(estimate);
    diff_at(both, summary, costs, resamples)
}

/// The comparison with given costs of the tracer.
pub fn diff_at(
    [a, b]: &[Collector; 2],
    summary: &Summary,
    costs: [Calibration; 2],
    resamples: u32,
) -> Document<FaultDiff> {
    let input = |name, collector, calibration| Input {
        name,
        label: name,
        collector,
        summary,
        calibration,
    };
    let criteria = Criteria {
        resamples,
        ..Criteria::default()
    };
    compare(input("a", a, costs[0]), input("b", b, costs[1]), criteria)
}

/// A change to some of the faults of one half.
#[derive(Clone, Copy, Debug)]
pub enum Change {
    /// A share of the faults takes this much longer, ns.
    Slower(f64, u64),
    /// A share of the faults reads from a device.
    DeviceReads(f64),
    /// A function's self time, without the tracer's cost of 1.34 µs per call, grows by a fraction.
    Function(&'static str, f64),
    /// A share of the faults makes an additional call, ns long, that no other fault makes.
    NewPath(f64, u64),
    /// One call of a function takes this much longer, ns, in a share of all faults.
    SlowCalls(&'static str, f64, u64),
}

impl Change {
    pub fn apply(self, trees: &mut Trees, random: &mut Random) {
        let chosen = |random: &mut Random, share: f64| random.below(10_000) as f64 <= share * 1e4;
        let share = match self {
            Self::SlowCalls(function, share, _) => share / calling(trees, function),
            _ => 0.0,
        };
        let names = &mut trees.summary.names;
        let [fault, read_ahead, new] = ["__do_fault", "do_sync_mmap_readahead", "new_call"]
            .map(|name| names.intern(name.as_bytes()).0);
        for tree in &mut trees.all {
            match self {
                Self::Slower(share, ns) if chosen(random, share) => longer(tree, 0, ns),
                Self::DeviceReads(share) if chosen(random, share) => {
                    tree.nodes.truncate(1);
                    tree.nodes[0].end = 1;
                    tree.nodes[0].children_ns = 0;
                    tree.nodes[0].span.ns = 3_000;
                    call(tree, fault, 1_000);
                    call(tree, read_ahead, 100_000 + random.below(300_000) as u64);
                }
                Self::SlowCalls(function, _, ns) => {
                    let name = name_of(names, function);
                    let found = tree.nodes.iter().position(|node| node.name == name);
                    if let Some(at) = found
                        && chosen(random, share)
                    {
                        longer(tree, at, ns);
                    }
                }
                Self::NewPath(share, ns) if chosen(random, share) => call(tree, new, ns),
                Self::Function(function, part) => {
                    let name = name_of(names, function);
                    for at in 0..tree.nodes.len() {
                        let node = &tree.nodes[at];
                        if node.name == name {
                            let calls = tree.nodes[at + 1..node.end as usize].iter();
                            let calls = calls.filter(|n| n.depth == node.depth + 1).count() as u64;
                            let own = node.span.ns - node.children_ns;
                            let own = own.saturating_sub(670 * (1 + calls));
                            longer(tree, at, part_of(own, part));
                        }
                    }
                }
                _ => {}
            }
        }
    }

    /// Whether a comparison names the planted change.
    pub fn is_named(self, diff: &FaultDiff) -> bool {
        let has = |test: &dyn Fn(&Finding) -> bool| diff.findings.iter().any(test);
        match self {
            Self::Slower(..) => {
                has(&|f| (Subject::Mean..=Subject::SamePathTail).contains(&f.subject))
            }
            Self::DeviceReads(_) => {
                has(&|f| f.subject == Subject::ClassShare && f.class == Some(Class::FileReadMajor))
            }
            Self::Function(name, _) | Self::SlowCalls(name, ..) => {
                has(&|f| f.subject >= Subject::FunctionTime && f.name.as_deref() == Some(name))
            }
            Self::NewPath(..) => has(&|f| match f.subject {
                Subject::PathShare => f.name.as_deref().is_some_and(|n| n.contains("new_call")),
                subject => {
                    subject >= Subject::FunctionTime && f.name.as_deref() == Some("new_call")
                }
            }),
        }
    }
}

/// Makes a call, and all its callers, longer.
pub fn longer(tree: &mut CallTree, at: usize, ns: u64) {
    for around in 0..=at {
        if tree.nodes[around].end as usize > at {
            tree.nodes[around].span.ns += ns;
            if around < at {
                tree.nodes[around].children_ns += ns;
            }
        }
    }
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "times, not negative"
)]
fn part_of(ns: u64, part: f64) -> u64 {
    (ns as f64 * part).round() as u64
}

/// Adds a call at the end of the fault, with its tracing cost.
fn call(tree: &mut CallTree, name: u32, ns: u64) {
    let end = u32::try_from(tree.nodes.len() + 1).expect("few calls");
    let mut node = tree.nodes[0];
    (node.name, node.end, node.depth) = (name, end, 1);
    (node.span.ns, node.children_ns) = (ns + 670, 0);
    tree.nodes.push(node);
    tree.nodes[0].end = end;
    tree.nodes[0].span.ns += ns + 1340;
    tree.nodes[0].children_ns += ns + 670;
}

/// The number of a function's name, which the trace must contain.
pub fn name_of(names: &Names, function: &str) -> u32 {
    names.find(function.as_bytes()).expect("met").0
}

/// The share of the faults that call a function.
fn calling(trees: &Trees, function: &str) -> f64 {
    let name = name_of(&trees.summary.names, function);
    let calls = |tree: &&CallTree| tree.nodes.iter().any(|node| node.name == name);
    trees.all.iter().filter(calls).count() as f64 / trees.all.len() as f64
}

/// Compares a random half with the other one, into which a change is planted.
pub fn planted(
    plain: &Trees,
    changed: &mut Trees,
    change: Change,
    seed: u64,
) -> Document<FaultDiff> {
    changed.all.clone_from(&plain.all);
    change.apply(changed, &mut Random::seeded(seed + 77));
    let [a, _] = halves(plain, 10, seed);
    let [_, b] = halves(changed, 10, seed);
    diff(&[a, b], &changed.summary, 0)
}
