//! Looks inside the watched process now and then, as doctor does: what counters do not tell.

use crate::explain::explain;
use crate::observe::{ObserveOptions, Subject, observe};
use crate::recording::Recording;
use anyhow::{Context, Result};
use pagewise_model::findings::Findings;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

/// How long one look takes: as doctor, which costs a program that mostly faults some per cent.
const LENGTH: Duration = Duration::from_secs(2);

/// Looks until it is dropped.
pub struct Looks {
    _until: Sender<()>,
}

impl Looks {
    /// Looks inside `processes` so often; `take` gets what was found, or why nothing was.
    ///
    /// # Errors
    /// When no thread can be started.
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
