//! Opens sources of faults for their turn. An open source costs each fault of the program time even
//! while it is off, because the kernel's hook stays armed (`perf_swevent_enabled`,
//! kernel/events/core.c), so sources that are rarely on are closed in between.

use super::opening::{self, EVERYBODY, Instance, Opened, Place};
use super::plan::{Plan, Reach, Start, Unit};
use super::role::{RingClass, Role};
use pagewise_model::units::Nanos;
use std::collections::BTreeSet;
use std::io;
use std::os::fd::RawFd;

/// Units that can be opened while the program runs.
pub(super) struct Turns {
    units: Vec<Unit>,
    /// CPUs, each with the owning descriptor of its ring for faults.
    rings: Vec<(i32, RawFd)>,
    inherit: bool,
    may_watch_all: bool,
}

/// Result of opening a unit.
#[derive(Debug, Default)]
pub(super) struct Turn {
    pub instances: Vec<Instance>,
    /// Threads that have ended.
    pub gone: Vec<i32>,
    /// Why other threads could not be opened.
    pub refused: Option<io::Error>,
    /// Whether the instances record all processes.
    pub sees_all: bool,
}

/// What a new thread costs for each event that it inherits, on each CPU: copying, freeing (measured
/// on Linux 6.18, 2 vCPU).
const COPY: Nanos = Nanos(1_500);
/// The share of time that may go into such copies, as one part of this many.
const COPIES_SHARE: u64 = 100;

impl Turns {
    /// The units of `plan` that open on their turn, writing to the rings of `opened`.
    pub fn new(plan: &Plan, opened: &Opened, inherit: bool) -> Self {
        let on_turn = plan.units.iter().filter(|u| u.start == Start::OnTurn);
        let rings = opened.rings.iter().filter(|r| r.class == RingClass::Faults);
        Self {
            units: on_turn.cloned().collect(),
            rings: rings.map(|ring| (ring.cpu, ring.pollable[0])).collect(),
            inherit,
            may_watch_all: plan.may_watch_all,
        }
    }

    /// Whether to watch whole CPUs rather than each thread, for `births` of threads in `time`.
    pub fn should_watch_all(&self, births: u64, time: Nanos) -> bool {
        let copies = births.saturating_mul(self.rings.len() as u64);
        self.may_watch_all && copies.saturating_mul(COPY.0 * COPIES_SHARE) > time.0
    }

    /// Whether `role` is opened for its turn.
    pub fn has(&self, role: Role) -> bool {
        self.units.iter().any(|unit| unit.role == role)
    }

    /// Whether `role` is opened for its turn and may watch whole CPUs.
    pub fn may_watch_all(&self, role: Role) -> bool {
        self.may_watch_all && self.has(role)
    }

    /// Opens a unit, switched off: for each of `threads`, or for whole CPUs.
    pub fn open(&self, role: Role, threads: &BTreeSet<i32>, all: bool) -> Turn {
        let mut turn = Turn::default();
        let Some(unit) = self.units.iter().find(|unit| unit.role == role) else {
            return turn;
        };
        if all || unit.reach == Reach::Machine {
            turn.sees_all = true;
            self.open_thread(unit, EVERYBODY, &mut turn);
        } else {
            for &tid in threads {
                self.open_thread(unit, tid, &mut turn);
            }
        }
        turn
    }

    fn open_thread(&self, unit: &Unit, tid: i32, turn: &mut Turn) {
        for &(cpu, ring) in &self.rings {
            match self.open_instance(unit, tid, cpu, ring) {
                Ok(instance) => turn.instances.push(instance),
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {
                    return turn.gone.push(tid);
                }
                Err(error) if error.raw_os_error() == Some(libc::ENODEV) => {}
                Err(error) => turn.refused = Some(error),
            }
        }
    }

    fn open_instance(&self, unit: &Unit, tid: i32, cpu: i32, ring: RawFd) -> io::Result<Instance> {
        let mut events = Vec::with_capacity(unit.sources.len());
        for at in 0..unit.sources.len() {
            let leader = events.first();
            let place = Place { tid, cpu, leader };
            let inherit = self.inherit && tid != EVERYBODY;
            let event = opening::open_source(unit, at, place, false, inherit, 0)?;
            event.redirect_to(ring)?;
            events.push(event);
        }
        Ok(Instance {
            role: unit.role,
            events,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_many_births_call_for_events_of_whole_cpus() {
        let turns = |may_watch_all| Turns {
            units: Vec::new(),
            rings: vec![(0, 0), (1, 0)],
            inherit: true,
            may_watch_all,
        };
        let turn = Nanos(20_000_000);
        // 20 ms: a hundredth is 200 µs, which copies for 66 threads take.
        assert!(!turns(true).should_watch_all(60, turn));
        assert!(turns(true).should_watch_all(70, turn));
        assert!(!turns(false).should_watch_all(70, turn));
    }
}
