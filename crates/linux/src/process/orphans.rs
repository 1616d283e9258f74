//! Work that outlives the command: a linker that lets its child tear down, a daemon.
//!
//! Once [`adopt`] was called, the kernel makes us the parent of descendants whose own parents ended
//! (`PR_SET_CHILD_SUBREAPER`, prctl(2)). Those that still work are waited for, and their cost is
//! the run's. One that rests stays: no other command is started beside it.

use super::usage::{cost, together};
use crate::proc::{ProcRoot, family};
use crate::sys::process as sys;
use pagewise_model::run::RunCost;
use pagewise_model::units::Nanos;
use std::collections::BTreeSet;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Our own children; `None` as long as we adopt none.
static OWN: Mutex<Option<BTreeSet<i32>>> = Mutex::new(None);

/// An orphan that uses less than a tenth of a CPU for this long rests.
const REST: Duration = Duration::from_secs(1);
const RESTS_BELOW: f64 = 0.1;

/// Become the parent of descendants that outlive their parents, from now on. Only for a program
/// whose children are all started by [`super::Launch`] while a command runs.
///
/// # Errors
/// The kernel's refusal.
pub fn adopt() -> io::Result<()> {
    sys::become_subreaper()?;
    own().get_or_insert_default();
    Ok(())
}

/// Descendants of earlier commands that still run, with their names.
#[must_use]
pub fn still_running() -> Vec<(i32, String)> {
    let proc = ProcRoot::default();
    let (living, _) = reap(0);
    let named = living.into_iter().filter_map(|pid| {
        let stat = proc.stat(pid).ok().flatten()?;
        Some((pid, stat.comm))
    });
    named.collect()
}

fn own() -> MutexGuard<'static, Option<BTreeSet<i32>>> {
    OWN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A command was started.
pub(super) fn started(pid: i32) {
    if let Some(own) = own().as_mut() {
        own.insert(pid);
    }
}

/// A command has ended and was waited for.
pub(super) fn ended(pid: i32) {
    if let Some(own) = own().as_mut() {
        own.remove(&pid);
    }
}

/// Start of a process in clock ticks since boot; 0 if it is gone.
pub(super) fn birth(pid: i32) -> u64 {
    let stat = ProcRoot::default().stat(pid).ok().flatten();
    stat.map_or(0, |stat| stat.start_ticks)
}

/// Waits for all orphans born since `born` that have ended; returns those that live, and the cost
/// of the others.
fn reap(born: u64) -> (Vec<i32>, RunCost) {
    let mut spent = RunCost::default();
    loop {
        let mut living = Vec::new();
        let mut ended = false;
        for pid in adopted(born) {
            match sys::wait4(pid, false) {
                Ok(Some((_, usage))) => {
                    spent = together(spent, cost(Duration::ZERO, &usage));
                    ended = true;
                }
                Ok(None) => living.push(pid),
                // Waited for elsewhere.
                Err(_) => {}
            }
        }
        // Children of one that ended are ours now.
        if !ended {
            return (living, spent);
        }
    }
}

fn adopted(born: u64) -> Vec<i32> {
    let Some(own) = own().clone() else {
        return Vec::new();
    };
    let proc = ProcRoot::default();
    let us = i32::try_from(std::process::id()).unwrap_or_default();
    let mut children = proc.children(us).unwrap_or_default();
    children.retain(|pid| !own.contains(pid) && birth(*pid) >= born);
    children
}

/// What a command left behind when it ended.
#[derive(Debug)]
pub(super) struct Orphans {
    born: u64,
    /// Cost of those that have ended.
    pub(super) cost: RunCost,
    /// CPU time of the living at an earlier moment.
    before: (Instant, Nanos),
}

impl Orphans {
    pub(super) fn new(born: u64) -> Self {
        Self {
            born,
            cost: RunCost::default(),
            before: (Instant::now(), Nanos(0)),
        }
    }

    /// Whether none works any more: all have ended, or rest.
    pub(super) fn rest(&mut self) -> bool {
        let (living, cost) = reap(self.born);
        self.cost = together(self.cost, cost);
        if living.is_empty() {
            return true;
        }
        let (since, before) = self.before;
        if since.elapsed() < REST {
            return false;
        }
        let used = cpu_time(&living);
        let work = (used - before).as_secs_f64() / since.elapsed().as_secs_f64();
        self.before = (Instant::now(), used);
        work < RESTS_BELOW
    }

    /// Sends a signal to all.
    pub(super) fn signal(&self, signal: i32) {
        for pid in adopted(self.born) {
            // It may have ended meanwhile.
            let _ = sys::kill(pid, signal);
        }
    }
}

/// CPU time of these processes and their descendants.
fn cpu_time(pids: &[i32]) -> Nanos {
    let proc = ProcRoot::default();
    let members = pids.iter().flat_map(|&pid| family(&proc, pid));
    let stats = members.filter_map(|pid| proc.stat(pid).ok().flatten());
    stats.map(|stat| stat.user + stat.system).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagewise_model::units::Bytes;

    #[test]
    fn the_cost_of_a_run_includes_what_outlives_its_command() {
        let cost = |ms: u64, faults, rss| RunCost {
            user: Nanos(ms * 1_000_000),
            minor_faults: faults,
            max_rss: Bytes(rss),
            ..RunCost::default()
        };
        let all = together(cost(2, 87, 1 << 20), cost(300, 131_081, 400 << 20));
        assert_eq!(all, cost(302, 131_168, 400 << 20));
    }
}
