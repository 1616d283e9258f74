//! The texts about profiles match their schema and read well.

use pagewise_model::answer::{Document, Subject};
use pagewise_model::findings::Cause;
use pagewise_model::findings::{Diagnosis, Severity};
use pagewise_model::loss::{LossKind, Losses};
use pagewise_model::profile::{FrameKind, WeightUnit};
use pagewise_model::profile_diff::{
    Change, CounterChange, DiffNode, Measure, ProfileDiff, StackChange, Weighed,
};
use pagewise_model::profile_findings::{
    Burst, CounterRate, CpuShare, EventProfile, FunctionShare, ProcessShare, ProfileFindings,
    ProfileSummary, StackShare, UnknownShare,
};
use pagewise_model::run::RunCost;
use pagewise_model::run_diff::{CauseChange, FigureChange, Quantity, RunDiff};
use pagewise_model::side::{SettingChange, Side};
use pagewise_model::symbol::Unnamed;
use pagewise_model::units::{Estimate, Nanos};
use pagewise_report::text::Style;
use serde_json::Value;

mod checker;

const HOSTILE: &str = "evil</script>\u{1b}[31m\u{202e}";
const PLAIN: Style = Style {
    color: false,
    unicode: true,
};

fn findings() -> ProfileFindings {
    let mut losses = Losses::default();
    losses.add(LossKind::RingOverrun, 12);
    let summary = ProfileSummary {
        span: Nanos(10_000_000_000),
        events: vec![EventProfile {
            name: "cpu-clock".into(),
            unit: WeightUnit::Nanoseconds,
            frequency: Some(99),
            samples: 990,
            weight: 8_000_000_000,
            idle: 2_000_000_000,
            functions: vec![FunctionShare {
                name: HOSTILE.into(),
                module: "[kernel]".into(),
                kind: FrameKind::Kernel,
                own: 960_000_000,
                total: 4_000_000_000,
            }],
            stacks: vec![StackShare {
                frames: vec!["main".into(), HOSTILE.into()],
                weight: 960_000_000,
            }],
            processes: vec![
                ProcessShare {
                    pid: 7,
                    comm: "fio".into(),
                    threads: 2,
                    weight: 7_000_000_000,
                },
                ProcessShare {
                    pid: 8,
                    comm: "kworker/0:1".into(),
                    threads: 1,
                    weight: 1_000_000_000,
                },
            ],
            cgroups: vec![],
            cpus: vec![CpuShare {
                cpu: 0,
                weight: 8_000_000_000,
            }],
            burst: Some(Burst {
                from: Nanos(4_000_000_000),
                to: Nanos(5_000_000_000),
                weight: 1_000_000_000,
                usual: 500_000_000,
                function: "copy".into(),
                share: 0.9,
                share_elsewhere: 0.1,
            }),
        }],
        counters: vec![
            CounterRate {
                name: "cycles".into(),
                total: Some(3e10),
                rate: 3e9,
                counted: 0.66,
            },
            CounterRate {
                name: "instructions per cycle".into(),
                total: None,
                rate: 0.8,
                counted: 0.66,
            },
        ],
        unknown: vec![UnknownShare {
            reason: Unnamed::NoMapping,
            module: String::new(),
            touched: 0.2,
            own: 0.0,
            remedy: "Record with --call-graph dwarf.".into(),
        }],
        own_cost: Some(Nanos(3_000_000)),
    };
    let headline = "The I/O scheduler takes 12.0 % of CPU time on the way to the device";
    let command = vec!["fio".into(), "--hipri".into()];
    let mut found = Document::new(summary)
        .about(Subject::of_command(command))
        .with_verdict(headline)
        .with_notes(vec!["a note".into()]);
    found.host.hostname = "db1".into();
    found.losses = losses;
    found.diagnoses = vec![Diagnosis {
        headline: headline.into(),
        explanation: "Each request passes it.".into(),
        evidence: vec!["block.vda.scheduler = kyber".into()],
        share_of_cpu: Some(Estimate::exact(0.12)),
        ..Diagnosis::named("profile.io_scheduler", Severity::Costly)
    }];
    found
}

