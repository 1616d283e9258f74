//! The page faults of a program that somebody else accompanies to its end.

use super::{Beginning, Observation, ObserveOptions, Outcome, Subject, file, launched};
use crate::memory::PagesWatch;
use pagewise_linux::perf::{self, Options, Recorder, Recording, Target};
use pagewise_linux::process::{Finished, Launch, Running};
use pagewise_model::memory::PresentPages;
use std::path::Path;

/// A recording of page faults alone, and of the pages that are in memory.
pub(crate) struct FaultRecording {
    options: ObserveOptions,
    words: Vec<String>,
    pid: i32,
    recording: Recording,
    beginning: Beginning,
    pages: Option<PagesWatch>,
}

impl FaultRecording {
    /// Starts the program; its faults go to `output`.
    ///
    /// # Errors
    /// If it cannot be started or recorded, or the file cannot be written.
    pub fn begin(launch: &Launch, output: &Path) -> anyhow::Result<(Running, Self)> {
        let faults = Options {
            latency: false,
            locks: false,
            ..Options::default()
        };
        let options = ObserveOptions {
            recorder: faults,
            pages: false,
            ..ObserveOptions::explaining(Subject::Command(launch.clone()), output)
        };
        perf::wait_until_closed();
        let gated = launch.spawn_gated()?;
        let pid = gated.pid();
        let recorder = Recorder::open(Target::Gated(pid), &options.recorder)?;
        let mut recording = file::begin(recorder, output, None)?;
        let beginning = Beginning::now();
        let running = launched::release(gated, &mut recording, output)?;
        let begun = Self {
            options,
            words: launch.words(),
            pid,
            recording,
            beginning,
            pages: PagesWatch::start(pid),
        };
        Ok((running, begun))
    }

    /// Completes the file of a program that has ended, with the pages that were there just before.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn end(self, finished: &Finished, last: Vec<PresentPages>) -> anyhow::Result<Observation> {
        let present = self.pages.map(|pages| pages.stop_with(last));
        let outcome = Outcome {
            pid: self.pid,
            command: self.words,
            ending: finished.ending,
            cost: finished.cost,
            present: present.unwrap_or_default(),
            ..Outcome::default()
        };
        let host = launched::host_of_own();
        file::conclude(
            &self.options,
            self.recording,
            outcome,
            &self.beginning,
            host,
        )
    }
}
