//! trace.dat against what `trace-cmd report` (3.1.6) prints of the same files: the text, read by
//! the text parser, must give the same trees. The files are looked for in `PAGEWISE_TRACES` or
//! `../shared/traces`; without them these tests say so and check nothing.

use pagewise_model::formats::function_graph::{self, CallTree, Names, Summary};
use pagewise_model::formats::trace_dat::TraceDat;
use std::path::{Path, PathBuf};

fn folder() -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let given = std::env::var_os("PAGEWISE_TRACES").map(PathBuf::from);
    let found = given
        .into_iter()
        .chain([
            root.join("../shared/traces"),
            root.join("../../shared/traces"),
        ])
        .map(|traces| traces.join("trace-dat-6.1"))
        .find(|folder| folder.is_dir());
    if found.is_none() {
        eprintln!("SKIPPED: no real traces; set PAGEWISE_TRACES to their folder");
    }
    found
}

fn unpacked(path: &Path) -> Vec<u8> {
    let packed = std::fs::read(path).expect("a trace");
    zstd::decode_all(packed.as_slice()).expect("zstd")
}

/// A tree in what text and file have in common: times in microseconds.
type Comparable = (
    Option<u32>,
    Option<u32>,
    Option<u64>,
    Vec<(String, u16, u64)>,
);

fn comparable(tree: &CallTree, names: &Names) -> Comparable {
    let micros = |time: Option<u64>| time.map(|ns| (ns + 500) / 1000);
    let nodes = tree.nodes.iter();
    let nodes = nodes.map(|node| (names.text(node.name()).to_owned(), node.depth, node.span.ns));
    (tree.pid, tree.cpu, micros(tree.start), nodes.collect())
}

fn from_dat(bytes: &[u8]) -> (Vec<Comparable>, Summary) {
    let mut trees = Vec::new();
    let mut sink = |tree: &CallTree, names: &Names| trees.push(comparable(tree, names));
    let summary = TraceDat::parse(bytes).expect("a trace.dat").read(&mut sink);
    (trees, summary)
}

fn from_text(text: &[u8]) -> (Vec<Comparable>, Summary) {
    let mut trees = Vec::new();
    let mut sink = |tree: &CallTree, names: &Names| trees.push(comparable(tree, names));
    let summary = function_graph::read_bytes(text, &mut sink);
    (trees, summary)
}

/// Whether a duration in nanoseconds is what the text has in its precision.
fn same_span(ns: u64, printed: u64) -> bool {
    let tick = match ns {
        0..10_000_000 => 1,
        10_000_000..100_000_000 => 10,
        100_000_000..1_000_000_000 => 100,
        _ => 1000,
    };
    ns / tick == printed / tick
}

fn assert_same(dat: &Comparable, text: &Comparable) {
    assert_eq!((dat.0, dat.1, dat.2), (text.0, text.1, text.2));
    assert_eq!(dat.3.len(), text.3.len(), "{dat:?}\n{text:?}");
    for (a, b) in dat.3.iter().zip(&text.3) {
        assert_eq!((&a.0, a.1), (&b.0, b.1));
        assert!(same_span(a.2, b.2), "{a:?} {b:?}");
    }
}

/// The first lines that `trace-cmd report` prints of trace.dat.
#[test]
fn names_tasks_times_and_durations_are_those_of_trace_cmd_report() {
    let Some(folder) = folder() else { return };
    let text = std::fs::read(folder.join("report.head")).expect("readable");
    let (printed, _) = from_text(&text);
    let (found, summary) = from_dat(&unpacked(&folder.join("trace.dat.zst")));
    assert!(printed.len() > 10, "{}", printed.len());
    for (dat, text) in found.iter().zip(&printed) {
        assert_same(dat, text);
    }
    // `entries` of the option CPUSTAT, and the calls of the whole of trace-cmd's text.
    assert_eq!(
        (summary.counts.lines, summary.counts.calls),
        (369_112, 181_434)
    );
    assert_eq!(found.len(), 2290);
    assert!(summary.incomplete.is_empty());
    assert_eq!(summary.counts.unnamed_functions, 0);
}

#[test]
fn version_6_is_read_too() {
    let Some(folder) = folder() else { return };
    let (found, summary) = from_dat(&unpacked(&folder.join("v6.dat.zst")));
    assert_eq!(
        (summary.counts.lines, summary.counts.calls),
        (99_976, 49_988)
    );
    assert_eq!(found.len(), 709);
    assert!(summary.incomplete.is_empty());
}

/// Calls around the gaps are left out. There is one gap more than trace-cmd 3.1.6 prints: it has
/// the leaf `policy_nodemask()` at 154.540415 from the begin before a gap and an end behind it,
/// and does not notice the 2.3 ms between, so that its text has a whole call there.
#[test]
fn lost_records_are_counted() {
    let Some(folder) = folder() else { return };
    let (found, summary) = from_dat(&unpacked(&folder.join("lost.dat.zst")));
    assert_eq!(summary.counts.calls, 42_716);
    assert_eq!(
        (summary.counts.losses, summary.counts.lost_events),
        (39, 42_234)
    );
    let left_out: u64 = summary.incomplete.values().sum();
    assert!(left_out > 0 && left_out <= 2 * 39, "{left_out}");
    assert_eq!(found.len(), 463);
}

/// With the tool at hand, every tree of every file is held to its text.
#[test]
fn the_whole_files_agree_with_trace_cmd() {
    let Some(folder) = folder() else { return };
    for name in ["trace", "v6"] {
        let bytes = unpacked(&folder.join(format!("{name}.dat.zst")));
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), &bytes).expect("written");
        let mut tool = std::process::Command::new("trace-cmd");
        let Ok(report) = tool.args(["report", "-i"]).arg(file.path()).output() else {
            eprintln!("SKIPPED: no trace-cmd here");
            return;
        };
        let (printed, of_text) = from_text(&report.stdout);
        let (found, of_dat) = from_dat(&bytes);
        assert_eq!(found.len(), printed.len(), "{name}");
        assert_eq!(of_dat.incomplete, of_text.incomplete);
        for (dat, text) in found.iter().zip(&printed) {
            assert_same(dat, text);
        }
    }
}

/// Cut anywhere, a file is refused with the place, or read as far as it goes.
#[test]
fn a_cut_file_is_refused_or_read_as_far_as_it_goes() {
    let Some(folder) = folder() else { return };
    for name in ["v6", "lost"] {
        let bytes = unpacked(&folder.join(format!("{name}.dat.zst")));
        let (whole, _) = from_dat(&bytes);
        let early = (0..200).map(|at| at * 7);
        let ends = early.chain((0..40).map(|i| bytes.len() - 1 - i * i * 331));
        for end in ends {
            let mut trees = Vec::new();
            let mut sink = |tree: &CallTree, names: &Names| trees.push(comparable(tree, names));
            let Ok(dat) = TraceDat::parse(&bytes[..end]) else {
                continue;
            };
            let counts = dat.read(&mut sink).counts;
            // Beside what is needed there is the unused end of a last page, and of version 7 what
            // follows the records.
            let all_there = trees.len() == whole.len();
            assert!(all_there || counts.missing_bytes > 0, "{name} {end}");
            assert_eq!(trees, whole[..trees.len()], "{name} {end}");
        }
    }
}
