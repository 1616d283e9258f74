//! `pagewise bench alloc` measures what is available, and its JSON conforms to its schema.

#[macro_use]
#[path = "../../../tests/skipped.rs"]
mod skipped;

use serde_json::Value;
use std::process::{Command, Output};

#[path = "../../report/tests/checker/mod.rs"]
mod checker;

fn bench(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_pagewise"))
        .args(["bench", "alloc", "--runs", "1", "--time", "1ms"])
        .args(arguments)
        .output()
        .expect("pagewise runs")
}

#[test]
fn the_output_fits_the_schema_and_shows_where_glibc_starts_over() {
    let only = ["--only", "system", "--only", "glibc", "--json"];
    let output = bench(&[["--size", "64K", "--size", "48M"].as_slice(), &only].concat());
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let document: Value = serde_json::from_slice(&output.stdout).expect("the output is JSON");
    assert_eq!(checker::errors(&document), [""; 0]);
    let found = &document["evidence"]["allocator_bench"];
    if found["glibc"].is_null() {
        skipped!("this is not glibc");
        return;
    }
    // By name: the system, glibc fixed at its default, glibc raised. 48 MiB are above the 32 MiB
    // that the dynamic threshold can reach.
    let faults = |allocator: usize, size: usize| {
        found["allocators"][allocator]["single"][size]["faults"]
            .as_f64()
            .expect("a number")
    };
    for allocator in 0..3 {
        let kept = faults(allocator, 0);
        assert!(kept < 1.0, "allocator {allocator}: {kept} faults a round");
    }
    assert!(
        faults(0, 1) > 90.0,
        "one fault a page, or a huge page at least"
    );
    // A few rounds of a large block: a stray fault of the process itself weighs.
    let kept = faults(2, 1);
    assert!(
        kept < faults(0, 1) / 20.0,
        "raised thresholds keep the block: {kept} faults a round"
    );
    let threshold = |at: usize| found["allocators"][at]["threshold_bytes"].as_u64();
    assert_eq!(threshold(2), None);
    let fixed = threshold(1).expect("an edge");
    assert!((120 << 10..=260 << 10).contains(&fixed), "{fixed}");
}

#[test]
fn a_library_that_is_not_there_is_named() {
    let output = bench(&["--preload", "/no/such/lib.so", "--size", "4K"]);
    assert_eq!(output.status.code(), Some(1));
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(message.contains("/no/such/lib.so"), "{message}");
}

#[test]
fn a_size_that_is_none_is_a_usage_error() {
    assert_eq!(bench(&["--size", "big"]).status.code(), Some(2));
}
