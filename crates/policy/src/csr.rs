//! `csr`: for graphs in compressed sparse row form, and whatever else sweeps large arrays next to
//! small ones.
//!
//! ExtMem (USENIX ATC 2024) keeps the vertex arrays resident and slides a window over the edges.
//! So does this policy, with three differences: regions find their side by their own faults (or a
//! hint), each thread has its window, and the memory that is left holds a fixed part of the edges
//! instead of the latest ones (see [`crate::sweep`]).

use std::sync::atomic::{AtomicU32, Ordering};

use crate::page::{Arrival, Fault, FaultKind, Page, Plan, Role, Span};
use crate::policy::{Policy, leave_to};
use crate::prefetch::max_window;
use crate::roles::Roles;
use crate::stream::{Step, Streams, plan_step};
use crate::sweep::Sweep;

/// Regions that are judged one by one; later ones share places.
const REGIONS: usize = 256;
/// Pages of a region that must have come by fault before it is judged.
const ENOUGH: u32 = 512;
/// Counts are halved here, so that a region's past fades.
const FADE: u32 = 1 << 16;
/// What a region's faults were.
#[derive(Debug, Default)]
struct Habits {
    /// Pages that came as steps of streams.
    swept: AtomicU32,
    /// Pages that came alone.
    scattered: AtomicU32,
}

/// Which side of a page's region is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    /// Vertices, offsets, and all that is not known to be swept.
    Kept,
    /// Edges.
    Swept,
}

/// Vertices stay, edges pass.
pub struct Csr {
    sweep: Sweep,
    streams: Streams,
    roles: Roles,
    habits: Box<[Habits]>,
    /// Spans of regions found to be swept, as declared roles of their own.
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
        match self.roles.of(page) {
            Role::Hot | Role::Random | Role::CsrOffsets => Side::Kept,
            Role::Stream | Role::CsrEdges => Side::Swept,
            Role::Normal => match self.found.of(page) {
                Role::Stream => Side::Swept,
                _ => Side::Kept,
            },
        }
    }

    /// Notes a fault in its region's habits, and declares the region when they change.
    fn judge(&self, fault: &Fault, step: Step) {
        // Every array is filled in order once; only what is read again shows its kind.
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
        if self.roles.of(fault.page) != Role::Random {
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
