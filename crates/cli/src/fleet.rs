//! `pagewise fleet`: runs `pagewise-fleet`, a program of its own, since the engine inside it is many
//! times as large as everything else.

use anyhow::{Context, Result, bail};
use clap::Args;
use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

const EXAMPLES: &str = "\
Examples:
  pagewise fleet top --data fleet              what costs the fleet most
  pagewise fleet top --data fleet --where role=db --json
  pagewise fleet top --data fleet --engine df://HOST:50050   on a cluster
  pagewise fleet outliers --data fleet --like role
  pagewise fleet diff --data fleet --before kernel=6.1.9 --after kernel=6.12.3
  pagewise fleet diff --data fleet --before … --after … --flame change.svg
  pagewise fleet save --data fleet             what the advice would bring
  pagewise fleet save --data fleet -o save.html   the same as a page
  pagewise fleet history --data fleet --finding churn.brk
  pagewise fleet history --data fleet --function memset
  pagewise fleet sql --data fleet 'SELECT host, kernel FROM runs'
  pagewise fleet put --to s3://bucket/fleet fleet
                                               tables to a bucket";

/// Ask the tables of many hosts: what costs most, which hosts differ, what changed (pagewise-fleet)
///
/// Runs pagewise-fleet, which is installed separately, with these arguments. Its commands: top,
/// outliers, diff, save, history, sql, put; pagewise fleet top --help shows the options of one. The tables
/// are those that --export parquet writes (pagewise help fleet).
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct FleetArgs {
    /// A command of pagewise-fleet and its options
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "ARGS"
    )]
    arguments: Vec<OsString>,
}

const PROGRAM: &str = "pagewise-fleet";

/// Becomes `pagewise-fleet`.
///
/// # Errors
/// If it is not installed.
pub fn run(args: &FleetArgs) -> Result<ExitCode> {
    let program = program();
    let error = Command::new(&program).args(&args.arguments).exec();
    match error.kind() {
        ErrorKind::NotFound => bail!(
            "{PROGRAM} is neither beside pagewise nor in PATH; from a clone, with Rust 1.94 or \
             newer, cargo install --locked --path crates/fleet installs it. Without it, DuckDB and \
             others read the same tables: pagewise help fleet"
        ),
        _ => Err(error).with_context(|| format!("cannot run {}", program.display())),
    }
}

/// `pagewise-fleet`: the one beside us, or the one in `PATH`.
pub fn program() -> PathBuf {
    let us = std::env::current_exe().ok();
    let beside = us.map(|us| us.with_file_name(PROGRAM));
    let beside = beside.filter(|path| path.is_file());
    beside.unwrap_or_else(|| PROGRAM.into())
}
