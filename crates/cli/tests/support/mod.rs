//! Helpers for tests of commands that read standard input.

use std::io::Write;
use std::process::{Command, Output, Stdio};

/// Runs `pagewise COMMAND ARGUMENTS -` with `input` on standard input.
pub fn fed(command: &str, arguments: &[&str], input: impl AsRef<[u8]>) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_pagewise"))
        .arg(command)
        .args(arguments)
        .arg("-")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("pagewise starts");
    let mut stdin = child.stdin.take().expect("a pipe");
    // A run that refuses its arguments doesn't read.
    let _ = stdin.write_all(input.as_ref());
    drop(stdin);
    child.wait_with_output().expect("pagewise ends")
}
