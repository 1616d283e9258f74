//! Comparisons of faults: a trace with itself, and with a change planted into it.
//!
//! Halves are drawn at random, fault by fault and in runs of faults; what differs between them is
//! chance. Real traces are looked for in `PAGEWISE_TRACES` or `../shared/traces`; a trace made here
//! serves where there are none.

use pagewise_analyse::compare::Random;
use pagewise_analyse::fault_paths::{Collector, Criteria, Input, compare, estimate};
use pagewise_model::fault_diff::{FaultDiff, Finding, Subject};
use pagewise_model::fault_paths::Class;
use pagewise_model::formats::function_graph::{self, CallTree, Names, Sink, Summary};
use std::fmt::Write;
use std::fs::File;
use std::path::{Path, PathBuf};

/// The trees of a trace, to be given to several collectors.
struct Trees {
    all: Vec<CallTree>,
    summary: Summary,
}

#[derive(Default)]
struct Keep(Vec<CallTree>);

impl Sink for Keep {
    fn tree(&mut self, tree: &CallTree, _names: &Names) {
        self.0.push(tree.clone());
    }
}

fn traces() -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let given = std::env::var_os("PAGEWISE_TRACES").map(PathBuf::from);
    let shared = ["../shared/traces", "../../shared/traces"].map(|path| root.join(path));
    let found = given
        .into_iter()
        .chain(shared)
        .find(|folder| folder.is_dir());
    if found.is_none() {
        eprintln!("SKIPPED: no real traces; set PAGEWISE_TRACES to their folder");
    }
    found
}

fn read(path: &Path) -> Trees {
    let file = File::open(path).expect("a trace");
    let mut keep = Keep::default();
    let input = zstd::Decoder::new(file).expect("zstd");
    let summary = function_graph::read(input, &mut keep).expect("readable");
    Trees {
        all: keep.0,
        summary,
    }
}

