//! Reports what a test did not check in a visible place: the harness captures the output of
//! `eprintln!`, and a test that returned early passes like one that succeeded.
//!
//! A line goes directly to standard error, and into the file named by `PAGEWISE_SKIPS`; `.ci/run`
//! compares that file with the expected skips.

use std::fs::OpenOptions;
use std::io::Write;

/// Tells that the running test does not check all of what its name says, and why.
macro_rules! skipped {
    ($($why:tt)*) => {
        $crate::skipped::note(file!(), &format!($($why)*))
    };
}

/// What [`skipped!`] stands for.
pub fn note(file: &str, why: &str) {
    let thread = std::thread::current();
    let why = why.trim().replace('\n', " ");
    let line = format!("{file}: {}: {why}\n", thread.name().unwrap_or("main"));
    // Told in one write, so that lines of tests side by side stay whole.
    let _ = std::io::stderr().write_all(format!("SKIPPED {line}").as_bytes());
    if let Some(list) = std::env::var_os("PAGEWISE_SKIPS") {
        let opened = OpenOptions::new().create(true).append(true).open(&list);
        let written = opened.and_then(|mut list| list.write_all(line.as_bytes()));
        assert!(written.is_ok(), "{}: {written:?}", list.display());
    }
}
