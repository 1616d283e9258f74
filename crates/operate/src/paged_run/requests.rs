//! The effect of our own signals on the running program.
//!
//! The terminal's Ctrl-C reaches the program directly, and many programs (shells, Python, gdb)
//! continue after it; so do we. Three times within a second means that the program is stuck.
//! What a process sends to us alone is passed on: SIGINT so often as it comes. After SIGTERM and SIGHUP, what is left after ten
//! seconds is killed, with all processes of the run, because a stuck one may be the child of a shell.

use super::figures::Figures;
use anyhow::Result;
use pagewise_linux::process::{Running, interrupt};
use std::fs::File;
use std::time::{Duration, Instant};

const SIGINT: i32 = 2;
const SIGKILL: i32 = 9;
/// Time from the request to the kill.
const GRACE: Duration = Duration::from_secs(10);
/// Time within which three requests from the terminal mean that the program is stuck.
const HURRY: Duration = Duration::from_secs(1);

/// Requests so far.
#[derive(Debug, Default)]
pub struct Requests {
    pressed: Vec<Instant>,
    deadline: Option<Instant>,
}

impl Requests {
    /// Handles a new request, and one that was not answered in time.
    pub fn see_to(
        &mut self,
        running: &Running,
        kill: impl Fn() -> Result<()>,
        say: &dyn Fn(&str),
    ) -> Result<()> {
        let now = Instant::now();
        if let Some(signal) = interrupt::requested() {
            let has_it = interrupt::is_of_terminal();
            interrupt::clear();
            if signal == SIGINT {
                if !has_it {
                    running.signal(signal)?;
                }
                self.pressed.push(now);
                self.pressed.retain(|then| now - *then < HURRY);
            } else if self.deadline.is_none() {
                self.deadline = Some(now + GRACE);
                running.signal(signal)?;
            } else {
                self.deadline = Some(now);
            }
        }
        let late = self.deadline.is_some_and(|deadline| deadline <= now);
        if late || self.pressed.len() >= 3 {
            (self.deadline, self.pressed) = (None, Vec::new());
            say("the program does not terminate by itself; killing it");
            kill()?;
        }
        Ok(())
    }

    /// Time until a request needs attention.
    pub fn patience(&self, most: Duration) -> Duration {
        let left = |deadline: Instant| deadline.saturating_duration_since(Instant::now());
        self.deadline
            .map_or(most, |deadline| most.min(left(deadline)))
    }
}

/// Kills the program, and every other process that still has this run's settings.
pub fn kill(running: &Running, shared: &File) -> Result<()> {
    let own = format!("shared={}\n", super::shared::path_of(shared));
    for process in Figures::read(shared)?.processes {
        // Process ids are reused: only a process with this run's settings is killed.
        let environment = std::fs::read(format!("/proc/{}/environ", process.pid));
        let belongs =
            environment.is_ok_and(|text| memchr::memmem::find(&text, own.as_bytes()).is_some());
        if belongs && i32::try_from(process.pid).is_ok_and(|pid| pid != running.pid()) {
            // It may have ended meanwhile.
            let _ = pagewise_linux::process::signal(process.pid, SIGKILL);
        }
    }
    // Fails if it ended during the search for the others.
    let _ = running.signal(SIGKILL);
    Ok(())
}
