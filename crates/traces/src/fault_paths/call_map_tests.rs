//! The call map of a small trace, figure by figure.

use super::{Calibration, Collector, Source, analyse};
use pagewise_formats::function_graph::read_bytes;
use pagewise_model::call_map::{CallMap, CallNode};
use pagewise_model::fault_paths::Class;

/// Two anonymous faults, one of which makes the inner call twice, and a read of the zero page.
const TRACE: &str = "\
 0)  a-1   |               |  handle_mm_fault() {
 0)  a-1   |               |    page_add_new_anon_rmap() {
 0)  a-1   |   1.000 us    |      __mod_lruvec_page_state();
 0)  a-1   |   4.000 us    |    }
 0)  a-1   | + 10.001 us   |  }
 0)  a-1   |               |  handle_mm_fault() {
 0)  a-1   |               |    page_add_new_anon_rmap() {
 0)  a-1   |   1.000 us    |      __mod_lruvec_page_state();
 0)  a-1   |   2.000 us    |      __mod_lruvec_page_state();
 0)  a-1   |   6.000 us    |    }
 0)  a-1   | + 11.999 us   |  }
 0)  a-1   |               |  handle_mm_fault() {
 0)  a-1   |   1.000 us    |    _raw_spin_lock();
 0)  a-1   |   3.000 us    |  }
";

fn map() -> CallMap {
    let mut collector = Collector::default();
    let summary = read_bytes(TRACE.as_bytes(), &mut collector);
    let calibration = Calibration {
        per_call_ns: 1000.0,
        inside_ns: 400.0,
        error_ns: 10.0,
        source: Source::OwnTrace,
        withdrawn: None,
    };
    analyse(&collector, &summary, calibration).evidence.call_map
}

fn path<'a>(map: &'a CallMap, mut node: &'a CallNode) -> String {
    let mut names = vec![map.functions[node.function as usize].as_str()];
    while let Some(parent) = node.parent {
        node = &map.nodes[parent as usize];
        names.insert(0, &map.functions[node.function as usize]);
    }
    names.join(";")
}

#[test]
fn paths_are_counted_and_timed() {
    let map = map();
    let anonymous = map
        .nodes
        .iter()
        .filter(|node| node.class == Class::Anonymous);
    let found: Vec<_> = anonymous
        .map(|n| {
            (
                path(&map, n),
                n.faults,
                n.calls,
                n.calls_inside,
                n.total_ns,
                n.self_ns,
            )
        })
        .collect();
    let rmap = "handle_mm_fault;page_add_new_anon_rmap";
    assert_eq!(
        found,
        [
            ("handle_mm_fault".to_owned(), 2, 2, 5, 22_000, 12_000),
            (rmap.to_owned(), 2, 2, 3, 10_000, 6_000),
            (
                format!("{rmap};__mod_lruvec_page_state"),
                2,
                3,
                0,
                4_000,
                4_000
            ),
        ]
    );
    assert_eq!(
        (map.timed_faults, map.nodes_left_out, map.self_ns_left_out),
        (3, 0, 0)
    );
}

/// Self time is reduced by 400 ns per call (except for the root) and by 600 ns for each call made.
#[test]
fn corrected_totals_are_own_times_added_up() {
    let map = map();
    let leaf = 4_000 - 3 * 400;
    let rmap = 6_000 - 2 * 400 - 3 * 600;
    let root = 12_000 - 2 * 600;
    let corrected: Vec<(u64, u64, u64)> = map
        .nodes
        .iter()
        .filter(|node| node.class == Class::Anonymous)
        .map(|node| {
            (
                node.corrected_self_ns,
                node.corrected_total_ns,
                node.error_ns,
            )
        })
        .collect();
    assert_eq!(
        corrected,
        [
            // 10 ns for each of the five calls whose cost was subtracted.
            (root, root + rmap + leaf, 50),
            (rmap, rmap + leaf, 50),
            (leaf, leaf, 30)
        ]
    );
    let counted = |node: &CallNode| node.times.iter().map(|(_, _, count)| count).sum::<u64>();
    assert!(map.nodes.iter().all(|node| counted(node) == node.calls));
    // One call inside page_add_new_anon_rmap in the first fault, two in the second.
    let rmap = &map.nodes[1].corrected_times;
    let expected = [4_000 - 400 - 1_000, 6_000 - 400 - 2_000];
    let hits = |ns: u64| {
        rmap.iter()
            .any(|&(low, high, n)| low <= ns && ns < high && n == 1)
    };
    assert!(expected.into_iter().all(hits), "{rmap:?}");
    let (low, high, _) = map.nodes[0].times[0];
    assert!(low <= 10_000 && 10_000 < high && (high - low) * 8 <= low);
}
