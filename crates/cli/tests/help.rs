//! Messages of `pagewise` for users who do not know what to type.

use std::path::Path;
use std::process::{Command, Stdio};

#[path = "support/command.rs"]
mod command;

use command::pagewise;

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("text")
}

#[test]
fn no_arguments_show_first_steps_or_the_reference() {
    let output = pagewise(&[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("Usage: pagewise [OPTIONS] <COMMAND>"));

    // script(1) of util-linux, present on every system, provides a terminal.
    let output = Command::new("script")
        .args(["-qec", env!("CARGO_BIN_EXE_pagewise"), "/dev/null"])
        .stdin(Stdio::null())
        .output()
        .expect("script runs");
    assert_eq!(output.status.code(), Some(2));
    let said = text(&output.stdout);
    assert!(said.contains("pagewise doctor --prove -- CMD"), "{said}");
    assert!(!said.contains("Usage:"), "{said}");
}

/// Faults until it is killed.
struct Churner(std::process::Child);

impl Drop for Churner {
    fn drop(&mut self) {
        // Fails if it has ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn doctor_without_a_program_lists_who_faults() {
    let code =
        "import mmap\nwhile True: m = mmap.mmap(-1, 1 << 22); m.write(bytes(1 << 22)); m.close()";
    let churner = Churner(
        Command::new("python3")
            .args(["-c", code])
            .spawn()
            .expect("python3 runs"),
    );
    let output = pagewise(&["doctor"]);
    assert_eq!(output.status.code(), Some(2));
    let said = text(&output.stderr);
    let rows: Vec<Vec<&str>> = said
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    let ours = churner.0.id().to_string();
    let row = rows
        .iter()
        .find(|row| row.contains(&&*ours))
        .unwrap_or_else(|| panic!("{said}"));
    let pid = row.iter().position(|word| *word == ours).expect("found so");
    let minor: u64 = row[pid + 1].replace(',', "").parse().expect("a count");
    assert!(minor > 1000, "{said}");
    assert!(said.contains("pagewise doctor -p "), "{said}");
}

#[test]
fn help_shows_commands_guides_and_schemas_and_refuses_the_rest() {
    for (words, expected) in [
        (&["help"][..], "less-memory"),
        (&["help", "huge", "balance"], "Usage: pagewise huge balance"),
        (&["help", "slow"], "My program is slow"),
        (&["help", "gate"], "Usage: pagewise gate"),
        (&["help", "gate"], "A gate for memory in CI"),
    ] {
        let output = pagewise(words);
        assert!(output.status.success(), "{words:?}");
        assert!(text(&output.stdout).contains(expected), "{words:?}");
    }
    let refused = pagewise(&["help", "nonsense"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(text(&refused.stderr).contains("no command or topic \"nonsense\""));
}

#[test]
fn no_help_points_to_a_file_of_the_sources() {
    fn visit(words: &[&str], checked: &mut usize) {
        let output = pagewise(&[words, &["--help"]].concat());
        let help = text(&output.stdout);
        for folder in ["docs/", "crates/", "tests/", "bench/"] {
            assert!(!help.contains(folder), "{words:?}: {help}");
        }
        *checked += 1;
        let commands = help
            .lines()
            .skip_while(|line| *line != "Commands:")
            .skip(1)
            .take_while(|line| !line.is_empty())
            .filter_map(|line| line.strip_prefix("  ")?.split_whitespace().next())
            .filter(|name| *name != "help" && name.starts_with(|c: char| c.is_ascii_lowercase()));
        for name in commands {
            visit(&[words, &[name]].concat(), checked);
        }
    }
    let mut checked = 0;
    visit(&[], &mut checked);
    assert!(checked > 15, "{checked}");
}

#[test]
fn each_schema_that_help_names_is_inside() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/schema");
    for entry in std::fs::read_dir(folder).expect("schemas") {
        let path = entry.expect("an entry").path();
        if path.extension().is_some_and(|kind| kind == "json") {
            let name = path
                .file_name()
                .and_then(|name| name.to_str())
                .expect("a name");
            let output = pagewise(&["help", name]);
            assert_eq!(
                output.stdout,
                std::fs::read(&path).expect("a schema"),
                "{name}"
            );
        }
    }
}
