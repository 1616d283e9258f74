//! Opens sources of faults for their turn. An open source costs each fault of the program time even
//! while it is off, because the kernel's hook stays armed (`perf_swevent_enabled`,
//! kernel/events/core.c), so sources that are rarely on are closed in between.

use super::opening::{self, Instance, Opened, Place};
use super::plan::{Plan, RingClass, Role, Start, Unit};
use std::collections::BTreeSet;
use std::io;
use std::os::fd::RawFd;

/// Units that can be opened while the program runs.
pub(super) struct Turns {
    units: Vec<Unit>,
    /// CPUs, each with the owning descriptor of its ring for faults.
    rings: Vec<(i32, RawFd)>,
    inherit: bool,
}

/// Result of opening a unit.
#[derive(Debug, Default)]
pub(super) struct Turn {
    pub instances: Vec<Instance>,
    /// Threads that have ended.
    pub gone: Vec<i32>,
    /// Why other threads could not be opened.
    pub refused: Option<io::Error>,
}

impl Turns {
    /// The units of `plan` that open on their turn, writing to the rings of `opened`.
    pub fn new(plan: &Plan, opened: &Opened, inherit: bool) -> Self {
        let on_turn = plan.units.iter().filter(|u| u.start == Start::OnTurn);
        let rings = opened.rings.iter().filter(|r| r.class == RingClass::Faults);
        Self {
            units: on_turn.cloned().collect(),
            rings: rings.map(|ring| (ring.cpu, ring.pollable[0])).collect(),
            inherit,
        }
    }

    /// Whether `role` is opened for its turn.
    pub fn has(&self, role: Role) -> bool {
        self.units.iter().any(|unit| unit.role == role)
    }

    /// Opens a unit for each of `threads`, switched off.
    pub fn open(&self, role: Role, threads: &BTreeSet<i32>) -> Turn {
        let mut turn = Turn::default();
        let Some(unit) = self.units.iter().find(|unit| unit.role == role) else {
            return turn;
        };
        for &tid in threads {
            self.open_thread(unit, tid, &mut turn);
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
            let event = opening::open_source(unit, at, place, false, self.inherit, 0)?;
            event.redirect_to(ring)?;
            events.push(event);
        }
        Ok(Instance {
            role: unit.role,
            events,
        })
    }
}
