//! trace.dat in every supported layout, written here byte by byte: records of old and new kernels,
//! everything that a page can contain, both versions, each packing; cut off and damaged.

mod writer;

use pagewise_formats::function_graph::{CallTree, Names, Summary, Wait};
use pagewise_formats::trace_dat::{ReadError, TraceDat};
use writer::{Kernel, MS, cpus, files, version_6};

/// A tree and the names of its nodes.
type Named = (CallTree, Vec<String>);

fn read(file: &[u8]) -> Result<(Vec<Named>, Summary), ReadError> {
    let mut trees = Vec::new();
    let mut sink = |tree: &CallTree, names: &Names| {
        let of_nodes = tree.nodes.iter();
        let of_nodes = of_nodes.map(|node| names.text(node.name()).to_owned());
        trees.push((tree.clone(), of_nodes.collect()));
    };
    let summary = TraceDat::parse(file)?.read(&mut sink);
    Ok((trees, summary))
}

#[test]
fn every_layout_gives_the_same_calls() {
    for (kernel, kind, file) in files() {
        let (trees, summary) = read(&file).expect("a file");
        let about = format!("{kernel:?} {kind} {:?}", summary.counts);
        let [(slept, names), (whole, _)] = &trees[..] else {
            panic!("{about}: {trees:?}");
        };
        assert_eq!(
            names,
            &["handle_mm_fault", "schedule", "ext4_fault"],
            "{about}"
        );
        assert_eq!((slept.pid, slept.cpu), (Some(7), Some(0)), "{about}");
        let spans: Vec<u64> = slept.nodes.iter().map(|node| node.span.ns).collect();
        assert_eq!(spans, [301 * MS, 300 * MS, 50], "{about}");
        let off = &slept.off_cpu[..];
        assert_eq!(off.len(), 1, "{about}");
        let expected = (1, Wait::Blocked, 300 * MS - 2000);
        assert_eq!((off[0].node, off[0].wait, off[0].ns), expected, "{about}");
        assert_eq!(
            (whole.pid, whole.nodes[0].span.ns),
            (Some(8), 890),
            "{about}"
        );
        let returned: Vec<_> = whole.details.iter().map(|detail| detail.returned).collect();
        let expected = match kernel {
            Kernel::New => vec![Some(-12)],
            _ => Vec::new(),
        };
        assert_eq!(returned, expected, "{about}");
        let counts = summary.counts;
        assert_eq!((counts.losses, counts.lost_events), (1, 77), "{about}");
        assert_eq!(
            (counts.unknown_lines, counts.malformed_records),
            (1, 0),
            "{about}"
        );
        assert_eq!(counts.missing_bytes, 0, "{about}");
    }
}

#[test]
fn command_names_and_modules_are_known() {
    let file = version_6(Kernel::Middle, &cpus(Kernel::Middle));
    let trace = TraceDat::parse(&file).expect("a file");
    assert_eq!(trace.comm(7), Some("redis server"));
    let (_, summary) = read(&file).expect("a file");
    let module = summary.names.find(b"ext4_fault");
    assert_eq!(summary.names.module(module.expect("met")), Some("ext4"));
}

/// Cut at any byte: an error with an offset, or the calls before the cut and the number of missing
/// bytes.
#[test]
fn a_file_may_end_anywhere() {
    for (kernel, kind, file) in files() {
        let (whole, _) = read(&file).expect("a file");
        for end in 0..file.len() {
            match read(&file[..end]) {
                Ok((trees, summary)) => {
                    let known = trees.iter().all(|tree| whole.contains(tree));
                    assert!(known, "{kernel:?} {kind} {end}");
                    assert!(summary.counts.missing_bytes > 0, "{kernel:?} {kind} {end}");
                }
                Err(ReadError::Cut { offset, .. }) => assert!(offset <= file.len() as u64),
                Err(ReadError::NotTraceDat) => assert!(end < 10),
                // The offset of the options is the last thing written.
                Err(other) => panic!("{kernel:?} {kind} {end}: {other}"),
            }
        }
    }
}

/// Damaged bytes: never a panic, and no more calls than there are records.
#[test]
fn a_file_may_be_spoilt_anywhere() {
    for (_, _, mut file) in files() {
        for at in (0..file.len()).step_by(13) {
            let before = file[at];
            for wrong in [0xff, 0x00, before ^ 0x10] {
                file[at] = wrong;
                if let Ok((_, summary)) = read(&file) {
                    assert!(summary.counts.calls <= summary.counts.lines);
                }
            }
            file[at] = before;
        }
    }
}

#[test]
fn what_is_not_read_is_refused_with_its_reason() {
    let file = version_6(Kernel::Middle, &cpus(Kernel::Middle));
    let spoilt = |at: usize, byte: u8| {
        let mut file = file.clone();
        file[at] = byte;
        TraceDat::parse(&file).expect_err("refused").to_string()
    };
    assert!(spoilt(0, 0).contains("does not start"));
    assert!(spoilt(10, b'9').contains("version 9"));
    assert!(spoilt(12, 1).contains("big-endian"));
    assert!(spoilt(17, 0xff).contains("page size at byte 14"));
    assert!(spoilt(18, b'X').contains("description of a page at byte 18"));
    let text = spoilt(36, 0xff);
    assert!(text.contains("beyond the end"), "{text}");
}
