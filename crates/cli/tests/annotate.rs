//! `pagewise report --annotate`: the line that faults, of a program built here.

#[macro_use]
#[path = "../../../tests/skipped.rs"]
mod skipped;

#[path = "support/command.rs"]
mod command;

use command::pagewise;
use std::process::Command;

/// Each page of new memory is touched in one line of one function.
const PROGRAM: &str = r#"#include <stdlib.h>
__attribute__((noinline)) void fill(volatile char *memory, long bytes) {
    for (long at = 0; at < bytes; at += 4096)
        memory[at] = 1; /* here */
}
int main(void) {
    for (int round = 0; round < 40; round++) {
        char *memory = malloc(64 << 20);
        fill(memory, 64 << 20);
        free(memory);
    }
    return 0;
}
"#;

#[test]
fn the_line_that_faults_has_the_faults_of_its_function() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).display().to_string();
    std::fs::write(path("fill.c"), PROGRAM).expect("written");
    let built = Command::new("cc")
        .args([
            "-g",
            "-O1",
            "-fno-omit-frame-pointer",
            "-o",
            &path("fill"),
            &path("fill.c"),
        ])
        .status();
    if !built.is_ok_and(|status| status.success()) {
        return skipped!("no C compiler");
    }
    let recorded = pagewise(&[
        "record",
        "-q",
        "-o",
        &path("fill.data"),
        "--",
        &path("fill"),
    ]);
    let message = String::from_utf8_lossy(&recorded.stderr).into_owned();
    if !recorded.status.success() {
        return skipped!("{message}");
    }
    let page = path("fill.html");
    let shown = pagewise(&[
        "report",
        &path("fill.data"),
        "--annotate",
        "fill",
        "-o",
        &page,
    ]);
    let message = String::from_utf8_lossy(&shown.stderr).into_owned();
    if message.contains("no sample has") {
        return skipped!("perf events are forbidden: {message}");
    }
    assert!(shown.status.success(), "{message}");
    let text = String::from_utf8_lossy(&shown.stdout).into_owned();
    // Where the line is too long, its source stands below its figures.
    let lines: Vec<&str> = text.lines().collect();
    let at = lines.iter().position(|line| line.contains("/* here */"));
    let at = at.unwrap_or_else(|| panic!("{text}"));
    let row = lines[at.saturating_sub(1)..=at].concat();
    assert!(row.contains("fill.c:4") && row.contains('%'), "{text}");
    let page = std::fs::read_to_string(page).expect("a page");
    assert!(page.contains("/* here */") && page.contains("fill.c:4"));
    let unknown = pagewise(&["report", &path("fill.data"), "--annotate", "fil"]);
    let message = String::from_utf8_lossy(&unknown.stderr).into_owned();
    assert!(
        !unknown.status.success() && message.contains("there are: fill"),
        "{message}"
    );
}
