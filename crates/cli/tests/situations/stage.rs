//! Helpers of all situations: the program under test where any user can run it, a target that
//! misbehaves on command, and outcomes that explain themselves.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// User id that owns nothing (`nobody` on nearly every system).
const NOBODY: u32 = 65534;

/// A folder that any user may write, with the two programs next to it.
pub struct Stage {
    folder: tempfile::TempDir,
}

/// The two programs, copied or compiled once per test process.
struct Programs {
    _folder: tempfile::TempDir,
    pagewise: PathBuf,
    target: PathBuf,
}

fn programs() -> &'static Programs {
    static PROGRAMS: OnceLock<Programs> = OnceLock::new();
    PROGRAMS.get_or_init(|| {
        let folder = open_folder(0o755);
        let pagewise = folder.path().join("pagewise");
        let target = folder.path().join("target");
        fs::copy(env!("CARGO_BIN_EXE_pagewise"), &pagewise).expect("copy pagewise");
        compile(&target);
        Programs {
            _folder: folder,
            pagewise,
            target,
        }
    })
}

fn open_folder(mode: u32) -> tempfile::TempDir {
    let folder = tempfile::Builder::new()
        .prefix("situations")
        .tempdir()
        .expect("a temporary folder");
    fs::set_permissions(folder.path(), Permissions::from_mode(mode)).expect("open the folder");
    folder
}

fn compile(target: &Path) {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/situations/target.c");
    let status = Command::new("cc")
        .args(["-O1", "-pthread", "-o"])
        .args([target, &source])
        .status()
        .expect("the C compiler that Rust links with");
    assert!(status.success(), "target.c does not compile");
}

impl Stage {
    /// An empty folder that any user may write.
    pub fn new() -> Self {
        Self {
            folder: open_folder(0o777),
        }
    }

    /// A path inside the folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// `pagewise`, in this folder, without inherited settings that change its output.
    pub fn pagewise(&self) -> Command {
        self.command(&programs().pagewise)
    }

    /// Any program, in this folder.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(self.folder.path())
            .env_remove("NO_COLOR")
            .stdin(Stdio::null());
        command
    }

    /// `pagewise` as a user without privileges: the tests' own user, or `nobody` if that is root.
    pub fn unprivileged_pagewise(&self) -> Command {
        let mut command = self.pagewise();
        if is_root() {
            command.uid(NOBODY).gid(NOBODY);
        }
        command
    }
}

/// The program that misbehaves on command (`target.c`).
pub fn target() -> &'static str {
    programs()
        .target
        .to_str()
        .expect("temporary paths are UTF-8")
}

/// `pagewise` as an argument of another program.
pub fn pagewise_path() -> &'static str {
    programs()
        .pagewise
        .to_str()
        .expect("temporary paths are UTF-8")
}

/// Whether the tests run as root.
pub fn is_root() -> bool {
    fs::read_to_string("/proc/self/status")
        .expect("/proc is mounted")
        .lines()
        .find_map(|line| line.strip_prefix("Uid:"))
        .and_then(|ids| ids.split_whitespace().nth(1))
        == Some("0")
}

/// Reports that a test did not run, in a way that the harness cannot hide.
pub fn skip(test: &str, why: &str) {
    crate::skipped::note(test, why);
}

/// Whether a helper command succeeds, so that a test that needs it can run.
pub fn works(program: &str, arguments: &[&str]) -> bool {
    Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// What a run printed and how it ended.
pub struct Outcome {
    /// Status as a shell reports it.
    pub status: i32,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl From<Output> for Outcome {
    fn from(output: Output) -> Self {
        let status = output.status;
        Self {
            status: status
                .code()
                .unwrap_or_else(|| 128 + status.signal().unwrap_or(0)),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

impl Outcome {
    /// Runs a command to its end.
    pub fn run(command: &mut Command) -> Self {
        command
            .output()
            .unwrap_or_else(|error| panic!("{command:?}: {error}"))
            .into()
    }

    /// Asserts the exit status; otherwise shows everything printed. A panic of the program under
    /// test is always a failure.
    #[track_caller]
    pub fn ended_with(self, status: i32) -> Self {
        assert_eq!(self.status, status, "exit status\n{}", self.transcript());
        assert!(
            !self.stderr.contains("panicked at"),
            "it panicked\n{}",
            self.transcript()
        );
        self
    }

    /// Asserts that messages on standard error contain each of these words.
    #[track_caller]
    pub fn tells(self, words: &[&str]) -> Self {
        let said = self.stderr.to_lowercase();
        for word in words {
            assert!(
                said.contains(&word.to_lowercase()),
                "no {word:?} in the messages\n{}",
                self.transcript()
            );
        }
        self
    }

    /// Standard output as JSON.
    #[track_caller]
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("stdout is no JSON: {error}\n{}", self.transcript()))
    }

    fn transcript(&self) -> String {
        let mut text = String::new();
        let _ = write!(
            text,
            "--- stdout\n{:.4000}\n--- stderr\n{:.4000}",
            self.stdout, self.stderr
        );
        text
    }
}

/// Longest wait for what takes less than a second on an idle machine. It only ends a hang: a machine
/// so busy that all takes 300 times as long is none on which tests run.
const PATIENCE: Duration = Duration::from_secs(300);

/// Waits until a file exists.
pub fn await_file(path: &Path) {
    let deadline = Instant::now() + PATIENCE;
    while !path.exists() {
        assert!(Instant::now() < deadline, "{} never came", path.display());
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Sends a signal to a process group by the shell's builtin kill: small systems have no program for
/// it.
pub fn signal_group(leader: u32, signal: &str) {
    let kill = format!("kill -s {signal} -- -{leader}");
    assert!(works("sh", &["-c", &kill]), "{kill} failed");
}

/// All notes of findings on how events were collected, as one text.
pub fn notes(findings: &serde_json::Value) -> String {
    findings["evidence"]["run"]["collection"]["notes"]
        .as_array()
        .expect("findings have notes")
        .iter()
        .filter_map(|note| note.as_str())
        .collect::<Vec<_>>()
        .join("\n")
}

/// Faults of the observed run by exact counts.
pub fn faults(findings: &serde_json::Value) -> u64 {
    let count = |name: &str| {
        findings["evidence"]["run"]["cost"][name]
            .as_u64()
            .expect("a count of faults")
    };
    count("minor_faults") + count("major_faults")
}