/// A trace of `faults` faults of three kinds that come in phases, slow and fast by turns.
fn made(faults: usize) -> Trees {
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
        // Now and then a call is slow, as on a real machine.
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

/// Two collectors, each with the trees that fall to it by chance, runs of `run` trees as one.
fn halves(trees: &Trees, run: usize, seed: u64) -> [Collector; 2] {
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

fn diff([a, b]: &[Collector; 2], summary: &Summary, resamples: u32) -> FaultDiff {
    let input = |name, collector| Input {
        name,
        label: name,
        collector,
        summary,
        calibration: estimate(collector),
    };
    let criteria = Criteria {
        resamples,
        ..Criteria::default()
    };
    compare(input("a", a), input("b", b), criteria)
}

/// Random halves of a trace that are called different, of so many.
fn false_findings(trees: &Trees, run: usize, splits: u64) -> usize {
    let mut found = 0;
    for seed in 0..splits {
        let diff = diff(&halves(trees, run, seed), &trees.summary, 0);
        assert_eq!(diff.method.not_tested, None);
        if let Some(first) = diff.findings.first() {
            eprintln!("split {seed}, runs of {run}: {}", first.sentence);
            found += 1;
        }
    }
    found
}

#[test]
fn a_made_trace_does_not_differ_from_itself() {
    let trees = made(1200);
    assert!(false_findings(&trees, 1, 40) + false_findings(&trees, 25, 30) <= 4);
}

/// Real traces, and how far they may be cut.
const REAL: [&str; 6] = [
    "redis-6.1/trace",
    "tpcc-6.1/trace",
    "contend-6.1/contend",
    "workloads-6.1/file",
    "workloads-6.1/swap",
    "workloads-5.10/cow",
];

fn splits() -> Option<u64> {
    std::env::var("PAGEWISE_SPLITS").ok()?.parse().ok()
}

/// `PAGEWISE_SPLITS=36` makes 36 splits of each trace, a third of them in runs of 1, of 10 and of
/// 100 faults; fewer by default, since they take minutes in a debug build.
#[test]
fn real_traces_do_not_differ_from_themselves() {
    let Some(folder) = traces() else { return };
    let splits = splits().unwrap_or(3);
    let (mut found, mut all) = (0, 0);
    for trace in REAL {
        let mut trees = read(&folder.join(format!("{trace}.txt.zst")));
        trees.all.truncate(3000);
        let of = [1, 10, 100].map(|run| false_findings(&trees, run, splits.div_ceil(3)));
        println!("{trace}: {of:?} of {} splits each", splits.div_ceil(3));
        found += of.iter().sum::<usize>() as u64;
        all += 3 * splits.div_ceil(3);
    }
    println!("{found} of {all} comparisons of alike halves claim something");
    // 1 % is stated: a binomial of that has more than this once in a thousand times.
    let most = all as f64 * 0.01 + 3.1 * (all as f64 * 0.01).sqrt() + 1.0;
    assert!(found as f64 <= most, "{found} of {all}");
}

/// A change to some of the faults of one half.
#[derive(Clone, Copy, Debug)]
enum Change {
    /// A share of the faults takes this much longer, ns.
    Slower(f64, u64),
    /// A share of the faults reads from a device.
    DeviceReads(f64),
    /// A function's own time, without the tracer's cost of 1.34 µs a call, grows by a part.
    Function(&'static str, f64),
    /// A share of the faults makes a call, ns long, that no other makes.
    NewPath(f64, u64),
}

impl Change {
    fn apply(self, trees: &mut Trees, random: &mut Random) {
        let chosen = |random: &mut Random, share: f64| random.below(10_000) as f64 <= share * 1e4;
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
                Self::NewPath(share, ns) if chosen(random, share) => call(tree, new, ns),
                Self::Function(function, part) => {
                    let name = trees
                        .summary
                        .names
                        .find(function.as_bytes())
                        .expect("met")
                        .0;
                    for at in 0..tree.nodes.len() {
                        let node = &tree.nodes[at];
                        if node.name == name {
                            let calls = tree.nodes[at + 1..node.end as usize].iter();
                            let calls = calls.filter(|n| n.depth == node.depth + 1).count() as u64;
                            let own = node.span.ns - node.children_ns;
                            let own = own.saturating_sub(670 * (1 + calls));
                            longer(tree, at, (own as f64 * part) as u64);
                        }
                    }
                }
                _ => {}
            }
        }
    }

    /// Whether a comparison says what was changed.
    fn is_named(self, diff: &FaultDiff) -> bool {
        let has = |test: &dyn Fn(&Finding) -> bool| diff.findings.iter().any(test);
        match self {
            Self::Slower(..) => {
                has(&|f| (Subject::Mean..=Subject::SamePathTail).contains(&f.subject))
            }
            Self::DeviceReads(_) => {
                has(&|f| f.subject == Subject::ClassShare && f.class == Some(Class::FileReadMajor))
            }
            Self::Function(name, _) => {
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

/// Makes a call, and all around it, longer.
fn longer(tree: &mut CallTree, at: usize, ns: u64) {
    for around in 0..=at {
        if tree.nodes[around].end as usize > at {
            tree.nodes[around].span.ns += ns;
            if around < at {
                tree.nodes[around].children_ns += ns;
            }
        }
    }
}

/// Adds a call at the end of the fault, with what tracing it costs.
fn call(tree: &mut CallTree, name: u32, ns: u64) {
    let end = tree.nodes.len() as u32 + 1;
    let mut node = tree.nodes[0];
    (node.name, node.end, node.depth) = (name, end, 1);
    (node.span.ns, node.children_ns) = (ns + 670, 0);
    tree.nodes.push(node);
    tree.nodes[0].end = end;
    tree.nodes[0].span.ns += ns + 1340;
    tree.nodes[0].children_ns += ns + 670;
}

/// How many of so many random halves show that one of them was changed: at all, and by name.
fn power(path: Option<&Path>, faults: usize, change: Change, tries: u64) -> [u64; 2] {
    let mut found = [0, 0];
    let trees = || match path {
        Some(path) => {
            let mut trees = read(path);
            trees.all.truncate(faults);
            trees
        }
        None => made(faults),
    };
    let plain = trees();
    for seed in 0..tries {
        let mut changed = Trees {
            all: plain.all.clone(),
            summary: trees().summary,
        };
        change.apply(&mut changed, &mut Random::seeded(seed + 77));
        let [a, _] = halves(&plain, 10, seed);
        let [_, b] = halves(&changed, 10, seed);
        let diff = diff(&[a, b], &changed.summary, 0);
        if seed == 0 {
            println!("{change:?}: {}", diff.headline);
            for finding in diff.findings.iter().take(6) {
                println!("    {}", finding.sentence);
            }
        }
        found[0] += u64::from(!diff.findings.is_empty());
        found[1] += u64::from(change.is_named(&diff));
    }
    println!("{change:?}, {faults} faults: {found:?} of {tries}");
    found
}

#[test]
fn planted_changes_are_found_and_named() {
    let changes = [
        Change::Slower(0.05, 20_000),
        Change::DeviceReads(0.036),
        Change::Function("vma_alloc_folio", 0.5),
        Change::NewPath(0.04, 3_000),
    ];
    for change in changes {
        assert_eq!(power(None, 6000, change, 2), [2, 2], "{change:?}");
    }
}

/// The table of power in docs/notes/correctness.md, with `PAGEWISE_SPLITS=20`.
#[test]
fn planted_changes_are_found_and_named_in_a_real_trace() {
    let (Some(folder), Some(tries)) = (traces(), splits()) else {
        return println!("SKIPPED: set PAGEWISE_SPLITS, and PAGEWISE_TRACES to real traces");
    };
    let path = folder.join("redis-6.1/trace.txt.zst");
    for share in [0.005, 0.01, 0.02, 0.04] {
        power(Some(&path), 4880, Change::Slower(share, 20_000), tries);
        power(Some(&path), 4880, Change::DeviceReads(share), tries);
        power(Some(&path), 4880, Change::NewPath(share, 3_000), tries);
    }
    for faults in [600, 1200] {
        power(Some(&path), faults, Change::DeviceReads(0.04), tries);
    }
    for function in ["get_page_from_freelist", "charge_memcg"] {
        for part in [0.1, 0.2, 0.5, 1.0] {
            power(Some(&path), 4880, Change::Function(function, part), tries);
        }
    }
    let surely = [
        Change::DeviceReads(0.04),
        Change::NewPath(0.04, 3_000),
        Change::Slower(0.04, 20_000),
        Change::Function("get_page_from_freelist", 0.5),
    ];
    for change in surely {
        assert_eq!(power(Some(&path), 4880, change, 5), [5, 5], "{change:?}");
    }
}

/// Makes a call of `function` slower in one fault of a hundred, and all that is around it.
fn plant(trees: &mut Trees, function: &str, ns: u64) -> usize {
    let name = trees
        .summary
        .names
        .find(function.as_bytes())
        .expect("met")
        .0;
    let calls = |tree: &CallTree| tree.nodes.iter().position(|node| node.name == name);
    let eligible = trees
        .all
        .iter()
        .filter(|tree| calls(tree).is_some())
        .count();
    let every = eligible * 100 / trees.all.len();
    let mut random = Random::seeded(4);
    let mut planted = 0;
    for tree in &mut trees.all {
        let Some(at) = calls(tree) else { continue };
        if random.below(every.max(1)) > 0 {
            continue;
        }
        planted += 1;
        longer(tree, at, ns);
    }
    planted
}

/// The halves of a trace, one of them with 5 µs planted into one function of 1 % of its faults.
fn planted(mut trees: Trees, function: &str) -> FaultDiff {
    let [a, _] = halves(&trees, 20, 7);
    let count = plant(&mut trees, function, 5_000);
    let [_, b] = halves(&trees, 20, 7);
    println!("{function}: planted into {count} faults of both halves");
    diff(&[a, b], &trees.summary, 100)
}

fn is_named(diff: &FaultDiff, function: &str) {
    for finding in &diff.findings {
        println!("  {:?} {}", finding.test, finding.sentence);
    }
    let named = diff.findings.iter().any(|finding| {
        let subject =
            [Subject::FunctionSlowCalls, Subject::FunctionTime].contains(&finding.subject);
        subject && finding.name.as_deref() == Some(function)
    });
    assert!(named, "{function}");
    let others = diff.findings.iter().filter(|finding| {
        let of_function = finding.subject >= Subject::FunctionTime;
        of_function && finding.name.as_deref() != Some(function)
    });
    assert_eq!(others.count(), 0, "only {function} was changed");
}

#[test]
fn a_planted_delay_is_found_and_named() {
    for function in ["__mem_cgroup_charge", "page_add_new_anon_rmap"] {
        is_named(&planted(made(6000), function), function);
    }
}

#[test]
fn a_delay_planted_into_a_real_trace_is_found_and_named() {
    let Some(folder) = traces() else { return };
    for function in ["charge_memcg", "__mod_lruvec_state"] {
        let trees = read(&folder.join("redis-6.1/trace.txt.zst"));
        let diff = planted(trees, function);
        is_named(&diff, function);
        let slow = diff
            .functions
            .iter()
            .find(|change| change.function == function);
        let slow = slow.and_then(|change| change.slow).expect("slow calls");
        let longer = slow.slow_ns.b - slow.usual_ns.b;
        assert!((4_000.0..6_500.0).contains(&longer), "{longer}");
    }
}
