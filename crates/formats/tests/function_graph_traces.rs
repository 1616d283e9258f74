//! Every real trace is read without an unknown line, and the result is checked against counts taken
//! with other tools.

#[path = "../../../tests/traces.rs"]
mod traces;

use pagewise_formats::function_graph::{self, CallTree, Names, Summary};
use pagewise_model::loss::LossKind;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

fn open(path: &Path) -> Box<dyn Read> {
    let file = File::open(path).expect("a trace");
    if path.extension().is_some_and(|e| e == "zst") {
        return Box::new(zstd::Decoder::new(BufReader::new(file)).expect("zstd"));
    }
    Box::new(BufReader::new(file))
}

/// Parts of the `.head` files were cut with `grep -n`, which added line numbers.
fn without_line_numbers(mut input: Box<dyn Read>) -> Box<dyn Read> {
    let mut text = Vec::new();
    input.read_to_end(&mut text).expect("readable");
    let number_len = |line: &[u8]| {
        let digits = line.iter().take_while(|b| b.is_ascii_digit()).count();
        let is_number = digits > 0 && matches!(line.get(digits), Some(b'-' | b':'));
        if is_number { digits + 1 } else { 0 }
    };
    let lines: Vec<&[u8]> = text
        .split_inclusive(|&b| b == b'\n')
        .filter(|line| *line != b"--\n")
        .map(|line| &line[number_len(line)..])
        .collect();
    Box::new(std::io::Cursor::new(lines.concat()))
}

#[derive(Default, Debug)]
struct Roots {
    trees: u64,
    nodes: u64,
    by_name: BTreeMap<String, u64>,
}

fn roots(path: &Path) -> (Roots, Summary) {
    let mut roots = Roots::default();
    let mut sink = |tree: &CallTree, names: &Names| {
        let root = tree.root().expect("a root");
        assert_eq!(root.end as usize, tree.nodes.len());
        check_nesting(tree);
        roots.trees += 1;
        roots.nodes += u64::from(root.end);
        *roots
            .by_name
            .entry(names.text(root.name()).to_owned())
            .or_default() += 1;
    };
    let name = path.to_string_lossy();
    let input = match name.trim_end_matches(".zst").ends_with(".head") {
        true => without_line_numbers(open(path)),
        false => open(path),
    };
    let summary = function_graph::read(input, &mut sink).expect("readable");
    (roots, summary)
}

fn check_nesting(tree: &CallTree) {
    for (i, node) in tree.nodes.iter().enumerate() {
        let inside = &tree.nodes[i + 1..node.end as usize];
        let nested =
            |child: &function_graph::Node| child.depth > node.depth && child.end <= node.end;
        assert!(inside.iter().all(nested));
    }
}

fn texts(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        let name = entry.file_name().to_string_lossy().into_owned();
        // trace-cmd's text has another form, and its test is in another file.
        let is_text = name.ends_with(".txt.zst") && name != "report.txt.zst"
            || name.trim_end_matches(".zst").ends_with(".head")
            || ["lost.txt", "pipe.txt", "thresh.txt"].contains(&name.as_str());
        if path.is_dir() {
            found.extend(texts(&path));
        } else if is_text {
            found.push(path);
        }
    }
    found.sort();
    found
}

#[test]
fn no_line_of_a_real_trace_is_unknown() {
    for path in traces::all()
        .iter()
        .flat_map(|traces| texts(traces.folder()))
    {
        let (roots, summary) = roots(&path);
        let counts = summary.counts;
        println!(
            "{}: {} trees, {} nodes, {:?}, {:?}",
            path.display(),
            roots.trees,
            roots.nodes,
            summary.incomplete,
            counts
        );
        assert_eq!(counts.unknown_lines, 0, "{}", path.display());
    }
}

/// `zstdcat redis-6.1/trace.txt.zst | grep -c '|  } /\* handle_mm_fault \*/'` and the like.
#[test]
fn faults_of_the_redis_trace() {
    for traces in traces::all() {
        let (roots, summary) = roots(&traces.file("redis-6.1/trace.txt"));
        println!("{roots:?} {:?}", summary.incomplete);
        let faults = traces.expect(4880, 1628);
        assert_eq!(roots.by_name.get("handle_mm_fault"), Some(&faults));
    }
}

#[test]
fn losses_break_calls_and_are_counted() {
    for traces in traces::all() {
        let (_, summary) = roots(&traces.file("formats-6.1/pipe.txt"));
        assert!(summary.counts.losses > 0);
        assert!(summary.incomplete.count(LossKind::LostEvents) > 0);
    }
}
