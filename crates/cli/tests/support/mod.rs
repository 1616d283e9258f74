//! What tests of `pagewise report` share.

use std::io::Write;
use std::process::{Command, Output, Stdio};

/// Runs `pagewise report ARGUMENTS -` with `input` on standard input.
pub fn report(arguments: &[&str], input: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_pagewise"))
        .arg("report")
        .args(arguments)
        .arg("-")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("pagewise starts");
    let mut stdin = child.stdin.take().expect("a pipe");
    // A run that refuses its arguments doesn't read.
    let _ = stdin.write_all(input.as_bytes());
    drop(stdin);
    child.wait_with_output().expect("pagewise ends")
}
