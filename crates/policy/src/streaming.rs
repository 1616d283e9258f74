//! `prefetch`: two queues, with what streams bring in passing through beside them. Reads streams and
//! strides ahead, as [`crate::prefetch`] does over any policy; and a stream that comes again over
//! more than fits into memory finds a part of it in place.

use crate::page::{Arrival, Fault, Page, Plan, Role, Span};
use crate::policy::{Policy, leave_to};
use crate::prefetch::max_window;
use crate::queue::Past;
use crate::roles::Roles;
use crate::stream::{Streams, plan_step};
use crate::sweep::Sweep;

/// Streams pass, the rest stays.
pub struct Streaming {
    sweep: Sweep,
    streams: Streams,
    roles: Roles,
}

impl Streaming {
    /// Over `pages` managed pages, `budget` of them resident.
    #[must_use]
    pub fn new(pages: u32, budget: u32) -> Self {
        Streaming {
            sweep: Sweep::new(pages, budget),
            streams: Streams::new(max_window(budget)),
            roles: Roles::default(),
        }
    }

    /// Whether a page with this past passes through. Memory is filled in order once by nearly every
    /// program; only what is read again in order shows that it is swept over.
    fn passes(&self, page: Page, past: Past, how: Arrival) -> bool {
        match self.roles.of(page) {
            Role::Hot | Role::Random | Role::CsrOffsets => false,
            Role::Stream | Role::CsrEdges => true,
            Role::Normal => how == Arrival::Ahead && matches!(past, Past::Evicted(_)),
        }
    }
}

impl Policy for Streaming {
    fn name(&self) -> &'static str {
        "prefetch"
    }

    fn faulted(&self, fault: &Fault, plan: &mut Plan) {
        if self.roles.of(fault.page) != Role::Random {
            plan_step(fault, self.streams.step(fault), plan);
        }
    }

    fn mapped(&self, page: Page, how: Arrival) {
        let past = self.sweep.arrive(page, how);
        match self.passes(page, past, how) {
            true => self.sweep.pass(page, past),
            false => self.sweep.keep(page, past, how),
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
