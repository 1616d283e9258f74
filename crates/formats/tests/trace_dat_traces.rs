//! trace.dat against what `trace-cmd report` (3.1.6) prints for the same files: the text, read by
//! the text parser, must give the same trees.

#[macro_use]
#[path = "../../../tests/skipped.rs"]
mod skipped;
#[path = "../../../tests/traces.rs"]
mod traces;

use pagewise_formats::function_graph::{self, CallTree, Names, Summary};
use pagewise_formats::trace_dat::TraceDat;
use std::path::Path;
use traces::Traces;

/// A whole file's bytes, by its name.
fn dat(traces: &Traces, name: &str) -> Vec<u8> {
    unpacked(&traces.file(&format!("trace-dat-6.1/{name}.dat")))
}

fn unpacked(path: &Path) -> Vec<u8> {
    let packed = std::fs::read(path).expect("a trace");
    zstd::decode_all(packed.as_slice()).expect("zstd")
}

/// A tree reduced to what text and file have in common: times in microseconds.
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

/// Whether a duration in nanoseconds matches the text at its precision.
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

/// The output of `trace-cmd report` for trace.dat; for a whole file, its first lines.
#[test]
fn names_and_times_equal_those_of_trace_cmd_report() {
    for traces in traces::all() {
        let text = match traces.whole {
            true => std::fs::read(traces.file("trace-dat-6.1/report.head")).expect("readable"),
            false => unpacked(&traces.file("trace-dat-6.1/report.txt")),
        };
        let (printed, _) = from_text(&text);
        let (found, summary) = from_dat(&dat(&traces, "trace"));
        assert!(printed.len() > 10, "{}", printed.len());
        for (dat, text) in found.iter().zip(&printed) {
            assert_same(dat, text);
        }
        // `entries` of the option CPUSTAT and the calls in all of trace-cmd's text; for the cut
        // file, records and funcgraph_entry from `trace-cmd report -N`.
        let expected = traces.expect((369_112, 181_434), (17_931, 8963));
        assert_eq!((summary.counts.lines, summary.counts.calls), expected);
        assert_eq!(found.len(), traces.expect(2290, 52));
        assert!(summary.incomplete.is_empty() || !traces.whole);
        assert_eq!(summary.counts.unnamed_functions, 0);
    }
}

#[test]
fn version_6_is_read_too() {
    for traces in traces::all() {
        let (found, summary) = from_dat(&dat(&traces, "v6"));
        let expected = traces.expect((99_976, 49_988), (17_950, 8979));
        assert_eq!((summary.counts.lines, summary.counts.calls), expected);
        assert_eq!(found.len(), traces.expect(709, 27));
        assert!(summary.incomplete.is_empty() || !traces.whole);
    }
}

/// Calls around the gaps are left out. In the whole file there is one gap more than trace-cmd 3.1.6
/// prints: it builds the leaf `policy_nodemask()` at 154.540415 from the start before a gap and an
/// end after it, and does not notice the 2.3 ms between, so that its text has a whole call there.
#[test]
fn lost_records_are_counted() {
    for traces in traces::all() {
        let (found, summary) = from_dat(&dat(&traces, "lost"));
        let counts = summary.counts;
        assert_eq!(counts.calls, traces.expect(42_716, 8956));
        let lost = traces.expect((39, 42_234), (13, 14_955));
        assert_eq!((counts.losses, counts.lost_events), lost);
        let left_out: u64 = summary.incomplete.iter().map(|(_, count)| count).sum();
        assert!(left_out > 0 && left_out <= 2 * (lost.0 + 1), "{left_out}");
        // The text of the cut file has 74 closings at the top level; some of them lost their
        // beginning in a gap.
        let least = traces.expect(463, 74 - 2 * 13);
        assert!(
            (least..=traces.expect(463, 74)).contains(&found.len()),
            "{}",
            found.len()
        );
    }
}

/// If the tool is available, every tree of every file is compared with its text.
#[test]
fn the_whole_files_agree_with_trace_cmd() {
    let both = |traces| ["trace", "v6"].map(|name| (name, dat(&traces, name)));
    for (name, bytes) in traces::all().into_iter().flat_map(both) {
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), &bytes).expect("written");
        let mut tool = std::process::Command::new("trace-cmd");
        let Ok(report) = tool.args(["report", "-i"]).arg(file.path()).output() else {
            skipped!("no trace-cmd here");
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

/// Cut anywhere, a file is refused with the offset, or read as far as possible.
#[test]
fn a_cut_file_is_refused_or_read_as_far_as_it_goes() {
    let both = |traces| ["v6", "lost"].map(|name| (name, dat(&traces, name)));
    for (name, bytes) in traces::all().into_iter().flat_map(both) {
        let (whole, _) = from_dat(&bytes);
        let early = (0..200).map(|at| at * 7);
        let late = (0..40).filter_map(|i| (bytes.len() - 1).checked_sub(i * i * 331));
        let ends = early.chain(late);
        for end in ends {
            let mut trees = Vec::new();
            let mut sink = |tree: &CallTree, names: &Names| trees.push(comparable(tree, names));
            let Ok(dat) = TraceDat::parse(&bytes[..end]) else {
                continue;
            };
            let counts = dat.read(&mut sink).counts;
            // Apart from the required data there is the unused end of a last page and, in version
            // 7, what follows the records.
            let all_there = trees.len() == whole.len();
            assert!(all_there || counts.missing_bytes > 0, "{name} {end}");
            assert_eq!(trees, whole[..trees.len()], "{name} {end}");
        }
    }
}
