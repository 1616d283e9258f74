//! What an experiment asks of the world: runs of a command, and the time.

use super::group::spawn;
use super::larger_limit::LargerLimit;
use super::server::{self, Failure};
use super::{Candidate, Options};
use anyhow::{Context, Result};
use pagewise_linux::page_cache;
use pagewise_linux::process::{Finished, Launch, interrupt};
use std::ffi::OsString;
use std::time::{Duration, Instant};

/// Runs a command, and has a clock. [`Live`] starts processes; tests use a script and a clock that
/// only its runs advance.
pub trait Runner {
    /// Runs the command once, with what `arm` changes. Ends it after `patience`.
    ///
    /// # Errors
    /// If it cannot be started or waited for.
    fn run(&self, arm: &Candidate, patience: Duration) -> Result<Run>;

    /// The present moment.
    fn now(&self) -> Instant;

    /// Whether the user wants an end.
    fn is_interrupted(&self) -> bool;
}

/// How one run ended.
#[derive(Debug)]
pub enum Run {
    /// By itself.
    Ended(Finished),
    /// By us, because it took too long.
    TooLong,
    /// A server was not driven to the end of its load.
    Failed(Failure),
}

/// Time between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_millis(500);

/// Runs of a real command.
#[derive(Clone, Copy, Debug)]
pub struct Live<'a> {
    command: &'a [OsString],
    options: &'a Options,
}

impl<'a> Live<'a> {
    /// Runs of `command` with the input, the output, the cold files and the load of `options`.
    #[must_use]
    pub fn new(command: &'a [OsString], options: &'a Options) -> Self {
        Self { command, options }
    }
}

impl Runner for Live<'_> {
    fn run(&self, arm: &Candidate, patience: Duration) -> Result<Run> {
        let command = [&arm.under, self.command].concat();
        let launch = Launch::of(&command).context("no command was given")?;
        let launch = Launch {
            settings: arm.settings.clone(),
            input: self.options.input.clone(),
            output: self.options.output.clone(),
            ..launch
        };
        for file in &self.options.cold {
            // The major faults show whether it worked.
            let _ = page_cache::evict(file);
        }
        let larger = arm.larger_limit.as_ref();
        let room = larger.map(LargerLimit::make).transpose()?;
        let ended = match &self.options.load {
            Some(load) => server::once(&launch, load, room.as_ref(), patience),
            None => Ok(spawn(&launch, room.as_ref())?.wait_within(patience, GRACE)?),
        };
        match ended {
            Ok(Some(finished)) => Ok(Run::Ended(finished)),
            Ok(None) => Ok(Run::TooLong),
            Err(error) => error.downcast().map(Run::Failed),
        }
    }

    fn now(&self) -> Instant {
        Instant::now()
    }

    fn is_interrupted(&self) -> bool {
        interrupt::requested().is_some()
    }
}

#[cfg(test)]
mod tests;
