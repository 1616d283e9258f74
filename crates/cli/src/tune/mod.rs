//! `pagewise tune`: tries allocator and huge-page settings on the command itself and prints the
//! best, the smallest value that suffices, and what time costs in memory.
//!
//! Settings are tried in the target program because state matters: one early allocation can
//! change what glibc does for the rest of a run.

mod search;

use crate::progress::Progress;
use crate::terminal;
use anyhow::{Result, anyhow};
use pagewise_analyse::compare::{Criteria, Stopping};
use pagewise_analyse::tune::{Recipe, parse_size, recipes};
use pagewise_linux::process::{Output, interrupt, library};
use pagewise_model::units::Bytes;
use pagewise_operate::experiment::{Candidate, Options, SavedInput};
use std::ffi::OsString;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

/// Try settings on a command and keep the best
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Time to spend, such as 90s, 5m or 1h
    ///
    /// Two rounds run in any case. With little time, fewer settings are tried.
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = crate::duration::parse)]
    budget: Duration,
    /// Most resident memory that a setting may need at its peak, such as 2G
    #[arg(long, value_name = "SIZE", value_parser = size)]
    max_rss: Option<Bytes>,
    /// Most pairs of runs for one setting; fewer than 6 prove nothing
    #[arg(long, value_name = "N", default_value_t = 30, value_parser = clap::value_parser!(u32).range(6..=1000))]
    max_pairs: u32,
    /// Interval half-width in percent that is narrow enough
    #[arg(long, value_name = "PERCENT", default_value_t = 2.0, value_parser = percent)]
    precision: f64,
    /// Only settings whose name contains this text (may be given several times)
    #[arg(long = "only", value_name = "TEXT")]
    only: Vec<String>,
    /// Let the command write to our standard error instead of /dev/null
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

/// A setting to try, with the recipe that it came from.
#[derive(Clone, Debug)]
pub struct Trial {
    candidate: Candidate,
    recipe: Recipe,
    value: Option<Bytes>,
    library: Option<String>,
}

/// Tries the settings and prints what came of it.
///
/// # Errors
/// When the command cannot be run, or nothing is left to try.
pub fn run(args: &Args) -> Result<ExitCode> {
    interrupt::install()?;
    let (trials, absent) = trials(&args.only)?;
    let input = SavedInput::take(terminal::tell)?;
    let progress = Progress::new();
    let result = search::search(
        &args.command,
        &trials,
        &args.options(&input),
        absent,
        &progress.listener(),
    )?;
    progress.finish();
    let mut out = terminal::output(args.json);
    let text = match args.json {
        true => pagewise_report::json::to_string(&result)?,
        false => pagewise_report::text::tune::render(&result, terminal::width()),
    };
    out.write_all(text.as_bytes())?;
    Ok(ExitCode::SUCCESS)
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

/// Everything to try, and notes on what is not installed.
fn trials(only: &[String]) -> Result<(Vec<Trial>, Vec<String>)> {
    let mut absent: Vec<String> = Vec::new();
    let mut trials = Vec::new();
    for recipe in recipes()? {
        let library = match &recipe.library {
            None => None,
            Some(name) => match library::find(Path::new("/"), name) {
                Some(path) => Some(path.to_string_lossy().into_owned()),
                None => {
                    let note = format!("{name} is not installed, so it was not tried.");
                    if !absent.contains(&note) {
                        absent.push(note);
                    }
                    continue;
                }
            },
        };
        let values = recipe.values.iter().copied().map(Some);
        let values: Vec<Option<Bytes>> = if recipe.values.is_empty() {
            vec![None]
        } else {
            values.collect()
        };
        let tried = values
            .into_iter()
            .map(|value| Trial::new(&recipe, value, library.clone()));
        trials.extend(tried.enumerate());
    }
    // The first value of each recipe before the second of any.
    trials.sort_by_key(|(pass, _)| *pass);
    let mut trials: Vec<Trial> = trials.into_iter().map(|(_, trial)| trial).collect();
    trials.retain(|trial| {
        only.is_empty()
            || only
                .iter()
                .any(|text| trial.candidate.name.contains(text.as_str()))
    });
    if trials.is_empty() {
        let known = recipes()?
            .into_iter()
            .map(|recipe| recipe.name)
            .collect::<Vec<_>>()
            .join(", ");
        return Err(anyhow!("no setting matches --only; there are: {known}"));
    }
    Ok((trials, absent))
}

impl Trial {
    fn new(recipe: &Recipe, value: Option<Bytes>, library: Option<String>) -> Self {
        let candidate = Candidate {
            name: recipe.name_at(value),
            settings: recipe.settings(value, library.as_deref()),
            fewer_faults: recipe.fewer_faults,
            ..Candidate::default()
        };
        Self {
            candidate,
            recipe: recipe.clone(),
            value,
            library,
        }
    }

    /// The same recipe at another value.
    fn at(&self, value: Bytes) -> Self {
        Self::new(&self.recipe, Some(value), self.library.clone())
    }
}

fn size(text: &str) -> Result<Bytes, String> {
    parse_size(text).ok_or_else(|| format!("'{text}' is no size; write it like 512M or 2G"))
}

fn percent(text: &str) -> Result<f64, String> {
    match text.trim_end_matches('%').trim().parse::<f64>() {
        Ok(value) if value > 0.0 && value < 100.0 => Ok(value),
        _ => Err(format!("'{text}' is no percentage between 0 and 100")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn glibc_recipes_are_tried_at_each_value_and_filters_choose() {
        let (trials, _) = trials(&["glibc thresholds".to_owned()]).unwrap();
        let names: Vec<&str> = trials
            .iter()
            .map(|trial| trial.candidate.name.as_str())
            .collect();
        assert_eq!(names[0], "glibc thresholds 64M");
        assert_eq!(names.len(), 4);
        assert_eq!(
            trials[0].at(Bytes(512 << 10)).candidate.name,
            "glibc thresholds 512K"
        );
        assert!(super::trials(&["no such".to_owned()]).is_err());
    }
}
