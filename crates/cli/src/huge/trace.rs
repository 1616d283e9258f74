//! `pagewise huge trace`: every memory access of an unmodified program, by QEMU's user-mode
//! emulator and our plugin.

use crate::status;
use anyhow::{Result, bail};
use pagewise_model::units::Bytes;
use pagewise_operate::destination;
use pagewise_operate::huge::trace::{Extent, Request, is_whole, trace};
use std::ffi::OsString;
use std::io::{self, IsTerminal, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{ExitCode, ExitStatus};
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
/// Runs the program in QEMU's user-mode emulator with Pagewise's plugin, about ten times slower
/// than natively. Needs qemu-user and a C compiler. Neither forked children nor programs that it
/// executes are traced.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The trace to write; - is standard output, and the program's output then goes to stderr
    #[arg(short, long, value_name = "FILE", default_value = "pagewise.pwm")]
    output: PathBuf,

    /// Write at most this many accesses, such as 100M; later ones are counted as dropped
    #[arg(long, value_name = "N", value_parser = count)]
    limit: Option<u64>,

    /// Write one in every N stretches of a million accesses, over the whole run; the rest is only counted
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    every: u64,

    /// Write 4 KiB page numbers instead of addresses: smaller, faster, and enough for 'huge
    /// simulate', whose figures stay the same; offsets within pages, and which accesses were
    /// writes, are left out
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
    let started = Instant::now();
    let status = trace(&args.request(), args.sink()?, args.to_stdout())?;
    if !args.to_stdout() {
        tell(args, status, started)?;
    }
    Ok(status::of_child(status))
}

impl Args {
    fn request(&self) -> Request {
        Request {
            command: self.command.clone(),
            extent: Extent {
                limit: self.limit,
                every: self.every,
                by_page: self.pages,
            },
        }
    }

    fn to_stdout(&self) -> bool {
        self.output == Path::new("-")
    }

    /// The file descriptor to write the trace to.
    fn sink(&self) -> Result<OwnedFd> {
        if !self.to_stdout() {
            return Ok(destination::begin(&self.output)?.into());
        }
        if io::stdout().is_terminal() {
            bail!("a trace is binary: name a file with -o, or pipe it");
        }
        Ok(io::stdout().as_fd().try_clone_to_owned()?)
    }
}

/// Reports what was written, and whether it is complete.
fn tell(args: &Args, status: ExitStatus, started: Instant) -> Result<()> {
    if status.success() && !is_whole(&args.output)? {
        // Printed even with --quiet: half a trace should not pass for a whole one.
        writeln!(
            io::stderr(),
            "pagewise: the trace has no end: the program replaced itself with another, as a launcher script does, which was not traced. Name the program that does the work"
        )?;
    }
    if !args.quiet {
        let bytes = std::fs::metadata(&args.output).map_or(0, |found| found.len());
        writeln!(
            io::stderr(),
            "pagewise: {} of trace in {:.1} s: {}",
            Bytes(bytes),
            started.elapsed().as_secs_f64(),
            args.output.display()
        )?;
    }
    Ok(())
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
        .ok_or_else(|| format!("'{text}' is not a number of accesses; example: 100M"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_accesses() {
        assert_eq!(count("100M"), Ok(100_000_000));
        assert_eq!(count("7"), Ok(7));
        assert!(count("0").is_err() && count("many").is_err());
    }
}
