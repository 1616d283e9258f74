//! What `pagewise tune --json` prints fits `docs/schema`.

use serde_json::Value;
use std::process::Command;

#[path = "../../report/tests/checker/mod.rs"]
mod checker;

/// Two rounds of a command that does nothing: the shape is the same whatever wins.
fn tune() -> Value {
    let output = Command::new(env!("CARGO_BIN_EXE_pagewise"))
        .args(["tune", "--budget", "1s", "--only", "thresholds", "--json"])
        .args(["--", "true"])
        .output()
        .expect("pagewise runs");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).expect("the output is JSON")
}

#[test]
fn the_output_fits_the_schema() {
    let mut document = tune();
    assert_eq!(checker::errors(&document), [""; 0]);
    // `true` has nothing to win, so put a winner together from what was printed.
    document["winner"] = serde_json::json!({
        "name": document["arms"][1]["name"],
        "settings": document["arms"][1]["settings"],
        "summary": "",
        "won_at_value": 1_048_576,
        "smallest_sufficient_value": null,
        "confirmation": document["comparisons"][0],
        "price": "",
        "exports": {"Shell": ""},
    });
    assert_eq!(checker::errors(&document), [""; 0]);
    document["winner"]["settings"][0]["kind"] = "magic".into();
    assert_eq!(checker::errors(&document).len(), 1);
}
