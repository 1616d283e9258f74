//! The interface between the pager's core and its policies.

use crate::page::{Arrival, Fault, Page, Plan, Role, Span, Use};

/// Decides which pages to evict, and which to read ahead.
///
/// The core provides the mechanism (residency, locks, I/O) and reports events to the policy. Every
/// method except [`Policy::hint`] runs inside fault handlers: it must not allocate, lock, format or
/// panic. All take `&self` and may run on any number of threads at once, except that only one
/// thread at a time can use [`Policy::victims`], [`Policy::soon`] and [`Policy::watch`] (another
/// one gets nothing).
///
/// Metadata is allocated once, when the policy is made: four bytes for each page that can be
/// managed.
pub trait Policy: Send + Sync {
    /// Its name, as given to `--policy`.
    fn name(&self) -> &str;

    /// A thread waits for a missing page: which other pages to read? Called before the I/O. `plan`
    /// initially contains that page alone; the core skips pages that are resident or have no
    /// content.
    fn faulted(&self, fault: &Fault, plan: &mut Plan) {
        let _ = (fault, plan);
    }

    /// `page` is now resident.
    fn mapped(&self, page: Page, how: Arrival);

    /// `page` was resident and a use of it was seen.
    fn used(&self, page: Page, how: Use);

    /// The program freed these pages.
    fn removed(&self, pages: Span);

    /// Chooses pages to evict, best first, and returns how many. They have left the policy; one
    /// that stays resident after all must be returned through [`Policy::kept`].
    fn victims(&self, out: &mut [Page]) -> usize;

    /// Whether a page that has just been chosen was part of a sweep: it will be read in order, with
    /// its neighbours, and before a thread waits for it.
    fn is_swept(&self, page: Page) -> bool {
        let _ = page;
        false
    }

    /// A chosen page could not be evicted: pinned, busy, or written meanwhile.
    fn kept(&self, page: Page);

    /// Lists pages that will probably be evicted soon, so that dirty ones are written back in time.
    /// They stay with the policy.
    fn soon(&self, out: &mut [Page]) -> usize {
        let _ = out;
        0
    }

    /// Chooses resident pages whose next use the core is to detect, at the cost of a soft fault,
    /// and report through [`Policy::used`].
    fn watch(&self, out: &mut [Page]) -> usize {
        let _ = out;
        0
    }

    /// The program declares the role of some of its memory.
    fn hint(&self, pages: Span, role: Role) {
        let _ = (pages, role);
    }

    /// Called in the child of a fork: the other threads are gone, and their locks are released. No
    /// other method runs at the same time.
    fn forked(&self) {}
}

/// The methods of [`Policy`] that concern eviction, forwarded to the field `$inner`, for policies
/// that only decide what to read ahead.
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

        fn is_swept(&self, page: $crate::page::Page) -> bool {
            self.$inner.is_swept(page)
        }

        fn kept(&self, page: $crate::page::Page) {
            self.$inner.kept(page);
        }
    };
}
pub(crate) use leave_to;

/// The same where `$inner` is itself a policy, which may also need to see arrivals.
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
