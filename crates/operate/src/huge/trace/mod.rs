//! Every memory access of an unmodified program, by QEMU's user-mode emulator and our plugin.

mod plugin;

use anyhow::{Context, Result, bail};
use plugin::Emulator;
use rustix::io::{FdFlags, fcntl_setfd};
use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};

/// The program to trace, and how much of the trace is written.
#[derive(Clone, Debug)]
pub struct Request {
    /// The program and its arguments.
    pub command: Vec<OsString>,
    /// How much of the run is written.
    pub extent: Extent,
}

/// How much of a run is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Maximum number of accesses.
    pub limit: Option<u64>,
    /// One in this many stretches.
    pub every: u64,
    /// Pages, not addresses.
    pub by_page: bool,
}

/// Runs the program until it ends, with its trace to `sink`; its output goes to standard error if
/// `stdout_is_taken`.
///
/// # Errors
/// If the emulator, a compiler or the program is missing.
pub fn trace(request: &Request, sink: OwnedFd, stdout_is_taken: bool) -> Result<ExitStatus> {
    let mut child = emulate(&request.command, sink, request.extent, stdout_is_taken)?;
    Ok(child.wait()?)
}

/// Whether a trace ends with its end block: kind 127, a length, and that many bytes.
///
/// # Errors
/// If it cannot be read.
pub fn is_whole(path: &Path) -> io::Result<bool> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    let mut tail = Vec::new();
    file.seek(io::SeekFrom::Start(length.saturating_sub(LONGEST_END)))?;
    file.read_to_end(&mut tail)?;
    Ok((0..tail.len().saturating_sub(2)).any(|at| {
        let rest = tail.len() - at - 2;
        tail[at] == 127 && usize::from(tail[at + 1]) == rest && rest >= 2
    }))
}

/// Maximum bytes of the end block: kind, length and two varints.
const LONGEST_END: u64 = 22;

/// Starts `command` under the emulator; its trace goes to `sink`, which the caller closes so that a
/// reader of a pipe sees the end. Its output goes to standard error if `stdout_is_taken`.
fn emulate(
    command: &[OsString],
    sink: OwnedFd,
    extent: Extent,
    stdout_is_taken: bool,
) -> Result<Child> {
    let emulator = Emulator::ready()?;
    let program = Program::from_command(command)?;
    // The emulator inherits it under the same number; the plugin moves it out of the way.
    fcntl_setfd(&sink, FdFlags::empty()).context("cannot pass on the trace's file")?;
    let mut launch = Command::new(&emulator.program);
    launch
        .arg("-plugin")
        .arg(options(&emulator, command, sink.as_raw_fd(), extent))
        .arg("-0")
        .arg(&program.name)
        .arg(&program.path)
        .args(&program.arguments);
    if stdout_is_taken {
        launch.stdout(io::stderr().as_fd().try_clone_to_owned()?);
    }
    let child = launch.spawn();
    child.with_context(|| format!("cannot run {}", emulator.program.display()))
}

fn options(emulator: &Emulator, command: &[OsString], sink: i32, extent: Extent) -> OsString {
    let shown: Vec<_> = command.iter().map(|word| word.to_string_lossy()).collect();
    let mut note = format!("{} under {}", shown.join(" "), emulator.version);
    if extent.every > 1 {
        let _ = write!(
            note,
            "; one stretch of a million accesses in {}",
            extent.every
        );
    }
    let mut options = OsString::from(&emulator.plugin);
    // Commas separate a plugin's options.
    options.push(format!(",fd={sink},note={}", note.replace(',', ";")));
    options.push(format!(",every={}", extent.every));
    if extent.by_page {
        options.push(",pages=1");
    }
    if let Some(limit) = extent.limit {
        options.push(format!(",limit={limit}"));
    }
    options
}

/// The program for the emulator: the command itself, or the interpreter of a script.
struct Program {
    /// `argv[0]`.
    name: OsString,
    path: PathBuf,
    arguments: Vec<OsString>,
}

impl Program {
    fn from_command(command: &[OsString]) -> Result<Self> {
        let Some((name, arguments)) = command.split_first() else {
            bail!("give a command after --");
        };
        let path = match name.as_bytes().contains(&b'/') {
            true => PathBuf::from(name),
            false => plugin::find(&name.to_string_lossy())
                .with_context(|| format!("there is no program '{}'", name.display()))?,
        };
        let head = head(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let Some(line) = head.strip_prefix(b"#!") else {
            return Ok(Self {
                name: name.clone(),
                path,
                arguments: arguments.to_vec(),
            });
        };
        Self::from_command(&script(line, path, arguments))
    }
}

/// A script's command line: interpreter, its one argument if any (execve(2)), the script.
fn script(line: &[u8], path: PathBuf, arguments: &[OsString]) -> Vec<OsString> {
    let line = line.split(|&byte| byte == b'\n').next().unwrap_or_default();
    let mut words = line.trim_ascii().splitn(2, u8::is_ascii_whitespace);
    let word = |bytes: &[u8]| OsString::from_vec(bytes.trim_ascii().to_vec());
    let mut found: Vec<OsString> = words.by_ref().map(word).collect();
    found.push(path.into());
    found.extend_from_slice(arguments);
    found
}

/// First bytes of a file.
fn head(path: &Path) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    File::open(path)?.take(256).read_to_end(&mut head)?;
    Ok(head)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_run_by_their_interpreter() {
        let line = b"/usr/bin/env python3 -u\nprint()";
        let found = script(line, "x.py".into(), &["a".into()]);
        assert_eq!(found, ["/usr/bin/env", "python3 -u", "x.py", "a"]);
        let found = script(b" /bin/sh\n", "x".into(), &[]);
        assert_eq!(found, ["/bin/sh", "x"]);
    }
}
