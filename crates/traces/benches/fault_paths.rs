//! MB/s from function_graph text to findings: parse, call trees, classification, time splits,
//! histograms, mining (Algorithm 1 at 1 %) and the report's figures, on one core; and the same
//! on two. MB/s are of CPU time, which a busy machine changes least; the gain by two cores is of wall
//! time and needs an idle one.
//!
//! `cargo bench -p pagewise-traces --bench fault_paths -- TRACE.txt[.zst] [MIB]` repeats the
//! trace to the given size (500 MiB) in memory. Beside it, on the same text:
//! `bench/peers/function_graph.py TRACE.txt`.

use pagewise_formats::function_graph::{self, Cores};
use pagewise_traces::fault_paths::{Collector, FaultPaths, analyse, estimate};
use pagewise_traces::mine::{Algorithm, Query, patterns};
use rustix::time::{ClockId, clock_gettime};
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
    for _ in 0..3 {
        let (wall, cpu) = (Instant::now(), cpu_ns());
        let found = end_to_end(&text, 1);
        let (one, busy) = (wall.elapsed(), cpu_ns() - cpu);
        let wall = Instant::now();
        let on_two = end_to_end(&text, 2);
        let two = wall.elapsed();
        assert_eq!(found, on_two, "findings on one core and on two");
        let faults = found.0.faults;
        println!(
            "{} MB/s of CPU time; two cores x{:.2}: {faults} faults, {} patterns",
            text.len() as u64 * 1000 / busy.max(1),
            one.as_secs_f64() / two.as_secs_f64(),
            found.1
        );
    }
}

fn end_to_end(text: &[u8], threads: usize) -> (FaultPaths, usize) {
    let mut collector = Collector::default();
    let cores = Cores::new(threads);
    let summary = function_graph::read_on(cores, text, &mut collector).expect("memory");
    let findings = analyse(&collector, &summary, estimate(&collector));
    let query = Query {
        algorithm: Algorithm::Prefix,
        min_support: findings.faults.div_ceil(100),
        max_length: None,
    };
    let database = collector.sequences(&summary.names);
    let found = patterns(&database, query).len();
    (findings, found)
}

/// Nanoseconds that this process has run.
fn cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    u64::try_from(time.tv_sec * 1_000_000_000 + time.tv_nsec).expect("a positive time")
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
