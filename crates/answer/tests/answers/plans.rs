//! The advice and answers for recorded runs under other conditions: with other allocators, more or
//! less user time, with or without huge pages from the kernel.

use crate::held::holds;
use crate::recordings::analysed;
use pagewise_answer::page_sizes;
use pagewise_answer::plan::{Rules, conclude, proved, trials};
use pagewise_compare::{Criteria, compare};
use pagewise_model::advice::Settings;
use pagewise_model::allocator::{Allocator, AllocatorKind};
use pagewise_model::findings::Findings;
use pagewise_model::proof::{Arm, Proof};
use pagewise_model::recording::{
    FirstTouch, HugePageUse, PageSizesSeen, ProcessPages, Surroundings,
};
use pagewise_model::run::RunCost;
use pagewise_model::units::{Bytes, Nanos};
use serde_json::{Value, json};

const RECORDED: [&str; 16] = [
    "kinds",
    "churn",
    "each",
    "unprivileged",
    "allocator",
    "huge",
    "fork",
    "pipes",
    "sleeps",
    "threads",
    "php",
    "node",
    "spawn",
    "mapped",
    "dontneed",
    "squeezed",
];

fn found(name: &str) -> Findings {
    analysed(name).findings().expect("the rules are right")
}

fn libraries() -> Surroundings {
    let path = |kind: AllocatorKind| (kind, format!("/usr/lib/lib{kind:?}.so"));
    let kinds = [
        AllocatorKind::Jemalloc,
        AllocatorKind::Tcmalloc,
        AllocatorKind::Mimalloc,
    ];
    Surroundings {
        libraries: kinds.map(path).to_vec(),
        own_library: Some("/usr/lib/own.so".to_owned()),
        ..Surroundings::default()
    }
}

fn concluded(findings: Findings, around: &Surroundings) -> (Value, Findings) {
    let rules = Rules::shipped().expect("the rules are right");
    let findings = conclude(findings, &rules, around);
    let message = json!({
        "verdict": findings.verdict,
        "diagnoses": findings.diagnoses,
        "advice": findings.advice,
        "trials": trials(&findings, &rules, around),
    });
    (message, findings)
}

/// Allocators with versions and linkage.
fn allocators() -> Vec<Allocator> {
    use AllocatorKind::*;
    let of = |kind, version: Option<&str>, is_static| Allocator {
        kind,
        version: version.map(str::to_owned),
        evidence: "told".into(),
        settings: Default::default(),
        is_static,
        ..Allocator::default()
    };
    let mut all = vec![
        of(Glibc, Some("2.17"), false),
        of(Glibc, Some("2.26"), false),
        of(Glibc, Some("2.36"), false),
        of(Glibc, Some("2.36"), true),
        of(Glibc, None, false),
    ];
    for kind in [
        Musl, Jemalloc, Tcmalloc, Mimalloc, Go, Jvm, V8, Cpython, Php, Ruby, R, Dotnet, Unknown,
    ] {
        all.extend([of(kind, None, false), of(kind, Some("5.3"), true)]);
    }
    let mut set = of(Jvm, Some("17"), false);
    set.settings.insert("-Xmx".into(), "2g".into());
    set.settings
        .insert("JAVA_TOOL_OPTIONS".into(), "-Xint".into());
    let mut go = of(Go, Some("1.22"), true);
    go.settings.insert("GOGC".into(), "50".into());
    all.extend([set, go]);
    all
}

#[test]
fn of_other_allocators() {
    for name in RECORDED {
        let findings = found(name);
        let message: Vec<Value> = allocators()
            .into_iter()
            .flat_map(|allocator| {
                let mut with = findings.clone();
                with.allocators = vec![allocator];
                [Surroundings::default(), libraries()]
                    .map(|around| concluded(with.clone(), &around).0)
            })
            .collect();
        holds(&format!("{name}-allocators"), &message);
    }
}

