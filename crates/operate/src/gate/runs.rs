//! Runs of one command, and their costs.

use super::together::Together;
use anyhow::{Context, Result, bail};
use pagewise_compare::gate::mean;
use pagewise_linux::proc::ProcRoot;
use pagewise_linux::process::{Finished, Gated, Input, Launch, Output, interrupt};
use pagewise_model::gate::GateRun;
use pagewise_model::run::Ending;
use pagewise_model::secrets;
use pagewise_model::units::{Bytes, Nanos};
use std::ffi::OsString;
use std::time::{Duration, Instant};

/// How commands are run.
pub struct Runner {
    /// Standard input of each run.
    pub input: Input,
    /// Standard output and error of each run.
    pub output: Output,
    /// Whether a status other than 0 is accepted.
    pub ignore_failure: bool,
}

/// A command that is known to run, and its properties.
pub(super) struct Program {
    pub(super) command: Vec<OsString>,
    /// How it ends.
    ending: Ending,
    /// A run that takes longer is ended.
    patience: Duration,
    /// Peak that each process inherits from us: the kernel carries the forked child's peak over its
    /// exec.
    born: Bytes,
}

/// A run may take this many times as long as the first one …
const PATIENCE_FACTOR: u32 = 10;
/// … but is never ended sooner than this.
const LEAST_PATIENCE: Duration = Duration::from_secs(30);
/// Time between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_millis(500);
/// A peak this little above the inherited one may be the same: the kernel counts resident pages in
/// batches on each CPU.
const AT_BIRTH: Bytes = Bytes(256 << 10);
/// A forked child is given this long to reach its gate.
const TO_THE_GATE: Duration = Duration::from_millis(50);

impl Runner {
    /// A first run, not measured: it fills caches, and shows how the command ends and how long it
    /// takes.
    ///
    /// # Errors
    /// If it cannot be started, or fails.
    pub(super) fn first(&self, command: &[OsString]) -> Result<(Program, Nanos)> {
        let gated = self.launch(command)?.spawn_gated()?;
        let born = born(gated.pid());
        let (first, _) = once(gated, Duration::MAX)?;
        let name = command.first().map(|word| word.display().to_string());
        let name = name.unwrap_or_default();
        if first.ending != Ending::Exited(0) && !self.ignore_failure {
            bail!(
                "{name} {}: a gate needs a command that succeeds (--ignore-failure accepts others; --show-output shows its output)",
                first.ending.clause()
            );
        }
        let typical = Duration::from_nanos(first.cost.wall.0);
        let program = Program {
            command: command.to_vec(),
            ending: first.ending,
            patience: typical.saturating_mul(PATIENCE_FACTOR).max(LEAST_PATIENCE),
            born,
        };
        Ok((program, first.cost.wall))
    }

    /// One measurement: the mean of `batch` runs.
    ///
    /// # Errors
    /// If it ends differently than before, or we are interrupted.
    pub(super) fn measure(&self, program: &Program, batch: u32) -> Result<GateRun> {
        let mut runs = Vec::new();
        for _ in 0..batch.max(1) {
            let gated = self.launch(&program.command)?.spawn_gated()?;
            let (finished, together) = once(gated, program.patience)?;
            if finished.ending != program.ending {
                bail!(
                    "{} {}, unlike before: a gate needs a command that ends the same way each time",
                    program.name(),
                    finished.ending.clause()
                );
            }
            let most = finished.cost.max_rss;
            let own = Some(most).filter(|peak| *peak > program.born + AT_BIRTH);
            runs.push(GateRun {
                cost: finished.cost,
                peak: own.max(together.filter(|sum| *sum > most)),
            });
        }
        Ok(mean(&runs))
    }

    /// The launch of the command.
    ///
    /// # Errors
    /// If it is empty.
    pub(super) fn launch(&self, command: &[OsString]) -> Result<Launch> {
        let launch = Launch::from_command(command).context("no command was given")?;
        Ok(Launch {
            input: self.input.clone(),
            output: self.output.clone(),
            ..launch
        })
    }
}

impl Program {
    /// The command as text, without its secrets.
    pub(super) fn words(&self) -> Vec<String> {
        let words = self.command.iter();
        let words = words.map(|word| word.to_string_lossy().into_owned());
        secrets::masked(&words.collect::<Vec<_>>())
    }

    fn name(&self) -> String {
        self.command
            .first()
            .map_or_else(String::new, |word| word.display().to_string())
    }

    /// Notes for the reader on how it ends.
    pub(super) fn notes(&self) -> impl Iterator<Item = String> {
        let note = match self.ending {
            Ending::Exited(0) => None,
            ending => Some(format!("{} {}.", self.name(), ending.clause())),
        };
        note.into_iter()
    }
}

/// A run, and the most resident memory of several processes together, if there were several.
fn once(gated: Gated, patience: Duration) -> Result<(Finished, Option<Bytes>)> {
    let running = gated.release()?;
    let together = Together::watch(running.pid());
    let finished = running.wait_within(patience, GRACE)?;
    let together = together.most();
    if interrupt::requested().is_some() {
        bail!("interrupted");
    }
    match finished {
        Some(finished) => Ok((finished, together)),
        None => bail!(
            "a run took more than {} and was terminated: {PATIENCE_FACTOR} times the first one",
            Nanos::from(patience)
        ),
    }
}

/// Peak of a child that waits at its gate, once it has arrived there.
fn born(pid: i32) -> Bytes {
    let proc = ProcRoot::default();
    let began = Instant::now();
    let waits = || matches!(proc.stat(pid), Ok(Some(stat)) if stat.state == 'S');
    while !waits() && began.elapsed() < TO_THE_GATE {
        std::thread::sleep(Duration::from_millis(1));
    }
    let status = proc.status(pid).ok().flatten();
    status.map_or(Bytes(0), |status| status.peak_rss)
}
