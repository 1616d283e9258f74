//! Classes, time splits and the probe effect on real traces of three kernels. The traces are
//! looked for in `PAGEWISE_TRACES` or `../shared/traces`; without them these tests say so and
//! check nothing.

use pagewise_analyse::fault_paths::{
    Calibration, Class, Collector, FaultPaths, Latency, Source, analyse, calibrate, estimate,
};
use pagewise_model::formats::function_graph::{self, Summary};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

fn traces() -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let given = std::env::var_os("PAGEWISE_TRACES").map(PathBuf::from);
    let found = given
        .into_iter()
        .chain([
            root.join("../shared/traces"),
            root.join("../../shared/traces"),
        ])
        .find(|folder| folder.is_dir());
    if found.is_none() {
        eprintln!("SKIPPED: no real traces; set PAGEWISE_TRACES to their folder");
    }
    found
}

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
    let Some(folder) = traces() else { return };
    for (trace, class, least) in [
        ("workloads-6.1/anon", Class::Anonymous, 2000),
        ("workloads-6.1/zero", Class::ZeroPage, 1000),
        ("workloads-6.1/zero", Class::WriteZeroPage, 1000),
        ("workloads-6.1/cow", Class::WriteCopy, 1500),
        ("workloads-6.1/cow", Class::WriteReuse, 1500),
        ("workloads-6.1/file", Class::FileShared, 2000),
        ("workloads-6.1/file", Class::FileCow, 2000),
        ("workloads-6.1/shm", Class::FileShared, 1000),
        ("workloads-6.1/swap", Class::SwapIn, 1900),
        ("workloads-6.1/thp", Class::AnonymousHuge, 14),
        ("workloads-5.10/anon", Class::Anonymous, 480),
        ("workloads-5.10/cow", Class::WriteCopy, 410),
        ("workloads-5.10/cow", Class::WriteReuse, 410),
        ("workloads-5.10/file", Class::FileShared, 490),
        ("workloads-5.10/file", Class::FileCow, 490),
        ("workloads-5.10/swap", Class::SwapIn, 450),
        ("workloads-5.10/thp", Class::AnonymousHuge, 13),
        ("redis-6.1/trace", Class::Anonymous, 2000),
        ("redis-6.1/trace", Class::WriteCopy, 700),
        ("tpcc-6.1/trace", Class::Anonymous, 1500),
    ] {
        let report = report(&folder.join(format!("{trace}.txt.zst")));
        println!("{trace}: {}", mix(&report));
        assert!(count(&report, class) >= least, "{trace} {class:?}");
        assert_eq!(count(&report, Class::Unclassified), 0, "{trace}");
    }
}

/// `grep -c ' clear_huge_page() {'` says that 9 huge pages were cleared.
#[test]
fn a_huge_page_that_was_only_tried_is_a_small_one() {
    let Some(folder) = traces() else { return };
    let report = report(&folder.join("redis-6.1/trace.txt.zst"));
    assert_eq!(count(&report, Class::AnonymousHuge), 9);
}

#[test]
fn classes_of_6_12() {
    let Some(folder) = traces() else { return };
    let report = report(&folder.join("formats-6.12/lost.txt"));
    println!("{}", mix(&report));
    assert!(count(&report, Class::Anonymous) >= 12);
    assert!(count(&report, Class::WriteReuse) >= 7);
}

#[test]
fn times_add_up_everywhere() {
    let Some(folder) = traces() else { return };
    for trace in [
        "redis-6.1/trace",
        "tpcc-6.1/trace",
        "contend-6.1/contend",
        "contend-6.1/fork",
        "workloads-6.1/swap",
        "workloads-5.10/file",
        "workloads-6.1/events",
    ] {
        let report = report(&folder.join(format!("{trace}.txt.zst")));
        println!("{trace}: {:?} {:?}", report.conservation, report.split);
        // Real time on two processors: an interrupt can strike twice within one call's entry.
        let allowed = report.faults / 10_000 * u64::from(trace.starts_with("contend"));
        assert!(report.conservation.violations <= allowed, "{trace}");
        let shares: f64 = report.contributors.iter().map(|c| c.variance_share).sum();
        println!("{trace}: variance shares of the largest: {shares}");
    }
}

/// Mean of the middle nine tenths: the slowest faults of two runs are not the same ones.
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

/// The medians and means of the traces with the root alone are what correcting has to bring back.
#[test]
fn the_correction_brings_back_the_root_only_latency() {
    let Some(folder) = traces() else { return };
    for workload in ["anon", "cow", "zero"] {
        let folder = folder.join("probe-effect-6.1");
        let (full, summary) = collect(&folder.join(format!("full{workload}.txt.zst")));
        let (root, root_summary) = collect(&folder.join(format!("f1{workload}.txt.zst")));
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
