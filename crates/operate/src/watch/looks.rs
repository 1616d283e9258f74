//! Periodic looks inside the watched process, as doctor takes them, for what counters do not show.

use crate::explain::explain;
use crate::observe::{ObserveOptions, Subject, observe};
use crate::recording::Recording;
use anyhow::{Context, Result};
use pagewise_model::findings::Findings;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

/// Duration of one look: as in doctor, where it costs a program that mostly faults a few percent.
const LENGTH: Duration = Duration::from_secs(2);

/// Looks until it is dropped.
pub struct Looks {
    _until: Sender<()>,
}

impl Looks {
    /// Looks inside `processes` at this interval; `take` receives the findings, or the error.
    ///
    /// # Errors
    /// If no thread can be started.
    pub fn start(
        processes: Vec<i32>,
        every: Duration,
        mut take: impl FnMut(Result<Findings>) + Send + 'static,
    ) -> Result<Self> {
        let (sender, until) = mpsc::channel::<()>();
        let look_on = move || {
            loop {
                let began = Instant::now();
                take(look(&processes));
                let rest = every.saturating_sub(began.elapsed());
                if until.recv_timeout(rest) != Err(RecvTimeoutError::Timeout) {
                    return;
                }
            }
        };
        let thread = std::thread::Builder::new().name("pagewise-look".to_owned());
        thread
            .spawn(look_on)
            .context("cannot start a thread that looks inside")?;
        Ok(Self { _until: sender })
    }
}

fn look(processes: &[i32]) -> Result<Findings> {
    let recording = Recording::named(None)?;
    let options = ObserveOptions {
        duration: Some(LENGTH),
        ..ObserveOptions::explaining(Subject::Processes(processes.to_vec()), &recording.path())
    };
    explain(&observe(&options)?.path)
}
