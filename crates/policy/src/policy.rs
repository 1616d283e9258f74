//! The seam between the pager's core and its policies.

use crate::page::{Arrival, Fault, Page, Plan, Role, Span, Use};

/// Decides which pages leave memory, and which are read early.
///
/// The core owns mechanism (what is resident, locks, I/O) and tells the policy what happens. Every
/// method but [`Policy::hint`] runs inside fault handlers: it may not allocate, lock, format or
/// panic. All take `&self` and may run on any number of threads at once, except that
/// [`Policy::victims`], [`Policy::soon`] and [`Policy::watch`] are for one thread at a time (a
/// second one gets nothing).
///
/// Metadata is taken once, when the policy is made: four bytes for each page that can be managed.
pub trait Policy: Send + Sync {
    /// Its name, as given to `--policy`.
    fn name(&self) -> &str;

    /// A thread waits for a missing page: what else shall be read? Called before the I/O. `plan`
    /// comes with the page alone; the core passes over pages that are resident or hold nothing.
    fn faulted(&self, fault: &Fault, plan: &mut Plan) {
        let _ = (fault, plan);
    }

    /// `page` is now resident.
    fn mapped(&self, page: Page, how: Arrival);

    /// `page` was resident and was seen in use.
    fn used(&self, page: Page, how: Use);

    /// The program gave these pages back.
    fn removed(&self, pages: Span);

    /// Chooses pages to evict, best first, and returns how many. They have left the policy; one
    /// that stays resident after all must come back through [`Policy::kept`].
    fn victims(&self, out: &mut [Page]) -> usize;

    /// A chosen page could not leave: pinned, busy, or written meanwhile.
    fn kept(&self, page: Page);

    /// Shows pages that will probably leave soon, so that dirty ones are written before. They stay
    /// with the policy.
    fn soon(&self, out: &mut [Page]) -> usize {
        let _ = out;
        0
    }

    /// Chooses resident pages whose next use the core shall notice, at the price of a soft fault,
    /// and tell by [`Policy::used`].
    fn watch(&self, out: &mut [Page]) -> usize {
        let _ = out;
        0
    }

    /// The program declares the role of some of its memory.
    fn hint(&self, pages: Span, role: Role) {
        let _ = (pages, role);
    }

    /// This is the child of a fork: other threads are gone, and what they held is free. No other
    /// method runs at the same time.
    fn forked(&self) {}
}

/// The methods of [`Policy`] by which pages leave, handed to the field `$inner`, for policies that
/// only decide what comes early.
macro_rules! leave_to {
    ($inner:ident) => {
        fn used(&self, page: $crate::page::Page, how: $crate::page::Use) {
            self.$inner.used(page, how);
        }

        fn removed(&self, pages: $crate::page::Span) {
            self.$inner.removed(pages);
        }

        fn victims(&self, out: &mut [$crate::page::Page]) -> usize {
            self.$inner.victims(out)
        }

        fn kept(&self, page: $crate::page::Page) {
            self.$inner.kept(page);
        }
    };
}
pub(crate) use leave_to;

/// The same where `$inner` is itself a policy, which may also want to see what comes.
macro_rules! leave_all_to {
    ($inner:ident) => {
        $crate::policy::leave_to!($inner);

        fn soon(&self, out: &mut [$crate::page::Page]) -> usize {
            self.$inner.soon(out)
        }

        fn watch(&self, out: &mut [$crate::page::Page]) -> usize {
            self.$inner.watch(out)
        }
    };
}
pub(crate) use leave_all_to;
