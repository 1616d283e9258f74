//! Any bytes: read or refused, never a panic, whole trees only.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pagewise_formats::function_graph::{CallTree, Names};
use pagewise_formats::trace_dat::TraceDat;

fuzz_target!(|bytes: &[u8]| {
    let Ok(trace) = TraceDat::parse(bytes) else {
        return;
    };
    let mut sink = |tree: &CallTree, names: &Names| {
        for (place, node) in tree.nodes.iter().enumerate() {
            assert!(node.end as usize > place && node.end as usize <= tree.nodes.len());
            assert!((node.name as usize) < names.len());
        }
    };
    let counts = trace.read(&mut sink).counts;
    assert!(counts.calls <= counts.lines);
});
