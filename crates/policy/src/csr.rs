//! `csr`: for graphs in compressed sparse row form, and other programs that sweep large arrays next
//! to small ones.
//!
//! ExtMem (USENIX ATC 2024) keeps the vertex arrays resident and slides a window over the edges.
//! This policy does the same, with three differences: a region is classified by its own faults (or
//! a hint), each thread has its own window, and the remaining memory keeps a fixed part of the
//! edges instead of the latest ones (see [`crate::sweep`]).

use alloc::boxed::Box;
use core::sync::atomic::{AtomicU32, Ordering};

use crate::page::{Arrival, Fault, FaultKind, Page, Plan, Role, Span};
use crate::policy::{Policy, leave_to};
use crate::prefetch::max_window;
use crate::roles::Roles;
use crate::stream::{Step, Streams, plan_step};
use crate::sweep::Sweep;

/// Regions that are classified separately; later ones share places.
const REGIONS: usize = 256;
/// Pages of a region that must have faulted before it is classified.
const ENOUGH: u32 = 512;
/// Counts are halved when they reach this value, so that old faults lose weight.
const FADE: u32 = 1 << 16;
/// The faults of a region, by pattern.
#[derive(Debug, Default)]
struct Habits {
    /// Pages that faulted as steps of streams.
    swept: AtomicU32,
    /// Pages that faulted outside any stream.
    scattered: AtomicU32,
}

/// The class of a page's region.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    /// Vertices, offsets, and everything not known to be swept.
    Kept,
    /// Edges.
    Swept,
}

/// Keeps vertices resident and lets edges pass through.
pub struct Csr {
    sweep: Sweep,
    streams: Streams,
    roles: Roles,
    habits: Box<[Habits]>,
    /// Regions found to be swept, stored in the same form as declared roles.
    found: Roles,
    found_swept: Box<[AtomicU32]>,
}

impl Csr {
    /// Over `pages` managed pages, `budget` of them resident.
    #[must_use]
    pub fn new(pages: u32, budget: u32) -> Self {
        Csr {
            sweep: Sweep::new(pages, budget),
            streams: Streams::new(max_window(budget)),
            roles: Roles::default(),
            habits: (0..REGIONS).map(|_| Habits::default()).collect(),
            found: Roles::default(),
            found_swept: (0..REGIONS).map(|_| AtomicU32::new(0)).collect(),
        }
    }

    fn side(&self, page: Page) -> Side {
        match self.roles.role(page) {
            Role::Hot | Role::Random | Role::CsrOffsets => Side::Kept,
            Role::Stream | Role::CsrEdges => Side::Swept,
            Role::Normal => match self.found.role(page) {
                Role::Stream => Side::Swept,
                _ => Side::Kept,
            },
        }
    }

    /// Counts a fault for its region, and changes the region's role when the pattern changes.
    fn judge(&self, fault: &Fault, step: Step) {
        // Every array is first filled in order; only later reads show its access pattern.
        if fault.kind == FaultKind::FirstTouch {
            return;
        }
        let place = usize::from(fault.region_id) % REGIONS;
        let habits = &self.habits[place];
        match step {
            Step::Next { window, .. } => habits.swept.fetch_add(window, Ordering::Relaxed),
            Step::Alone | Step::Nearby => habits.scattered.fetch_add(1, Ordering::Relaxed),
        };
        let swept = habits.swept.load(Ordering::Relaxed);
        let scattered = habits.scattered.load(Ordering::Relaxed);
        if swept + scattered < ENOUGH {
            return;
        }
        let is_swept = swept / 4 >= scattered;
        let was_swept = self.found_swept[place].swap(u32::from(is_swept), Ordering::Relaxed) == 1;
        if is_swept != was_swept {
            let role = if is_swept { Role::Stream } else { Role::Normal };
            self.found.declare(fault.region, role);
        }
        if swept + scattered > FADE {
            habits.swept.store(swept / 2, Ordering::Relaxed);
            habits.scattered.store(scattered / 2, Ordering::Relaxed);
        }
    }
}

impl Policy for Csr {
    fn name(&self) -> &'static str {
        "csr"
    }

    fn faulted(&self, fault: &Fault, plan: &mut Plan) {
        let step = self.streams.step(fault);
        self.judge(fault, step);
        if self.roles.role(fault.page) != Role::Random {
            plan_step(fault, step, plan);
        }
    }

    fn mapped(&self, page: Page, how: Arrival) {
        let past = self.sweep.arrive(page, how == Arrival::Demand);
        match self.side(page) {
            Side::Swept => self.sweep.pass(page, past),
            Side::Kept => self.sweep.keep(page, past, how),
        }
    }

    leave_to!(sweep);

    fn hint(&self, pages: Span, role: Role) {
        self.roles.declare(pages, role);
    }

    fn forked(&self) {
        self.streams.forget();
        self.sweep.forked();
    }
}
