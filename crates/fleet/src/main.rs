//! `pagewise-fleet`: Pagewise's questions over the tables of many hosts, answered by DataFusion.
//! `pagewise fleet …` runs it.
#![forbid(unsafe_code)]

mod answer;
mod cluster;
mod commands;
mod condition;
mod data;
mod distributed;
mod engine;
mod flame;
mod page;
mod reading;
mod resamples;
mod text;

use answer::Answer;
use anyhow::Result;
use clap::{Args, Parser, Subcommand};
use cluster::Choice;
use pagewise_report::causes;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  pagewise report perf.data --export parquet -o fleet/host=$(hostname)
  pagewise fleet top --data fleet              what costs the fleet most
  pagewise fleet outliers --data fleet         hosts that differ from their like
  pagewise fleet diff --data fleet --before day=2026-11-21 --after day=2026-11-22
  pagewise fleet save --data fleet -o save.html   what the advice would bring, as a page
  pagewise fleet history --data fleet --function clear_page_erms
  pagewise fleet sql --data fleet 'SELECT host, kernel FROM runs'
  pagewise fleet put --to s3://bucket/fleet fleet   tables to a bucket";

/// Pagewise's questions over the recordings of many hosts
///
/// Reads the tables that `--export parquet` writes, in folders such as day=2026-11-22/host=web-17:
/// each key=value of a path is a column of the table `runs`. The unit is the host: intervals come
/// from resampling hosts, and of everything that is claimed at most 5 % is expected to be chance.
#[derive(Parser)]
#[command(name = "pagewise-fleet", bin_name = "pagewise fleet", version, after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// What costs the fleet most: causes, functions, stacks, settings
    Top(commands::top::Options),
    /// Hosts that differ from others of the same role, kernel and CPU, and what differs on them
    Outliers(commands::outliers::Options),
    /// What differs between two sets of hosts or days
    Diff(commands::diff::Options),
    /// What the advice would bring if it were followed everywhere
    Save(commands::save::Options),
    /// A finding or a function over days, with the days on which it changed
    History(commands::history::Options),
    /// The tables themselves
    Sql(commands::sql::Options),
    /// Send tables to a bucket, and remove them here
    Put(commands::put::Options),
}

/// Options of all commands.
#[derive(Args, Clone, Debug)]
pub struct Common {
    /// Folder with tables, at any depth; or s3://BUCKET/PREFIX, gs://BUCKET/PREFIX
    ///
    /// Access to buckets is what the environment says: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY,
    /// AWS_REGION, AWS_ENDPOINT_URL, GOOGLE_APPLICATION_CREDENTIALS…, or the machine's role.
    #[arg(long, value_name = "DIR|URL")]
    data: String,

    /// Only these runs: an SQL condition on the table `runs`, or key=value
    #[arg(long = "where", value_name = "CONDITION")]
    condition: Option<String>,

    /// Print JSON
    #[arg(long)]
    json: bool,

    /// What runs the queries: this program, or a Ballista cluster
    ///
    /// The executors of a cluster read the same paths or the same bucket as this machine, which still
    /// reads the table `runs` and the end of each file.
    #[arg(long, value_name = "embedded|df://HOST:PORT", default_value_t = Choice::Embedded)]
    engine: Choice,

    /// With df://: give up on a query after this time
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    patience: u64,

    /// Memory that the engine may use here, in MiB
    #[arg(long, value_name = "MIB", default_value_t = 768)]
    memory: usize,

    /// Threads [default: one per CPU]; with df://, parts of a query [default: 64]
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
}

/// Options of all commands that answer a question.
#[derive(Args, Clone, Debug)]
pub struct Output {
    /// Also write the answer as one page that opens offline
    #[arg(short = 'o', long = "output", value_name = "FILE.html")]
    page: Option<PathBuf>,
}

fn main() -> ExitCode {
    match run(Cli::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(
                io::stderr(),
                "pagewise fleet: {}",
                causes::sentence(error.chain())
            );
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> Result<()> {
    use commands::{diff, history, outliers, put, save, sql, top};
    match command {
        Command::Sql(options) => sql::run(&options),
        Command::Put(options) => put::run(&options),
        Command::Top(options) => present(&top::run(&options)?, &options.common, &options.output),
        Command::Outliers(options) => {
            present(&outliers::run(&options)?, &options.common, &options.output)
        }
        Command::Diff(options) => present(&diff::run(&options)?, &options.common, &options.output),
        Command::Save(options) => present(&save::run(&options)?, &options.common, &options.output),
        Command::History(options) => {
            present(&history::run(&options)?, &options.common, &options.output)
        }
    }
}

fn present(answer: &Answer, common: &Common, output: &Output) -> Result<()> {
    if let Some(path) = &output.page {
        page::write(path, answer)?;
    }
    let mut out = io::stdout().lock();
    match common.json {
        true => writeln!(out, "{}", serde_json::to_string(answer)?)?,
        false => out.write_all(answer.text().as_bytes())?,
    }
    out.flush()?;
    Ok(())
}

/// Whether a reader such as `head` closed the pipe: not a failure.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let mut causes = error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<io::Error>());
    causes.any(|cause| cause.kind() == io::ErrorKind::BrokenPipe)
}
