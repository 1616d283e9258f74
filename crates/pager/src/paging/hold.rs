//! All pages in memory, for as long as somebody outside needs to read them: the kernel asks nobody for a
//! missing page on behalf of a debugger, whose victim stands still.

use super::Pager;
use super::read_ahead;
use crate::page::{CHUNK_BYTES_SHIFT, PAGE_BYTES};
use crate::sys::{self, maps};
use core::sync::atomic::Ordering;
use pagewise_policy::Span;
use pagewise_wire::shared::RELEASED;

/// Pages that may be resident while all are held: more than there can be.
pub(super) const ALL: u64 = u64::MAX / 4;

impl Pager {
    /// Whether somebody wants all pages in memory.
    #[must_use]
    pub fn is_to_hold(&self) -> bool {
        let place = self.counters.place();
        place.is_some_and(|place| !matches!(place.hold.load(Ordering::Acquire), 0 | RELEASED))
    }

    /// Whether all pages are kept in memory just now.
    #[must_use]
    pub fn holds_all(&self) -> bool {
        self.holding.load(Ordering::Relaxed)
    }

    /// Brings all pages in where that is newly wanted, and lets them go where nobody wants it any more.
    /// The evictor's, which holds nothing.
    pub fn follow_hold(&self) {
        let Some(place) = self.counters.place() else {
            return;
        };
        let who = place.hold.load(Ordering::Acquire);
        let wanted = !matches!(who, 0 | RELEASED) && sys::lives(who);
        if self.holding.swap(wanted, Ordering::Relaxed) != wanted {
            self.refresh_limit();
            if wanted {
                self.read_all();
                place.filled_for.store(who, Ordering::Release);
            }
        } else if who != 0 && !wanted && !self.budget.is_short() {
            place.hold.store(0, Ordering::Release);
        }
    }

    /// Brings in every page that the program can access, those that it has never touched too: readers
    /// from outside stop at the first that is missing.
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
