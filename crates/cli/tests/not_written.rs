//! Outputs that cannot be written whole, or must not be written: a status, and a message that names
//! what failed.

use std::fmt::Write as _;
use std::fs::{self, File, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

#[path = "../../../tests/skipped.rs"]
#[macro_use]
mod skipped;

/// A folder with the trace `t.txt`.
fn scene() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let mut trace = "# tracer: function_graph\n".to_owned();
    for at in 100..150 {
        writeln!(
            trace,
            " {at}.000001 |   0)     bash-1     |               |  handle_mm_fault() {{\n \
              {at}.000003 |   0)     bash-1     |   1.000 us    |    vma_alloc_folio();\n \
              {at}.000010 |   0)     bash-1     |   9.000 us    |  }} /* handle_mm_fault */"
        )
        .expect("a text");
    }
    fs::write(folder.path().join("t.txt"), trace).expect("written");
    folder
}

fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pagewise"));
    command.current_dir(folder).args(arguments);
    command.stdin(Stdio::null());
    command
}

/// Runs a command that must end with status 1, and returns its messages.
fn failed(command: &mut Command) -> String {
    let Output { status, stderr, .. } = command.output().expect("pagewise runs");
    let message = String::from_utf8(stderr).expect("text");
    assert_eq!(status.code(), Some(1), "{message}");
    assert!(!message.contains(".pagewise-"), "{message}");
    message
}

fn pipe(folder: &Path) -> PathBuf {
    let path = folder.join("pipe");
    let made = Command::new("mkfifo").arg(&path).status();
    assert!(made.expect("mkfifo runs").success());
    path
}

fn is_root(folder: &Path) -> bool {
    folder.metadata().expect("a folder").uid() == 0
}

#[test]
fn a_full_standard_output_is_named_as_such() {
    let folder = scene();
    for arguments in [
        &["report", "t.txt"][..],
        &["report", "--json", "t.txt"],
        &["report", "--export", "folded", "t.txt"],
        &["diff", "t.txt", "t.txt"],
        &["check"],
        &["help"],
        &["completions", "bash"],
    ] {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let message = failed(command(folder.path(), arguments).stdout(full));
        let expected = "pagewise: cannot write standard output: No space left";
        assert!(message.contains(expected), "{arguments:?}: {message}");
    }
}

#[test]
fn an_output_that_fails_is_named_and_not_the_input() {
    let folder = scene();
    for arguments in [
        &["report", "t.txt", "-o", "missing/page.html"][..],
        &["report", "t.txt", "--export", "folded", "-o", "missing/x"],
        &["report", "t.txt", "--export", "perfetto", "-o", "missing/x"],
        &["diff", "t.txt", "t.txt", "-o", "missing/page.html"],
    ] {
        let message = failed(&mut command(folder.path(), arguments));
        let expected = "pagewise: cannot write missing/";
        assert!(message.starts_with(expected), "{arguments:?}: {message}");
    }
    let tables = [
        "report",
        "t.txt",
        "--export",
        "parquet",
        "-o",
        "t.txt/tables",
    ];
    let message = failed(&mut command(folder.path(), &tables));
    let expected = "pagewise: cannot make the folder t.txt/tables";
    assert!(message.starts_with(expected), "{message}");
}

#[test]
fn reports_and_rows_do_not_go_into_the_pipe_of_another_user() {
    let folder = scene();
    let pipe = pipe(folder.path());
    // Only root can give files away. As another user there is no such pipe to make.
    if !is_root(folder.path()) {
        skipped!("only root can give a pipe to another user");
        return;
    }
    chown(&pipe, Some(1), None).unwrap();
    for arguments in [
        &["report", "-o", "pipe", "t.txt"][..],
        &["watch", "-o", "pipe", "--", "true"],
    ] {
        let message = failed(&mut command(folder.path(), arguments));
        let expected = "cannot write pipe: it is a pipe of another user (id 1)";
        assert!(message.contains(expected), "{arguments:?}: {message}");
    }
}

#[test]
fn watch_on_a_pipe_without_a_reader_ends_by_sigterm() {
    let folder = scene();
    pipe(folder.path());
    let began = folder.path().join("began");
    let arguments = ["watch", "-o", "pipe", "--", "sleep", "600"];
    let mut watching = command(folder.path(), &arguments)
        .stderr(File::create(&began).unwrap())
        .spawn()
        .expect("pagewise starts");
    let process = watching.id().to_string();
    // Until then the default action of the signal ends it, too.
    let catches = || {
        let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
        let caught = status
            .lines()
            .find_map(|line| line.strip_prefix("SigCgt:\t"));
        caught.is_some_and(|mask| u64::from_str_radix(mask, 16).unwrap_or(0) >> 14 & 1 == 1)
    };
    while !catches() {
        assert!(watching.try_wait().expect("a child").is_none());
        std::thread::yield_now();
    }
    // The shell's builtin: small systems have no program for it.
    let sent = Command::new("sh")
        .args(["-c", &format!("kill {process}")])
        .status();
    assert!(sent.expect("sh runs").success());
    assert_eq!(watching.wait().expect("a child").code(), Some(1));
    let message = fs::read_to_string(&began).unwrap();
    assert!(
        message.contains("it is a pipe that nobody reads"),
        "{message}"
    );
}

