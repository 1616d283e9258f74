//! A process tree's faults, memory and CPU time while it runs.

mod history;
mod looks;
mod rates;
mod server;
mod subject;

pub use history::{Dot, History, View, Window};
pub use looks::Looks;
pub use rates::Rates;
pub use server::{Answer, serve};
pub use subject::{Subject, SubjectEnd, Whom};

use pagewise_linux::proc::{ProcessReading, Sampler, SamplerOptions};
use pagewise_linux::process::interrupt;
use pagewise_model::timeline::{PressurePoint, TimelinePoint};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

/// One reading, as the sampler's thread sends it.
#[derive(Default)]
pub struct Reading {
    /// Sums over the tree.
    pub point: TimelinePoint,
    /// Its processes.
    pub processes: Vec<ProcessReading>,
    /// How long tasks waited for memory, if the kernel reports it.
    pub pressure: Option<PressurePoint>,
}

/// Why watching ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// No process of the tree is left.
    TreeEnded,
    /// Its time is over.
    TimeIsUp,
    /// The user requested it, by key or signal.
    Asked,
}

/// Starts to read the subject at this interval.
#[must_use]
pub fn sample(subject: &Subject, interval: Duration) -> (Sampler, Receiver<Reading>) {
    let (sender, readings) = mpsc::channel();
    let options = SamplerOptions {
        from_birth: subject.is_ours(),
        also: subject.others().to_vec(),
        ..SamplerOptions::every(interval)
    };
    let sampler = Sampler::start_with(subject.pid(), options, move |point, processes, pressure| {
        // Fails only once there is no receiver, and then the point is not needed.
        let _ = sender.send(Reading {
            point: *point,
            processes: processes.to_vec(),
            pressure: pressure.copied(),
        });
    });
    (sampler, readings)
}

/// Longest time for which a wait for the next reading may delay a request to end.
const ATTENTION: Duration = Duration::from_millis(50);

/// Passes readings on until the tree ends, the time is over or the user stops it.
///
/// # Errors
/// Those of `take`.
pub fn follow<E>(
    readings: &Receiver<Reading>,
    mut take: impl FnMut(&Reading) -> Result<(), E>,
    duration: Option<Duration>,
) -> Result<End, E> {
    let deadline = duration.map(|duration| Instant::now() + duration);
    loop {
        match readings.recv_timeout(ATTENTION) {
            Ok(reading) => {
                take(&reading)?;
                if reading.point.processes == 0 {
                    return Ok(End::TreeEnded);
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Ok(End::TreeEnded),
        }
        if interrupt::requested().is_some() {
            return Ok(End::Asked);
        }
        if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            return Ok(End::TimeIsUp);
        }
    }
}