fn difference() -> Document<ProfileDiff> {
    let change = Estimate {
        value: 0.12,
        low: 0.10,
        high: 0.14,
    };
    let side = |name: &str| Side {
        name: name.into(),
        subject: Subject::default(),
        host: "db1".into(),
        sums: Weighed {
            samples: 990,
            weight: 8_000_000_000,
            unit: Some(WeightUnit::Nanoseconds),
            span: Nanos(10_000_000_000),
            cpus: 2,
        },
    };
    let diff = ProfileDiff {
        a: side("before"),
        b: side("after"),
        event: "cpu-clock".into(),
        slowdown: None,
        measure: Measure::CpusInUse,
        block: Nanos(1_000_000_000),
        blocks: (10, 10),
        run: None,
        functions: vec![Change {
            name: "kyber_limit_depth".into(),
            module: "[kernel]".into(),
            kind: FrameKind::Kernel,
            unnamed: None,
            a: 0.02,
            b: 0.14,
            own: (0.01, 0.1),
            change,
            p_adjusted: 0.001,
            significant: true,
        }],
        stacks: vec![StackChange {
            frames: vec!["main".into(), HOSTILE.into()],
            a: 0.02,
            b: 0.14,
            change,
            p_adjusted: 0.001,
            significant: true,
        }],
        detectable: 0.03,
        tree: vec![DiffNode {
            parent: 0,
            name: "all".into(),
            module: String::new(),
            a: 1.0,
            b: 1.2,
        }],
        unknown: Vec::new(),
        settings: vec![
            SettingChange {
                name: "block.vda.scheduler".into(),
                a: Some("none".into()),
                b: Some("kyber".into()),
                touches: vec!["kyber_limit_depth".into()],
                reason: "Each request passes it.".into(),
            },
            SettingChange {
                name: "vm.x".into(),
                a: None,
                b: Some("1".into()),
                touches: Vec::new(),
                reason: String::new(),
            },
        ],
        counters: vec![CounterChange {
            name: "cycles".into(),
            a: 3e9,
            b: 4e9,
        }],
    };
    let grew = "kyber_limit_depth grew in after: 14.0 % of a CPU against 2.0 % of a CPU.";
    let mut found = Document::new(diff)
        .with_verdict(format!("{} {grew}", runs().verdict))
        .with_notes(vec!["a note".into()]);
    found.run = Some(runs().evidence);
    found
}

/// Two runs, one of which churns.
fn runs() -> Document<RunDiff> {
    let side = |name: &str, system: u64, minor_faults: u64| Side {
        name: name.into(),
        subject: Subject::of_command(vec!["./churn".into()]),
        host: "h".into(),
        sums: RunCost {
            system: Nanos(system),
            minor_faults,
            ..RunCost::default()
        },
    };
    let diff = RunDiff {
        a: side("before", 2_000_000_000, 614_470),
        b: side("after", 80_000_000, 10_307),
        figures: vec![
            FigureChange {
                quantity: Quantity::CpuTime,
                a: 2e9,
                b: 8e7,
                differs: true,
            },
            FigureChange {
                quantity: Quantity::PeakMemory,
                a: 4e7,
                b: 4e7,
                differs: false,
            },
        ],
        causes: vec![CauseChange {
            cause: Cause::RefaultAfterMunmap,
            label: Cause::RefaultAfterMunmap.label().into(),
            a: Estimate::exact(603_356.0),
            b: Estimate::exact(0.0),
            differs: true,
        }],
        settings: vec![SettingChange {
            name: "environment.GLIBC_TUNABLES".into(),
            a: None,
            b: Some("glibc.malloc.trim_threshold=1".into()),
            touches: Vec::new(),
            reason: String::new(),
        }],
    };
    Document::new(diff).with_verdict("CPU time fell from 2.00 s to 80.0 ms (−96 %).")
}

#[test]
fn two_runs_come_before_their_functions() {
    let text = pagewise_report::text::profile_diff::render(&difference(), 100, PLAIN);
    let place = |part: &str| {
        text.find(part)
            .unwrap_or_else(|| panic!("{part} in\n{text}"))
    };
    assert!(place("CPU time fell from") < place("kyber_limit_depth grew"));
    place("* CPU time");
    place("−96.0 %");
    place("* faults: touched again after munmap");
    let alone = pagewise_report::text::run_diff::render(&runs(), 100, PLAIN);
    assert!(
        alone.contains("environment.GLIBC_TUNABLES: absent in A"),
        "{alone}"
    );
    fits(&pagewise_report::json::to_string(&runs()).unwrap());
}

fn fits(text: &str) {
    let document: Value = serde_json::from_str(text).expect("the output is JSON");
    assert_eq!(checker::errors(&document), [""; 0]);
}

#[test]
fn what_is_printed_fits_the_schemas() {
    fits(&pagewise_report::json::to_string(&findings()).unwrap());
    fits(&pagewise_report::json::to_string(&difference()).unwrap());
}

#[test]
fn the_summary_repeats_nothing_and_hides_controls() {
    let text = pagewise_report::text::profile::render(&findings(), 100, PLAIN);
    let headline = "The I/O scheduler takes 12.0 % of CPU time";
    assert_eq!(text.matches(headline).count(), 1, "{text}");
    let one_line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        "block.vda.scheduler = kyber",
        "CPUs 80 % busy",
        "12 records lost",
        "0.80 instructions per cycle (counted 66 % of the time)",
        "\\u{1b}[31m\\u{202e}",
        "--call-graph dwarf",
    ] {
        assert!(one_line.contains(part), "{part} in\n{text}");
    }
    assert!(!text.contains('\u{1b}') && !text.contains('\u{202e}'));
}

#[test]
fn the_comparison_names_the_growth_and_its_setting() {
    let text = pagewise_report::text::profile_diff::render(&difference(), 100, PLAIN);
    let place = |part: &str| {
        text.find(part)
            .unwrap_or_else(|| panic!("{part} in\n{text}"))
    };
    assert!(place("block.vda.scheduler: none in A, kyber in B") < place("vm.x: absent in A"));
    place("touches kyber_limit_depth");
    place("*  +12.00 % [+10.00, +14.00]");
    place("+33.3 %");
    assert!(!text.contains('\u{1b}') && !text.contains('\u{202e}'));
}
