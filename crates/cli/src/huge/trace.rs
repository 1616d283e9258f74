//! `pagewise huge trace`: every memory access of an unmodified program, by QEMU's user-mode
//! emulator and our plugin.

mod plugin;

use anyhow::{Context, Result, bail};
use plugin::Emulator;
use rustix::io::{FdFlags, fcntl_setfd};
use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, IsTerminal, Read, Seek, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, ExitStatus};
use std::time::Instant;

const EXAMPLES: &str = "\
Examples:
  pagewise huge trace -o t.pwm -- ./program      all accesses of a program
  pagewise huge trace -o t.pwm --limit 100M -- python3 x.py
  pagewise huge trace -o t.pwm --every 20 -- ./long_run
  pagewise huge trace -o - -- ./program | zstd > t.pwm.zst
  pagewise huge trace --pages -o - -- ./program | pagewise huge simulate -
  pagewise huge simulate t.pwm                   what huge pages would do";

/// Record every memory access of a program, for `huge simulate`
///
/// Runs the program in QEMU's user-mode emulator with a plugin of ours, some ten times slower than
/// by itself. Needs qemu-user and a C compiler; both are named where they are missing. Programs
/// that the traced one executes are not traced, and a forked child is not either.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The trace to write; - is standard output, and the program's output then goes to stderr
    #[arg(short, long, value_name = "FILE", default_value = "pagewise.pwm")]
    output: PathBuf,

    /// Write this many accesses at most, such as 100M; later ones are counted as dropped
    #[arg(long, value_name = "N", value_parser = count)]
    limit: Option<u64>,

    /// Write one stretch of a million accesses in so many, of the whole run; the rest is counted
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    every: u64,

    /// Write pages of 4 KiB, not addresses: smaller and faster, and all that 'huge simulate' looks
    /// at, whose figures are the same; places within pages and which accesses wrote are left out
    #[arg(long)]
    pages: bool,

    /// Print no progress
    #[arg(short, long)]
    quiet: bool,

    /// The program to run and its arguments
    #[arg(last = true, value_name = "CMD", required = true)]
    command: Vec<OsString>,
}

/// Traces and returns the program's status.
///
/// # Errors
/// When the emulator, a compiler or the program is missing, or the trace cannot be written.
pub fn run(args: &Args) -> Result<ExitCode> {
    let to_stdout = args.output == Path::new("-");
    if to_stdout && io::stdout().is_terminal() {
        bail!("a trace is no text: name a file by -o, or pipe it");
    }
    let started = Instant::now();
    let name = args.output.display();
    let sink: OwnedFd = match to_stdout {
        true => io::stdout().as_fd().try_clone_to_owned()?,
        false => crate::destination::begin(&args.output)?.into(),
    };
    let extent = Extent {
        limit: args.limit,
        every: args.every,
        by_page: args.pages,
    };
    let mut child = emulate(&args.command, sink, extent, to_stdout)?;
    let status = child.wait()?;
    if !to_stdout && status.success() && !is_whole(&args.output)? {
        // Said even with --quiet: half a trace should not pass for a whole one.
        writeln!(
            io::stderr(),
            "pagewise: the trace has no end: the program replaced itself by another (a launcher \
             script does), and that one was not traced. Give the program that does the work"
        )?;
    }
    if !args.quiet && !to_stdout {
        let bytes = std::fs::metadata(&args.output).map_or(0, |found| found.len());
        writeln!(
            io::stderr(),
            "pagewise: {} of trace in {:.1} s: {name}",
            pagewise_model::units::Bytes(bytes),
            started.elapsed().as_secs_f64()
        )?;
    }
    Ok(exit_code(status))
}

/// Whether a trace ends with the block that says so: kind 127, a length, and as many bytes.
fn is_whole(path: &Path) -> io::Result<bool> {
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

/// Bytes of the end block at most: kind, length and two varints.
const LONGEST_END: u64 = 22;

/// Starts `command` under the emulator; its trace goes to `sink`, which the caller closes so that
/// a reader of a pipe sees the end. Its output goes to standard error where `stdout_is_taken`.
fn emulate(
    command: &[OsString],
    sink: OwnedFd,
    extent: Extent,
    stdout_is_taken: bool,
) -> Result<Child> {
    let emulator = Emulator::ready()?;
    let program = Program::of(command)?;
    // The emulator inherits it under the same number; the plugin moves it out of the way.
    fcntl_setfd(&sink, FdFlags::empty()).context("cannot hand on the trace's file")?;
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

/// What of a run is written.
#[derive(Clone, Copy, Debug)]
struct Extent {
    /// Accesses at most.
    limit: Option<u64>,
    /// One stretch in so many.
    every: u64,
    /// Pages, not addresses.
    by_page: bool,
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

/// What the emulator loads: the program itself, or the interpreter of a script.
struct Program {
    /// `argv[0]`.
    name: OsString,
    path: PathBuf,
    arguments: Vec<OsString>,
}

impl Program {
    fn of(command: &[OsString]) -> Result<Self> {
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
        Self::of(&script(line, path, arguments))
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

/// The program's own status, as a shell gives it.
fn exit_code(status: ExitStatus) -> ExitCode {
    let code = status.code().or(status.signal().map(|signal| 128 + signal));
    ExitCode::from(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
}

/// A number of accesses: `100M` is 100 million.
fn count(text: &str) -> Result<u64, String> {
    let (digits, factor) = match text.as_bytes().last() {
        Some(b'k' | b'K') => (&text[..text.len() - 1], 1_000),
        Some(b'm' | b'M') => (&text[..text.len() - 1], 1_000_000),
        Some(b'g' | b'G') => (&text[..text.len() - 1], 1_000_000_000),
        _ => (text, 1),
    };
    let number: Option<u64> = digits.parse().ok();
    number
        .and_then(|number| number.checked_mul(factor))
        .filter(|&number| number > 0)
        .ok_or_else(|| format!("'{text}' is no number of accesses; write it like 100M"))
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

    #[test]
    fn numbers_of_accesses() {
        assert_eq!(count("100M"), Ok(100_000_000));
        assert_eq!(count("7"), Ok(7));
        assert!(count("0").is_err() && count("many").is_err());
    }
}
