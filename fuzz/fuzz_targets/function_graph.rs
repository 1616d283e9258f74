//! Any bytes in any chunks: never a panic, whole trees only, the same trees however it is cut, and
//! on one core or several.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pagewise_formats::function_graph::{Builder, CallTree, Cores, Names, Parser, read_on};

fn trees(text: &[u8], chunk: usize) -> Vec<CallTree> {
    let mut found = Vec::new();
    let mut sink = |tree: &CallTree, names: &Names| {
        for (place, node) in tree.nodes.iter().enumerate() {
            assert!(node.end as usize > place && node.end as usize <= tree.nodes.len());
            assert!((node.name as usize) < names.len());
        }
        found.push(tree.clone());
    };
    let (mut parser, mut builder) = (Parser::new(), Builder::new());
    for part in text.chunks(chunk) {
        parser.feed(part, |line, names| builder.line(line, names, &mut sink));
    }
    parser.finish(|line, names| builder.line(line, names, &mut sink));
    builder.finish();
    found
}

fn on_cores(text: &[u8], threads: usize, piece: usize) -> Vec<CallTree> {
    let mut found = Vec::new();
    let mut sink = |tree: &CallTree, _: &Names| found.push(tree.clone());
    read_on(Cores { threads, piece }, text, &mut sink).expect("memory is readable");
    found
}

fuzz_target!(|bytes: &[u8]| {
    let Some((&first, text)) = bytes.split_first() else {
        return;
    };
    let whole = trees(text, text.len().max(1));
    assert_eq!(whole, trees(text, usize::from(first) + 1));
    let piece = usize::from(first) * 8 + 1;
    assert_eq!(on_cores(text, 1, piece), on_cores(text, 2, piece));
});
