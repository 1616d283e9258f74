//! What an experiment asks of the world: runs of a command, and the time.

use super::group::spawn;
use super::killed::Kills;
use super::larger_limit::LargerLimit;
use super::reach::{Observer, Reach};
use super::server::{self, Failure};
use super::{Candidate, Options};
use anyhow::{Context, Result};
use pagewise_linux::page_cache;
use pagewise_linux::process::{Finished, Launch, Running, interrupt};
use pagewise_model::run::RunCost;
use std::ffi::OsString;
use std::time::{Duration, Instant};

/// Result of one measurement.
pub(super) enum Measured {
    Cost(RunCost),
    Failed(Failure),
    /// It was ended by the patience that it was given.
    TooLong,
    Interrupted,
    OutOfTime,
}

/// Runs a command, and has a clock. [`Live`] starts processes; tests use a script and a clock that
/// only its runs advance.
pub trait Runner {
    /// Runs the command once, with what `arm` changes. Ends it after `patience`.
    ///
    /// # Errors
    /// If it cannot be started or waited for.
    fn run(&self, arm: &Candidate, patience: Duration) -> Result<Run>;

    /// The same, and whether the settings of `arm` are seen in its processes, which costs the run a
    /// little.
    ///
    /// # Errors
    /// As [`Runner::run`].
    fn run_observed(&self, arm: &Candidate, patience: Duration) -> Result<(Run, Reach)>;

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

impl Live<'_> {
    /// What is run for an arm.
    fn launch(&self, arm: &Candidate) -> Result<Launch> {
        let command = [&arm.under, self.command].concat();
        let launch = Launch::from_command(&command).context("no command was given")?;
        Ok(Launch {
            settings: arm.settings.clone(),
            input: self.options.input.clone(),
            output: self.options.output.clone(),
            ..launch
        })
    }

    fn run_one(&self, arm: &Candidate, patience: Duration, looks: bool) -> Result<(Run, Reach)> {
        let launch = self.launch(arm)?;
        for file in &self.options.cold {
            // The major faults show whether it worked.
            let _ = page_cache::evict(file);
        }
        let larger = arm.larger_limit.as_ref();
        let room = larger.map(LargerLimit::make).transpose()?;
        // The unchanged command may be one that is killed each time.
        let kills = (!arm.settings.0.is_empty()).then(Kills::so_far).flatten();
        let mut reach = Reach::Unseen;
        let ended = match &self.options.load {
            Some(load) => server::once(&launch, load, room.as_ref(), patience),
            None => {
                let running = spawn(&launch, room.as_ref())?;
                match looks {
                    true => {
                        let mut observer = Observer::new(&arm.settings, running.pid());
                        let ended = watched(running, &mut observer, patience);
                        reach = observer.reach();
                        ended
                    }
                    false => Ok(running.wait_within(patience, GRACE)?),
                }
            }
        };
        let run = match ended {
            Ok(Some(finished)) => match kills.and_then(|kills| kills.failure_of(&finished)) {
                Some(failure) => Run::Failed(failure),
                None => Run::Ended(finished),
            },
            Ok(None) => Run::TooLong,
            Err(error) => Run::Failed(error.downcast()?),
        };
        Ok((run, reach))
    }
}

/// Waits for the end of a program, and looks at its processes meanwhile.
fn watched(
    mut running: Running,
    observer: &mut Observer<'_>,
    patience: Duration,
) -> Result<Option<Finished>> {
    loop {
        let next = observer.next();
        if next >= patience || interrupt::requested().is_some() {
            return Ok(running.wait_within(patience, GRACE)?);
        }
        let left = next.saturating_sub(running.elapsed());
        if let Some(finished) = running.wait_for(left)? {
            return Ok(Some(finished));
        }
        if running.elapsed() >= next {
            observer.look();
        }
    }
}

impl Runner for Live<'_> {
    fn run(&self, arm: &Candidate, patience: Duration) -> Result<Run> {
        Ok(self.run_one(arm, patience, false)?.0)
    }

    fn run_observed(&self, arm: &Candidate, patience: Duration) -> Result<(Run, Reach)> {
        self.run_one(arm, patience, true)
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
