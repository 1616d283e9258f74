//! Evicts no more: for as long as an external reader needs all pages in memory (on behalf of a debugger,
//! whose target is stopped, the kernel raises no fault for a missing page), or because the kernel evicts
//! pages of the run from now on. For a reader all pages are brought in; for the kernel each comes back
//! when it is touched.

use super::Pager;
use super::read_ahead;
use crate::figures::places;
use crate::page::{CHUNK_BYTES_SHIFT, PAGE_BYTES};
use crate::sys::{self, maps};
use core::sync::atomic::Ordering;
use pagewise_policy::Span;
use pagewise_wire::shared::RELEASED;

/// Limit on resident pages while all are kept: more than can exist.
pub(super) const ALL: u64 = u64::MAX / 4;

impl Pager {
    /// Whether nothing is to be evicted, which takes the pager's own threads.
    #[must_use]
    pub fn is_to_hold(&self) -> bool {
        let place = self.counters.place();
        let is_wanted = |who| !matches!(who, 0 | RELEASED);
        places::are_evicted_by_kernel()
            || place.is_some_and(|place| is_wanted(place.hold.load(Ordering::Acquire)))
    }

    /// Whether nothing is evicted at present.
    #[must_use]
    pub fn holds_all(&self) -> bool {
        self.measured.holding.load(Ordering::Relaxed)
    }

    /// Follows requests to evict nothing: brings in all pages for a reader, and evicts again once nobody
    /// objects. Called by the evictor, which holds no lock.
    pub fn follow_hold(&self) {
        let place = self.counters.place();
        let who = place.map_or(0, |place| place.hold.load(Ordering::Acquire));
        let is_read = !matches!(who, 0 | RELEASED) && sys::lives(who);
        let wanted = is_read || places::are_evicted_by_kernel();
        if self.measured.holding.swap(wanted, Ordering::Relaxed) != wanted {
            self.refresh_limit();
        }
        let was_read = self.measured.is_read.swap(is_read, Ordering::Relaxed);
        let Some(place) = place else {
            return;
        };
        if is_read && !was_read {
            self.read_all();
            place.filled_for.store(who, Ordering::Release);
        } else if who != 0 && !is_read && !was_read && !self.budget.is_short() {
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
