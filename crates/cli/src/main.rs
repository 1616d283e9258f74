//! `pagewise`: finds out why a Linux program loses time in memory management, and fixes it.
#![forbid(unsafe_code)]

mod allocations;
mod bench;
mod bytes;
mod check;
mod diff;
mod doctor;
mod duration;
mod export;
mod fault_paths;
mod fleet;
mod foreign;
mod gate;
mod help;
mod huge;
mod input;
mod manual;
mod memory;
mod mine;
mod open;
mod own_library;
mod page;
mod profile_input;
mod progress;
mod record;
mod recorded;
mod report;
mod run;
mod seen;
mod size;
mod standard_output;
mod status;
mod stored;
mod terminal;
mod trace;
mod tune;
mod watch;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, Parser, Subcommand};
use pagewise_report::causes;
use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

/// Finds out why a Linux program loses time in memory management, and fixes it.
#[derive(Parser)]
#[command(
    name = "pagewise",
    version,
    propagate_version = true,
    disable_help_subcommand = true,
    subcommand_required = true,
    arg_required_else_help = true,
    after_help = EXAMPLES
)]
struct Cli {
    /// When to colour text: auto is on a terminal only
    #[arg(
        long,
        value_enum,
        value_name = "WHEN",
        default_value_t,
        global = true,
        hide_possible_values = true
    )]
    color: terminal::Colour,

    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  pagewise doctor -- ./simulate input.dat     what is slow, why, a fix
  pagewise doctor --prove -- ./simulate       the same, and a proof
  pagewise doctor -p 4242 --duration 10s      a running process
  pagewise check                              what this machine supports";

#[derive(Subcommand)]
enum Command {
    Doctor(doctor::Args),
    Record(record::RecordArgs),
    Trace(trace::TraceArgs),
    /// Show where the time of a recording goes, why the program faults, and what to change
    #[command(after_help = report::EXAMPLES)]
    Report(report::Args),
    /// Show what differs between two recordings, and how sure that is
    #[command(long_about = diff::LONG_ABOUT, after_help = diff::EXAMPLES)]
    Diff(diff::Args),
    Fleet(fleet::FleetArgs),
    Tune(tune::Args),
    #[command(after_help = gate::EXAMPLES)]
    Gate(gate::Args),
    Memory(memory::Args),
    Bench(bench::Args),
    Mine(mine::Arguments),
    Huge(huge::Args),
    /// Run a program inside a memory budget, paged in user space
    #[command(after_help = run::EXAMPLES)]
    Run(run::Args),
    /// Check what this machine supports and how to enable the rest
    #[command(after_help = check::EXAMPLES)]
    Check(check::Args),
    /// Watch a program's faults, memory and CPU time, live or as a table
    #[command(after_help = watch::EXAMPLES)]
    Watch(watch::Args),
    /// Print shell completions
    #[command(
        after_help = "Example:\n  pagewise completions bash > /etc/bash_completion.d/pagewise"
    )]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Write the manual pages
    #[command(
        after_help = "Examples:\n  pagewise manual ~/.local/share/man/man1\n  man pagewise-doctor"
    )]
    Manual {
        /// Folder for the pages; created if missing
        #[arg(default_value = "man")]
        folder: std::path::PathBuf,
    },
    Help(help::Args),
}

/// Commands that change or observe the machine, and therefore first restore what a killed one left
/// changed. `trace` and `huge` restore by themselves when they change the same settings.
fn looks_at_the_machine(command: &Command) -> bool {
    matches!(
        command,
        Command::Doctor(_)
            | Command::Record(_)
            | Command::Watch(_)
            | Command::Tune(_)
            | Command::Gate(_)
            | Command::Run(_)
            | Command::Check(_)
    )
}

fn main() -> ExitCode {
    let cli = Cli::try_parse().unwrap_or_else(|error| refuse(error));
    let outcome = run(cli);
    pagewise_linux::perf::leave_to_successor();
    match outcome {
        Ok(code) => code,
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            let message = standard_output::failure(error.chain());
            let message = message.unwrap_or_else(|| causes::sentence(error.chain()));
            terminal::tell(&format!("pagewise: {message}"));
            ExitCode::FAILURE
        }
    }
}