#[test]
fn of_more_and_less_time() {
    for name in RECORDED {
        let findings = found(name);
        let mut message = Vec::new();
        for (user, system, wall) in [
            (1.0, 1.0, 1.0),
            (30.0, 1.0, 10.0),
            (0.0, 1.0, 1.0),
            (5.0, 40.0, 40.0),
            (1.0, 1.0, 60.0),
        ] {
            for mode in ["always", "madvise", "never"] {
                let mut with = findings.clone();
                let times =
                    |nanos: Nanos, times: f64| Nanos::from_secs_f64(nanos.as_secs_f64() * times);
                with.cost.user = times(with.cost.user, user);
                with.cost.system = times(with.cost.system, system);
                with.cost.wall = times(with.cost.wall, wall);
                let settings = &mut with.host.settings;
                settings.insert("thp.enabled".into(), format!("[{mode}]"));
                with.huge_pages = (mode != "never").then_some(HugePageUse {
                    held: Bytes(200 << 20),
                    zeros: (mode == "always").then_some(0.7),
                });
                message.push(concluded(with, &libraries()).0);
            }
        }
        holds(&format!("{name}-times"), &message);
    }
}

#[test]
fn of_page_sizes() {
    for name in RECORDED {
        let findings = found(name);
        let mut message = Vec::new();
        for (mode, memory, huge, rss) in [
            ("always", 900_u64, 400_u64, 1_000_u64),
            ("madvise", 900, 0, 1_000),
            ("madvise", 30, 0, 40),
            ("never", 500, 0, 600),
        ] {
            for attached in [None, Some(7)] {
                let seen = PageSizesSeen {
                    enabled: mode.to_owned(),
                    between: vec![(Bytes(65_536), "madvise".to_owned())],
                    process: (memory != 500).then_some(ProcessPages {
                        huge: Bytes(huge << 20),
                        memory: Bytes(memory << 20),
                        growth: Bytes((memory / 10) << 20),
                    }),
                    first_touch: (mode != "always").then(|| FirstTouch {
                        base: vec![400.0, 420.0, 390.0, 410.0, 405.0, 402.0],
                        huge: match mode {
                            "never" => Vec::new(),
                            _ => vec![90.0, 88.0, 93.0, 91.0, 90.0, 92.0],
                        },
                    }),
                    attached,
                    watched: None,
                };
                let mut with = findings.clone();
                with.cost.max_rss = Bytes(rss << 20);
                let note = page_sizes::note(&with, &seen);
                message.push((note, page_sizes::other_size(&with, mode)));
            }
        }
        holds(&format!("{name}-page-sizes"), &message);
    }
}

/// Verdicts after proofs: for each effect and number of pairs, with and without a winner.
#[test]
fn of_proofs() {
    let findings = found("churn");
    let (_, findings) = concluded(findings, &libraries());
    let mut message = Vec::new();
    for name in ["with keep", "huge pages", "no huge pages"] {
        for times in [0.4, 0.97, 1.0, 1.4] {
            for pairs in [1, 4, 8] {
                for is_winner in [false, true] {
                    let runs = |times: f64| -> Vec<RunCost> {
                        let run = |at: u64| RunCost {
                            wall: Nanos((times * 1e9) as u64 + at * 1_000_000),
                            user: Nanos((times * 6e8) as u64 + at * 500_000),
                            system: Nanos((times * 3e8) as u64),
                            minor_faults: (times * times * 100_000.0) as u64,
                            max_rss: Bytes((90e6 / times) as u64),
                            ..RunCost::default()
                        };
                        (0..pairs).map(run).collect()
                    };
                    let (baseline, arm) = (runs(1.0), runs(times));
                    let compared = compare(name, &baseline, &arm, &Criteria::default());
                    let of = |name: &str, runs| Arm {
                        name: name.to_owned(),
                        settings: Settings::default(),
                        runs,
                        failed: None,
                    };
                    let proof = Proof {
                        arms: vec![of("as it is", baseline), of(name, arm)],
                        comparisons: vec![compared.clone()],
                        winner: is_winner.then(|| name.to_owned()),
                        confirmation: is_winner.then_some(compared),
                        summary: "what was proved".to_owned(),
                        notes: Vec::new(),
                    };
                    message.push((
                        page_sizes::verdict(&proof),
                        proved(findings.clone(), proof).verdict,
                    ));
                }
            }
        }
    }
    holds("proofs", &message);
}
