//! `pagewise huge`: predicts whether huge pages help or hurt, controls them live, and reverts
//! changes.

mod balance;
mod probe;
mod simulate;
mod trace;

use anyhow::Result;
use clap::Subcommand;
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  pagewise huge probe                      what this machine's TLB does
  pagewise huge balance -p 4242            would huge pages help this process?
  pagewise huge balance -- ./server        control them while it runs
  pagewise huge simulate --workload oltp   the same for TLBs of any machine
  pagewise huge balance --undo -p 4242     restore a process's page sizes";

/// Find out whether huge pages help or hurt, and control them in running programs
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES, arg_required_else_help = true)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    Probe(probe::Args),
    Balance(balance::Args),
    Trace(trace::Args),
    Simulate(simulate::Args),
}

/// Runs one of the commands.
///
/// # Errors
/// Those of the command.
pub fn run(args: &Args) -> Result<ExitCode> {
    match &args.command {
        Command::Probe(args) => probe::run(args),
        Command::Balance(args) => balance::run(args),
        Command::Trace(args) => trace::run(args),
        Command::Simulate(args) => simulate::run(args),
    }
}