fn run(cli: Cli) -> anyhow::Result<ExitCode> {
    terminal::set_colour(cli.color);
    if looks_at_the_machine(&cli.command) {
        for one in pagewise_linux::left_behind::restore() {
            terminal::tell(&format!("pagewise: {one}"));
        }
    }
    if cli.command.observes_all_work() {
        // Without it, work that outlives the command is not seen.
        let _ = pagewise_linux::process::adopt();
    }
    match cli.command {
        Command::Doctor(args) => doctor::run(&args),
        Command::Record(args) => record::run(args),
        Command::Trace(args) => trace::run(args),
        Command::Report(args) => report::run(&args),
        Command::Diff(args) => diff::run(&args),
        Command::Fleet(args) => fleet::run(&args),
        Command::Tune(args) => tune::run(&args),
        Command::Gate(args) => gate::run(&args),
        Command::Memory(args) => memory::run(&args),
        Command::Bench(args) => bench::run(&args),
        Command::Mine(arguments) => mine::run(&arguments),
        Command::Huge(args) => huge::run(&args),
        Command::Run(args) => run::run(&args),
        Command::Check(args) => check::run(&args),
        Command::Watch(args) => watch::run(&args),
        Command::Completions { shell } => {
            // Into memory first: written straight to a closed pipe, it would panic.
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "pagewise", &mut script);
            standard_output::standard_output().write_all(&script)?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Manual { folder } => {
            manual::write(Cli::command(), &folder)?;
            eprintln!("Manual pages are in {}", folder.display());
            Ok(ExitCode::SUCCESS)
        }
        Command::Help(args) => {
            help::run(&args, Cli::command())?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

impl Command {
    /// Whether it measures a command with everything that the command starts.
    fn observes_all_work(&self) -> bool {
        matches!(
            self,
            Self::Doctor(_) | Self::Record(_) | Self::Gate(_) | Self::Tune(_)
        )
    }
}

/// Exits with the usage error, and with help for users who do not know what to type.
fn refuse(error: clap::Error) -> ! {
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
        && std::env::args_os().len() < 2
        && io::stderr().is_terminal()
    {
        terminal::tell(help::FIRST_STEPS);
        std::process::exit(error.exit_code());
    }
    if !lacks_program(&error) {
        with_tip(error).exit();
    }
    // Standard error may be closed; the status reports the error as well.
    let _ = error.print();
    help::tell_busiest();
    std::process::exit(error.exit_code());
}

/// Whether `doctor` was given neither a program nor a process.
fn lacks_program(error: &clap::Error) -> bool {
    let says = |kind, words| {
        let text = error.get(kind).map(ToString::to_string);
        text.is_some_and(|text| text.contains(words))
    };
    error.kind() == ErrorKind::MissingRequiredArgument
        && says(ContextKind::Usage, "pagewise doctor ")
        && (says(ContextKind::InvalidArg, "CMD") || says(ContextKind::InvalidArg, "--pid"))
}

/// If a word was refused where a program goes after `--`, or a process after `-p`, adds how to write that.
fn with_tip(mut error: clap::Error) -> clap::Error {
    if let Some(word) = program_without_dashes(&error) {
        let tip = match word.bytes().all(|byte| byte.is_ascii_digit()) {
            true => format!("name a process by -p, as in: -p {word}"),
            false => format!("put a program and its arguments after --, as in: -- {word}"),
        };
        let tip = ContextValue::StyledStrs(vec![tip.into()]);
        error.insert(ContextKind::Suggested, tip);
    }
    error
}

/// The refused word, where it looks like a program.
fn program_without_dashes(error: &clap::Error) -> Option<String> {
    let text = |kind| error.get(kind).map(ToString::to_string);
    let word = text(ContextKind::InvalidArg)?;
    let usage = text(ContextKind::Usage)?;
    let takes_program = usage.contains("-- <CMD>...") || usage.contains("-- <COMMAND>...");
    let is_one = error.kind() == ErrorKind::UnknownArgument && !word.starts_with('-');
    (is_one && takes_program).then_some(word)
}

/// Whether a reader such as `head` closed the pipe, having read all it wanted: not a failure.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<io::Error>())
        .any(|cause| cause.kind() == io::ErrorKind::BrokenPipe)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_help(command: &clap::Command) {
        let name = command.get_name();
        let notes = command.get_after_help().map(ToString::to_string);
        for line in notes.unwrap_or_default().lines() {
            let width = line.chars().count();
            assert!(width <= 80, "{name}: {width} columns: {line}");
        }
        command.get_subcommands().for_each(check_help);
    }

    #[test]
    fn examples_fit_a_narrow_terminal() {
        check_help(&Cli::command());
    }

    #[test]
    fn a_program_without_dashes_before_it_is_told_how() {
        let message = |words: &[&str]| match Cli::try_parse_from(words) {
            Ok(_) => panic!("{words:?} passed"),
            Err(error) => with_tip(error).to_string(),
        };
        let told_for = |command| message(&["pagewise", command, "./x", "-v"]);
        for command in ["doctor", "record", "trace", "tune", "gate", "run"] {
            let text = told_for(command);
            assert!(text.contains("as in: -- ./x\n"), "{command}: {text}");
        }
        assert!(message(&["pagewise", "watch", "./x"]).contains("as in: -- ./x\n"));
        assert!(!told_for("check").contains("as in"));
        assert!(!message(&["pagewise", "doctor", "--prov", "--", "x"]).contains("as in"));
    }

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }
}
