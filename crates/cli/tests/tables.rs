//! `pagewise report --export parquet`: a folder of tables, as a user writes it.

mod support;

use std::path::Path;
use support::fed;

const SCRIPT: &str = "\
a b:c  12/34 [001]  1.000000: 250000 cpu-clock:pppH:
\tffff copy_page+0x1 ([kernel.kallsyms])
\t5555 main+0x2 (/b)

";

fn names(folder: &Path) -> Vec<String> {
    let files = std::fs::read_dir(folder).expect("a folder");
    let mut names: Vec<String> = files
        .map(|file| {
            file.expect("a file")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    names.sort();
    names
}

fn export(folder: &Path, more: &[&str], input: &str) -> std::process::Output {
    let path = folder.to_str().expect("temporary names are UTF-8");
    fed(
        "report",
        &[&["--export", "parquet", "-o", path], more].concat(),
        input,
    )
}

#[test]
fn a_profile_becomes_a_folder_of_tables() {
    let folder = tempfile::tempdir().expect("temporary directory");
    let host = folder.path().join("day=2026-11-22/host=a");
    let output = export(&host, &[], SCRIPT);
    assert!(output.status.success(), "{output:?}");
    let expected = [
        "findings", "frames", "losses", "runs", "samples", "settings", "stacks",
    ];
    assert_eq!(names(&host), expected.map(|name| format!("{name}.parquet")));
    // The same content is the same file, byte for byte.
    let again = folder.path().join("again");
    assert!(export(&again, &[], SCRIPT).status.success());
    for name in names(&host) {
        let read = |folder: &Path| std::fs::read(folder.join(&name)).expect("a file");
        assert_eq!(read(&host), read(&again), "{name}");
    }
}

#[test]
fn tables_hold_whole_recordings() {
    let folder = tempfile::tempdir().expect("temporary directory");
    let output = export(folder.path(), &["--event", "cpu-clock:pppH"], SCRIPT);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        !output.status.success() && said.contains("leave out --event"),
        "{said}"
    );
    let check = include_str!("../../report/tests/fixtures/check.json");
    let output = export(folder.path(), &[], check);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        !output.status.success() && said.contains("holds no run"),
        "{said}"
    );
}
