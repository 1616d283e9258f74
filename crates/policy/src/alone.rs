//! `alone+NAME`: only brings in the page that is missing. A recording of such a run has each use that an
//! eviction can tell of, and none that is presumed.

use crate::page::{Arrival, Fault, Page, Plan, Role, Span};
use crate::policy::{Policy, leave_all_to};
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;

/// An eviction policy without any read-ahead.
pub struct Alone {
    name: String,
    inner: Box<dyn Policy>,
}

impl Alone {
    /// `inner`, which evicts and reads nothing ahead, under this policy's name.
    #[must_use]
    pub fn new(inner: Box<dyn Policy>) -> Self {
        let name = format!("alone+{}", inner.name());
        Alone { name, inner }
    }
}

impl Policy for Alone {
    fn name(&self) -> &str {
        &self.name
    }

    fn faulted(&self, fault: &Fault, plan: &mut Plan) {
        self.inner.faulted(fault, plan);
    }

    fn mapped(&self, page: Page, how: Arrival) {
        self.inner.mapped(page, how);
    }

    leave_all_to!(inner);

    fn hint(&self, pages: Span, role: Role) {
        self.inner.hint(pages, role);
    }

    fn forked(&self) {
        self.inner.forked();
    }
}
