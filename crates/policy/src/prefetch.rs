//! `prefetch`: adds read-ahead of streams to any eviction policy. Windows grow while a stream is
//! followed and shrink when its pages are evicted before use.

use crate::page::{Arrival, Fault, Page, Plan, Role, Span};
use crate::policy::{Policy, leave_all_to};
use crate::roles::Roles;
use crate::stream::{Streams, plan_cluster, plan_step};
use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;

/// Streams are read at most this far ahead (2 MiB of 4 KiB pages), and never more than a sixteenth
/// of the budget: the windows of many threads must fit next to the working set. Eight reads under
/// way keep an SSD busy; four left a third of its speed unused.
const MAX_WINDOW: u32 = 512;

/// Pages of a cluster when nothing is read ahead: reading 16 costs twice as much as reading one.
const CLUSTER: u32 = 16;

/// The largest window under a budget of this many pages.
#[must_use]
pub(crate) fn max_window(budget: u32) -> u32 {
    MAX_WINDOW.min(budget / 16)
}

/// Stream detection over an eviction policy.
pub struct Prefetch {
    name: String,
    inner: Box<dyn Policy>,
    streams: Streams,
    roles: Roles,
    /// Whether to read pages that no thread waits for; otherwise all pages are read with the fault.
    ahead: bool,
}

impl Prefetch {
    /// Reads clusters of at most 16 pages along streams with the fault, and nothing ahead, as Linux
    /// does at a swap fault. Keeps the name of `inner`.
    #[must_use]
    pub fn clusters(inner: Box<dyn Policy>) -> Self {
        let name = inner.name().to_owned();
        Prefetch {
            name,
            inner,
            streams: Streams::new(CLUSTER),
            roles: Roles::default(),
            ahead: false,
        }
    }

    /// Reads ahead over `inner`, with `budget` resident pages.
    #[must_use]
    pub fn new(inner: Box<dyn Policy>, budget: u32) -> Self {
        let name = format!("prefetch+{}", inner.name());
        Prefetch {
            name,
            inner,
            streams: Streams::new(max_window(budget)),
            roles: Roles::default(),
            ahead: true,
        }
    }
}

impl Policy for Prefetch {
    fn name(&self) -> &str {
        &self.name
    }

    fn faulted(&self, fault: &Fault, plan: &mut Plan) {
        self.inner.faulted(fault, plan);
        if self.roles.role(fault.page) != Role::Random {
            let step = self.streams.step(fault);
            match (self.ahead, step) {
                (true, step) => plan_step(fault, step, plan),
                (false, step) => plan_cluster(fault, step, plan),
            }
        }
    }

    fn mapped(&self, page: Page, how: Arrival) {
        self.inner.mapped(page, how);
    }

    leave_all_to!(inner);

    fn hint(&self, pages: Span, role: Role) {
        self.roles.declare(pages, role);
        self.inner.hint(pages, role);
    }

    fn forked(&self) {
        self.streams.forget();
        self.inner.forked();
    }
}