#[test]
fn tables_are_refused_in_a_folder_that_another_opened_to_all() {
    let folder = scene();
    let open = folder.path().join("open");
    fs::create_dir(&open).unwrap();
    // Only root can give folders away.
    if !is_root(folder.path()) {
        skipped!("only root can give a folder to another user");
        return;
    }
    fs::set_permissions(&open, Permissions::from_mode(0o777)).unwrap();
    chown(&open, Some(1), None).unwrap();
    let arguments = ["report", "t.txt", "--export", "parquet", "-o", "open"];
    let message = failed(&mut command(folder.path(), &arguments));
    assert!(message.contains("another user (id 1)"), "{message}");
    assert_eq!(fs::read_dir(&open).unwrap().count(), 0);
    // Who may rename the folder could put another in its place.
    let arguments = ["report", "t.txt", "--export", "parquet", "-o", "open/new"];
    let message = failed(&mut command(folder.path(), &arguments));
    assert!(message.contains("another user (id 1)"), "{message}");
    fs::set_permissions(&open, Permissions::from_mode(0o1777)).unwrap();
    let made = command(folder.path(), &arguments).output().expect("runs");
    assert!(made.status.success(), "{made:?}");
}

/// What a recording on a full disk lost is an error, whoever made it.
#[test]
fn a_recording_that_a_full_disk_cut_is_an_error() {
    let folder = scene();
    let churn = "i=0; while [ $i -lt 600 ]; do /bin/true; i=$((i + 1)); done";
    let small = "mount -t tmpfs -o size=200k none small && cd small && exec \"$0\" \"$@\"";
    fs::create_dir(folder.path().join("small")).expect("a folder");
    let namespaces: &[&str] = if is_root(folder.path()) {
        &["--mount"]
    } else {
        &["--map-root-user", "--mount"]
    };
    let may_mount = Command::new("unshare")
        .current_dir(folder.path())
        .args(namespaces)
        .args(["sh", "-c", small, "true"])
        .output();
    if !may_mount.is_ok_and(|output| output.status.success()) {
        skipped!("no file system may be mounted here");
        return;
    }
    let page = folder.path().join("page.html");
    let page = page.to_str().expect("text");
    for arguments in [
        vec!["record", "-o", "r.data"],
        vec!["doctor", "-q", "--record", "r.data", "-o", page],
    ] {
        let mut command = Command::new("unshare");
        command.current_dir(folder.path()).args(namespaces);
        command.args(["sh", "-c", small, env!("CARGO_BIN_EXE_pagewise")]);
        command.args(&arguments).args(["--", "sh", "-c", churn]);
        let message = failed(&mut command);
        assert!(
            message.contains("pagewise: r.data is not whole: the disk is full"),
            "{arguments:?}: {message}"
        );
    }
}

#[test]
fn messages_name_the_output_and_no_temporary_file() {
    let folder = scene();
    let arguments = ["report", "t.txt", "-o", "missing/report.html"];
    let message = failed(&mut command(folder.path(), &arguments));
    let expected = "cannot write missing/report.html: No such file or directory (os error 2)\n";
    assert!(message.ends_with(expected), "{message}");
}

/// A recording that is cut is ours all the same: the report says first what is missing.
#[test]
fn a_cut_recording_says_first_what_is_missing() {
    let folder = tempfile::tempdir().expect("a folder");
    // Copied stacks would hold the arguments.
    let record = [
        "record",
        "-q",
        "--call-graph",
        "fp",
        "-o",
        "whole.data",
        "--",
        "sh",
        "-c",
        "true",
        "--password=hunter2",
    ];
    let done = command(folder.path(), &record)
        .output()
        .expect("pagewise runs");
    assert!(done.status.success(), "{done:?}");
    let whole = fs::read(folder.path().join("whole.data")).expect("a recording");
    let has = |text: &[u8]| whole.windows(text.len()).any(|at| at == text);
    assert!(!has(b"hunter2") && has(b"--password=***"));
    // The records end where the header says: offset and size are its sixth and seventh word.
    let word = |at: usize| {
        let bytes = whole[at..at + 8].try_into().expect("eight bytes");
        usize::try_from(u64::from_le_bytes(bytes)).expect("an offset")
    };
    let end = word(40) + word(48) - 8;
    fs::write(folder.path().join("cut.data"), &whole[..end]).expect("written");
    let report = command(folder.path(), &["report", "cut.data"]).output();
    let Output { stdout, stderr, .. } = report.expect("pagewise runs");
    let said = String::from_utf8([stdout, stderr].concat()).expect("text");
    assert!(
        said.contains("cut off") && said.contains("are missing"),
        "{said}"
    );
    assert!(!said.contains("another tool"), "{said}");
    // Stacks are unwound by the architecture, and the kernel's functions named by its release.
    let report = command(folder.path(), &["report", "--json", "cut.data"]).output();
    let found = report.expect("pagewise runs").stdout;
    let found: serde_json::Value = serde_json::from_slice(&found).expect("JSON");
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").expect("readable");
    assert_eq!(found["host"]["kernel"], kernel.trim());
    assert_eq!(found["host"]["architecture"], std::env::consts::ARCH);
}
