//! Keeps all pages in memory for as long as an external reader needs them: on behalf of a debugger,
//! whose target is stopped, the kernel raises no fault for a missing page.

use super::Pager;
use super::read_ahead;
use crate::page::{CHUNK_BYTES_SHIFT, PAGE_BYTES};
use crate::sys::{self, maps};
use core::sync::atomic::Ordering;
use pagewise_policy::Span;
use pagewise_wire::shared::RELEASED;

/// Limit on resident pages while all are kept: more than can exist.
pub(super) const ALL: u64 = u64::MAX / 4;

impl Pager {
    /// Whether an external reader wants all pages in memory.
    #[must_use]
    pub fn is_to_hold(&self) -> bool {
        let place = self.counters.place();
        place.is_some_and(|place| !matches!(place.hold.load(Ordering::Acquire), 0 | RELEASED))
    }

    /// Whether all pages are currently kept in memory.
    #[must_use]
    pub fn holds_all(&self) -> bool {
        self.measured.holding.load(Ordering::Relaxed)
    }

    /// Brings in all pages if that has been requested, and releases them once the request has
    /// ended. Called by the evictor, which holds no lock.
    pub fn follow_hold(&self) {
        let Some(place) = self.counters.place() else {
            return;
        };
        let who = place.hold.load(Ordering::Acquire);
        let wanted = !matches!(who, 0 | RELEASED) && sys::lives(who);
        if self.measured.holding.swap(wanted, Ordering::Relaxed) != wanted {
            self.refresh_limit();
            if wanted {
                self.read_all();
                place.filled_for.store(who, Ordering::Release);
            }
        } else if who != 0 && !wanted && !self.budget.is_short() {
            place.hold.store(0, Ordering::Release);
        }
    }

    /// Brings in every page that the program can access, including those that it has never touched:
    /// external readers stop at the first missing page.
    fn read_all(&self) {
        maps::each(|mapping| {
            if mapping.accessible {
                for region in self.regions.managed(mapping.start, mapping.end) {
                    self.read_range(region.start, region.end);
                }
            }
            true
        });
    }

    fn read_range(&self, start: u64, end: u64) {
        let _quiet = self.undisturbed();
        let mut address = start;
        while address < end {
            let stop = end.min(((address >> CHUNK_BYTES_SHIFT) + 1) << CHUNK_BYTES_SHIFT);
            if let Some(first) = self.table.page_at(address) {
                let count = ((stop - address) / PAGE_BYTES as u64) as u32;
                read_ahead::read_ahead(self, Span { first, count });
            }
            address = stop;
        }
        let pages = (start..end).step_by(PAGE_BYTES);
        pages.for_each(|address| self.touch(address, false));
    }
}
