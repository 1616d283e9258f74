//! Looks inside the watched process now and then, as doctor does: what counters do not tell.

use super::lock;
use crate::explain::explain;
use crate::observe::{ObserveOptions, Subject, observe};
use crate::recording::Recording;
use pagewise_report::metrics::{Figures, Observed};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// How long one look takes: as doctor, which costs a program that mostly faults some per cent.
const LENGTH: Duration = Duration::from_secs(2);

/// Looks until it is dropped.
pub struct Looks {
    _until: Sender<()>,
}

impl Looks {
    pub fn begin(pid: i32, every: Duration, figures: Arc<Mutex<Figures>>) -> Self {
        let (sender, until) = mpsc::channel::<()>();
        let look_on = move || {
            let mut told = false;
            loop {
                let began = Instant::now();
                match look(pid) {
                    Ok(observed) => lock(&figures).observed = Some(observed),
                    Err(error) => {
                        // Old figures would pass for new ones.
                        lock(&figures).observed = None;
                        if !told {
                            told = true;
                            eprintln!("pagewise: cannot look inside process {pid}: {error:#}");
                        }
                    }
                }
                let rest = every.saturating_sub(began.elapsed());
                if until.recv_timeout(rest) != Err(RecvTimeoutError::Timeout) {
                    return;
                }
            }
        };
        let thread = std::thread::Builder::new().name("pagewise-look".to_owned());
        if let Err(error) = thread.spawn(look_on) {
            eprintln!("pagewise: cannot start a thread that looks inside: {error}");
        }
        Self { _until: sender }
    }
}

fn look(pid: i32) -> anyhow::Result<Observed> {
    let recording = Recording::named(None)?;
    let options = ObserveOptions {
        duration: Some(LENGTH),
        ..ObserveOptions::explaining(
            Subject::Processes(vec![pid]),
            &recording.path(),
            crate::huge::verdict,
        )
    };
    let observation = observe(&options)?;
    let findings = explain(&observation.path)?;
    let at = SystemTime::now().duration_since(UNIX_EPOCH)?;
    Ok(Observed {
        at: at.as_secs_f64(),
        findings,
    })
}
