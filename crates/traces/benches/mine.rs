//! Patterns per second on a sequence file, beside `bench/peers/prefixspan_py.py` on the same file.
//!
//! `cargo bench -p pagewise-traces --bench mine -- SEQUENCES MIN_SUPPORT MAX_LENGTH`

use pagewise_traces::mine::{Algorithm, Query, mine, read};
use std::time::Instant;

fn main() {
    let arguments: Vec<String> = std::env::args()
        .skip(1)
        .filter(|a| a != "--bench")
        .collect();
    let [path, min_support, max_length] = arguments.as_slice() else {
        println!("SKIPPED: give -- SEQUENCES MIN_SUPPORT MAX_LENGTH");
        return;
    };
    let text = std::fs::read(path).expect("a readable file");
    let start = Instant::now();
    let database = read(&text).expect("a sequence file");
    println!(
        "{} sequences read in {:.3?}",
        database.len(),
        start.elapsed()
    );
    for algorithm in [Algorithm::Prefix, Algorithm::Classic] {
        let limited = (algorithm == Algorithm::Classic).then_some(max_length);
        let query = Query {
            algorithm,
            min_support: min_support.parse().expect("a number"),
            max_length: limited.map(|length| length.parse().expect("a number")),
        };
        let start = Instant::now();
        let (mut patterns, mut sum) = (0_u64, 0_u64);
        mine(&database, query, |_, support| {
            patterns += 1;
            sum += support;
        });
        println!(
            "{algorithm:?}: {patterns} patterns, supports add up to {sum}, {:.4} s",
            start.elapsed().as_secs_f64()
        );
    }
}
