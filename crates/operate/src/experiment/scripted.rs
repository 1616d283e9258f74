//! Runs by a script, on a clock that only they advance: tests of what an experiment decides take no
//! time, and decide the same on every machine.

use super::{Candidate, Reach, Run, Runner};
use anyhow::Result;
use pagewise_linux::process::Finished;
use pagewise_model::run::{Ending, RunCost};
use pagewise_model::units::{Bytes, Nanos};
use pagewise_stats::Random;
use std::cell::{Cell, RefCell};
use std::time::{Duration, Instant};

/// What one run of the script costs, and how it ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Scene {
    /// Elapsed time and CPU time in seconds, and how much of the latter is system time.
    pub(crate) seconds: f64,
    pub(crate) cpu: f64,
    pub(crate) faults: u64,
    pub(crate) peak: Bytes,
    pub(crate) status: i32,
    /// What its processes show.
    pub(crate) reach: Reach,
}

impl Scene {
    /// A program that computes for `seconds` and has `faults`.
    pub(crate) fn new(seconds: f64, faults: u64) -> Self {
        Self {
            seconds,
            cpu: seconds,
            faults,
            peak: Bytes(64 << 20),
            status: 0,
            reach: Reach::Unseen,
        }
    }

    pub(crate) fn failing(status: i32) -> Self {
        Self {
            status,
            ..Self::new(0.1, 1_000)
        }
    }
}

/// Part of CPU time that is system time.
const SYSTEM: f64 = 0.25;
/// Time of starting a process and of looking around, for each run.
pub(crate) const AROUND: Duration = Duration::from_millis(2);
/// What runs of one program differ by, at most.
const NOISE: f64 = 0.01;

/// Plays `script`: a function of the arm and of the number of runs before.
pub(crate) struct Scripted<S> {
    script: S,
    began: Instant,
    elapsed: Cell<Duration>,
    random: RefCell<Random>,
    played: RefCell<Vec<Candidate>>,
    /// The user interrupts this run.
    interrupted_at: Option<usize>,
}

impl<S: Fn(&Candidate, usize) -> Scene> Scripted<S> {
    pub(crate) fn new(script: S) -> Self {
        Self {
            script,
            began: Instant::now(),
            elapsed: Cell::new(Duration::ZERO),
            random: RefCell::new(Random::seeded(1)),
            played: RefCell::new(Vec::new()),
            interrupted_at: None,
        }
    }

    pub(crate) fn interrupted_at(self, run: usize) -> Self {
        Self {
            interrupted_at: Some(run),
            ..self
        }
    }

    /// The arm of each run so far.
    pub(crate) fn played(&self) -> Vec<Candidate> {
        self.played.borrow().clone()
    }

    /// Number of runs so far.
    pub(crate) fn runs(&self) -> usize {
        self.played.borrow().len()
    }

    /// Time since the beginning, by the script's clock.
    pub(crate) fn elapsed(&self) -> Duration {
        self.elapsed.get()
    }

    fn advance(&self, time: Duration) {
        self.elapsed.set(self.elapsed.get() + time);
    }

    /// A factor near 1.
    fn noise(&self) -> f64 {
        let uniform = (self.random.borrow_mut().bits() >> 11) as f64 / (1_u64 << 53) as f64;
        1.0 + NOISE * (2.0 * uniform - 1.0)
    }
}

impl<S: Fn(&Candidate, usize) -> Scene> Runner for Scripted<S> {
    fn run(&self, arm: &Candidate, patience: Duration) -> Result<Run> {
        Ok(self.run_observed(arm, patience)?.0)
    }

    fn run_observed(&self, arm: &Candidate, patience: Duration) -> Result<(Run, Reach)> {
        let scene = (self.script)(arm, self.runs());
        self.played.borrow_mut().push(arm.clone());
        let noise = self.noise();
        let wall = Duration::from_secs_f64(scene.seconds * noise);
        self.advance(AROUND + wall.min(patience));
        if wall > patience {
            return Ok((Run::TooLong, scene.reach));
        }
        let cpu = scene.cpu * noise;
        let finished = Finished {
            ending: Ending::Exited(scene.status),
            cost: RunCost {
                wall: wall.into(),
                user: Nanos::from_secs_f64(cpu * (1.0 - SYSTEM)),
                system: Nanos::from_secs_f64(cpu * SYSTEM),
                minor_faults: scene.faults,
                max_rss: scene.peak,
                ..RunCost::default()
            },
        };
        Ok((Run::Ended(finished), scene.reach))
    }

    fn now(&self) -> Instant {
        self.began + self.elapsed.get()
    }

    fn is_interrupted(&self) -> bool {
        self.interrupted_at.is_some_and(|run| self.runs() > run)
    }
}
