//! Classes, time splits and the probe effect on real traces of three kernels.

#[path = "../../../tests/traces.rs"]
mod traces;

use pagewise_formats::function_graph::{self, Summary};
use pagewise_traces::fault_paths::{
    Calibration, Class, Collector, FaultPaths, Latency, Source, analyse, calibrate, estimate,
};
use std::fs::File;
use std::io::Read;
use std::path::Path;

fn collect(path: &Path) -> (Collector, Summary) {
    let file = File::open(path).expect("a trace");
    let input: Box<dyn Read> = match path.extension() {
        Some(zst) if zst == "zst" => Box::new(zstd::Decoder::new(file).expect("zstd")),
        _ => Box::new(file),
    };
    let mut collector = Collector::default();
    let summary = function_graph::read(input, &mut collector).expect("readable");
    (collector, summary)
}

fn report(path: &Path) -> FaultPaths {
    let (collector, summary) = collect(path);
    analyse(&collector, &summary, estimate(&collector))
}

fn count(report: &FaultPaths, class: Class) -> u64 {
    let found = report.classes.iter().find(|found| found.class == class);
    found.map_or(0, |found| found.faults)
}

fn mix(report: &FaultPaths) -> String {
    let each = report
        .classes
        .iter()
        .map(|c| format!("{:?} {}", c.class, c.faults));
    each.collect::<Vec<_>>().join(", ")
}

#[test]
fn the_main_class_of_each_workload() {
    let all = traces::all();
    let found = |trace: &str, class, of_whole, of_cut| {
        for traces in &all {
            let report = report(&traces.file(&format!("{trace}.txt")));
            println!("{trace}: {}", mix(&report));
            let least = traces.expect(of_whole, of_cut);
            assert!(count(&report, class) >= least, "{trace} {class:?}");
            assert_eq!(count(&report, Class::Unclassified), 0, "{trace}");
        }
    };
    for (trace, class, of_whole, of_cut) in [
        ("workloads-6.1/anon", Class::Anonymous, 2000, 140),
        ("workloads-6.1/zero", Class::ZeroPage, 1000, 165),
        ("workloads-6.1/zero", Class::WriteZeroPage, 1000, 58),
        ("workloads-6.1/cow", Class::WriteCopy, 1500, 40),
        ("workloads-6.1/cow", Class::WriteReuse, 1500, 60),
        ("workloads-6.1/file", Class::FileShared, 2000, 45),
        ("workloads-6.1/file", Class::FileCow, 2000, 68),
        ("workloads-6.1/shm", Class::FileShared, 1000, 68),
        ("workloads-6.1/swap", Class::SwapIn, 1900, 40),
        ("workloads-6.1/thp", Class::AnonymousHuge, 14, 6),
        ("workloads-5.10/anon", Class::Anonymous, 480, 135),
        ("workloads-5.10/cow", Class::WriteCopy, 410, 55),
        ("workloads-5.10/cow", Class::WriteReuse, 410, 140),
        ("workloads-5.10/file", Class::FileShared, 490, 43),
        ("workloads-5.10/file", Class::FileCow, 490, 84),
        ("workloads-5.10/swap", Class::SwapIn, 450, 37),
        ("workloads-5.10/thp", Class::AnonymousHuge, 13, 3),
        ("redis-6.1/trace", Class::Anonymous, 2000, 900),
        ("redis-6.1/trace", Class::WriteCopy, 700, 250),
        ("tpcc-6.1/trace", Class::Anonymous, 1500, 5),
    ] {
        found(trace, class, of_whole, of_cut);
    }
}

/// According to `grep -c ' clear_huge_page() {'`, 9 huge pages were cleared, 3 in this part of the
/// trace.
#[test]
fn a_huge_page_that_was_only_tried_is_a_small_one() {
    for traces in traces::all() {
        let report = report(&traces.file("redis-6.1/trace.txt"));
        assert_eq!(count(&report, Class::AnonymousHuge), traces.expect(9, 3));
    }
}

#[test]
fn classes_of_6_12() {
    for traces in traces::all() {
        let report = report(&traces.file("formats-6.12/lost.txt"));
        println!("{}", mix(&report));
        assert!(count(&report, Class::Anonymous) >= 12);
        assert!(count(&report, Class::WriteReuse) >= 7);
    }
}

#[test]
fn times_add_up_everywhere() {
    let traces = [
        "redis-6.1/trace",
        "tpcc-6.1/trace",
        "contend-6.1/contend",
        "contend-6.1/fork",
        "workloads-6.1/swap",
        "workloads-5.10/file",
        "workloads-6.1/events",
    ];
    let all = traces::all();
    let of =
        |folder: &traces::Traces| traces.map(|trace| (trace, folder.file(&format!("{trace}.txt"))));
    for (trace, file) in all.iter().flat_map(of) {
        let report = report(&file);
        println!("{trace}: {:?} {:?}", report.conservation, report.split);
        // Real time on two processors: two interrupts can occur within one call's entry.
        let allowed = report.faults / 10_000 * u64::from(trace.starts_with("contend"));
        assert!(report.conservation.violations <= allowed, "{trace}");
        let shares: f64 = report.contributors.iter().map(|c| c.variance_share).sum();
        println!("{trace}: variance shares of the largest: {shares}");
    }
}

/// Mean of the middle nine tenths: the slowest faults of two runs do not correspond.
fn middle(latency: &Latency) -> u64 {
    let (from, to) = (latency.count / 20, latency.count - latency.count / 20);
    let (mut rank, mut sum) = (0, 0);
    for &(low, high, count) in &latency.buckets {
        let part = (rank + count).min(to).saturating_sub(rank.max(from));
        sum += part * (low + (high - low) / 2);
        rank += count;
    }
    sum / (to - from)
}

/// The correction must restore the medians and means of the root-only traces.
#[test]
fn the_correction_brings_back_the_root_only_latency() {
    let all = traces::all();
    let of = |traces| {
        let traces: &traces::Traces = traces;
        let workloads: &[&str] = traces.expect(&["anon", "cow", "zero"], &["anon", "zero"]);
        workloads.iter().map(move |workload| (traces, *workload))
    };
    for (traces, workload) in all.iter().flat_map(of) {
        let file = |kind| traces.file(&format!("probe-effect-6.1/{kind}{workload}.txt"));
        let (full, summary) = collect(&file("full"));
        let (root, root_summary) = collect(&file("f1"));
        let calibration = calibrate(&full, &root).expect("faults in both");
        println!(
            "{workload}: {calibration:?}, own trace: {:?}",
            estimate(&full)
        );
        assert_eq!(calibration.source, Source::RootOnly);
        let full = analyse(&full, &summary, calibration);
        let root = analyse(&root, &root_summary, Calibration::nothing());
        let (a, b) = (&full.latency.corrected, &root.latency.raw);
        println!(
            "  median: raw {} corrected {} root only {}; middle mean: {} {}",
            full.latency.raw.p50_ns,
            a.p50_ns,
            b.p50_ns,
            middle(a),
            middle(b)
        );
        for (got, expected) in [(a.p50_ns, b.p50_ns), (middle(a), middle(b))] {
            assert!(
                got.abs_diff(expected) * 20 <= expected,
                "{workload}: {got} {expected}"
            );
        }
    }
}
