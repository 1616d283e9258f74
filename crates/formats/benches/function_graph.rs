//! MB/s of reading function_graph text: tokenizer alone, then with call trees.
//!
//! `cargo bench -p pagewise-formats --bench function_graph -- TRACE.txt[.zst] [MIB]` repeats the
//! trace to the given size (500 MiB) in memory and reads it three times per stage. CPU time is wall
//! time on an idle machine; the best of the three is printed with all three.

use pagewise_formats::function_graph::{Builder, CallTree, Names, Parser};
use std::io::Read;
use std::time::Instant;

fn main() {
    let arguments: Vec<String> = std::env::args()
        .skip(1)
        .filter(|a| a != "--bench")
        .collect();
    let Some(path) = arguments.first() else {
        println!("SKIPPED: give a trace: -- TRACE.txt[.zst] [MIB]");
        return;
    };
    let mib: usize = arguments.get(1).and_then(|m| m.parse().ok()).unwrap_or(500);
    let trace = load(path);
    let repeats = (mib << 20).div_ceil(trace.len().max(1));
    let text = trace.repeat(repeats);
    println!("{path}: {repeats} times {} bytes", trace.len());
    measure("tokenizer", &text, tokenize);
    measure("trees", &text, build);
}

fn load(path: &str) -> Vec<u8> {
    let bytes = std::fs::read(path).expect("a readable trace");
    if !path.ends_with(".zst") {
        return bytes;
    }
    let mut text = Vec::new();
    zstd::Decoder::new(&bytes[..])
        .and_then(|mut decoder| decoder.read_to_end(&mut text))
        .expect("a zstd file");
    text
}

fn measure(stage: &str, text: &[u8], run: fn(&[u8]) -> u64) {
    let mut rates = Vec::new();
    let mut result = 0;
    for _ in 0..3 {
        let start = Instant::now();
        result = run(text);
        rates.push(text.len() as f64 / 1e6 / start.elapsed().as_secs_f64());
    }
    let best = rates.iter().copied().fold(0.0, f64::max);
    println!("{stage}: best {best:.0} MB/s of {rates:.0?} ({result})");
}

fn tokenize(text: &[u8]) -> u64 {
    let mut parser = Parser::new();
    let mut sum = 0_u64;
    for chunk in text.chunks(1 << 20) {
        parser.feed(chunk, |line, _| {
            sum = sum.wrapping_add(line.span.map_or(1, |span| span.ns));
        });
    }
    sum
}

fn build(text: &[u8]) -> u64 {
    let mut parser = Parser::new();
    let mut builder = Builder::new();
    let mut nodes = 0;
    let mut sink = |tree: &CallTree, _: &Names| nodes += tree.nodes.len() as u64;
    for chunk in text.chunks(1 << 20) {
        parser.feed(chunk, |line, names| builder.line(line, names, &mut sink));
    }
    builder.finish();
    nodes
}
