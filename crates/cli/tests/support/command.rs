//! Runs the program under test.

use std::process::{Command, Output, Stdio};

/// Runs `pagewise ARGUMENTS` without an input.
pub fn pagewise(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_pagewise"))
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .expect("pagewise runs")
}
