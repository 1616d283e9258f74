//! `pagewise tune`: tries allocator and huge-page settings on the command itself and prints the
//! best, the smallest value that suffices, and the memory that the gain costs.

use crate::progress::Progress;
use crate::terminal;
use anyhow::Result;
use pagewise_compare::{Criteria, Stopping};
use pagewise_linux::process::{Output, interrupt};
use pagewise_model::tuning::Tuning;
use pagewise_model::units::Bytes;
use pagewise_operate::experiment::{Options, SavedInput};
use pagewise_operate::tune::{search, trials};
use pagewise_report::settings_export::exports;
use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Duration;

/// Try settings on a command and keep the best
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Time to spend, such as 90s, 5m or 1h
    ///
    /// With little time, fewer settings are tried.
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = crate::duration::positive)]
    budget: Duration,
    /// Reject settings whose peak resident memory exceeds this, such as 2G
    #[arg(long, value_name = "SIZE", value_parser = size)]
    max_rss: Option<Bytes>,
    /// Maximum number of run pairs per setting; fewer than 6 prove only gains far above the noise
    #[arg(long, value_name = "N", default_value_t = 30, value_parser = clap::value_parser!(u32).range(6..=1000))]
    max_pairs: u32,
    /// Stop when intervals are this narrow (half-width, in percent)
    #[arg(long, value_name = "PERCENT", default_value_t = 2.0, value_parser = percent)]
    precision: f64,
    /// Only settings whose name contains this text (can be repeated)
    #[arg(long = "only", value_name = "TEXT")]
    only: Vec<String>,
    /// Send the command's output to standard error instead of /dev/null
    #[arg(long)]
    show_output: bool,
    /// Print the result as JSON (schema: pagewise help schema.json)
    #[arg(long)]
    json: bool,
    /// The program to run and its arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<OsString>,
}

const EXAMPLES: &str = "\
Examples:
  pagewise tune -- ./simulate input.dat
  pagewise tune --budget 2m --max-rss 1G -- python3 job.py
  pagewise tune --only glibc --only jemalloc -- ./server --self-test < input

The command runs many times and must do the same work each time. Its output goes
to /dev/null.";

/// Tries the settings and prints the result.
///
/// # Errors
/// If the command cannot be run, or nothing is left to try.
pub fn run(args: &Args) -> Result<ExitCode> {
    interrupt::install()?;
    let (trials, absent) = trials(&args.only)?;
    let input = SavedInput::take(terminal::tell)?;
    let progress = Progress::new();
    let mut result = search(
        &args.command,
        &trials,
        &args.options(&input),
        absent,
        &progress.listener(),
    )?;
    progress.finish();
    write_down(&mut result.evidence);
    terminal::present(&result, args.json, pagewise_report::text::tune::render)?;
    Ok(ExitCode::SUCCESS)
}

/// Adds the winner's settings in the forms for a shell, systemd, Docker and Kubernetes, with the user's
/// own, with which they ran.
fn write_down(result: &mut Tuning) {
    if let Some(winner) = &mut result.winner {
        let own = std::env::vars_os();
        let own = own.filter_map(|(name, value)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        });
        winner.settings = winner.settings.beside_variables(own);
        let forms = exports(&winner.settings).into_iter();
        winner.exports = forms
            .map(|export| (export.label.to_owned(), export.text))
            .collect();
    }
}

impl Args {
    fn options(&self, input: &SavedInput) -> Options {
        let half_width = self.precision / 100.0;
        Options {
            budget: self.budget,
            stopping: Stopping {
                max_pairs: self.max_pairs,
                half_width,
                ..Stopping::default()
            },
            criteria: Criteria {
                max_rss: self.max_rss,
                half_width,
                ..Criteria::default()
            },
            input: input.input(),
            output: if self.show_output {
                Output::Stderr
            } else {
                Output::Null
            },
            ..Options::default()
        }
    }
}

fn size(text: &str) -> Result<Bytes, String> {
    text.parse()
        .map_err(|_| format!("'{text}' is not a size; examples: 512M, 2G"))
}

fn percent(text: &str) -> Result<f64, String> {
    match text.trim_end_matches('%').trim().parse::<f64>() {
        Ok(value) if value > 0.0 && value < 100.0 => Ok(value),
        _ => Err(format!("'{text}' is not a percentage between 0 and 100")),
    }
}
