//! A range that the program takes over with a userfaultfd of its own, or uses as a stack to which the kernel
//! writes. Its pages are read back from the store, and from then on the range belongs to the kernel and the
//! program, permanently.

use super::batch::is_zero;
use super::{Pager, fatal, scan};
use crate::page::{PAGE_BYTES, Page};
use crate::sync::{State, Word};
use crate::sys;
use core::sync::atomic::Ordering;

/// Rounds in which all pages must have come back: a page that another thread explicitly evicted in
/// between is fetched again.
const ROUNDS: usize = 16;

impl Pager {
    /// Ends the management of `[start, end)`. Its pages keep their contents; pages that were never
    /// touched are missing, as the program's handler expects. Fails if the budget has no room for
    /// the contents, which can no longer be evicted.
    ///
    /// # Errors
    /// The `errno` for the program.
    pub fn cede(&self, start: u64, end: u64) -> Result<(), i32> {
        if !self.regions.touches(start, end, true) {
            return Ok(());
        }
        if !self.has_room_for(start, end) {
            return Err(libc::ENOMEM);
        }
        self.cede_anyway(start, end)
    }

    /// Ends the management of `[start, end)`, to which the kernel writes without a fault that could be
    /// served: it ends the process where it cannot. So the contents stay resident whether there is room in the
    /// budget or not.
    pub fn cede_to_kernel(&self, start: u64, end: u64) {
        if self.regions.touches(start, end, true) && self.cede_anyway(start, end).is_err() {
            fatal::say(format_args!(
                "the memory at {start:#x}, which the kernel writes to (a stack of a thread or for signals), cannot be kept resident: the program may end by SIGSEGV"
            ));
        }
    }

    fn cede_anyway(&self, start: u64, end: u64) -> Result<(), i32> {
        for _ in 0..ROUNDS {
            self.set_locked(start, end, true);
            self.read_back(start, end);
            if self.try_to_cede(start, end) {
                self.refresh_limit();
                return Ok(());
            }
        }
        self.set_locked(start, end, false);
        Err(libc::ENOMEM)
    }

    /// Whether the pages of `[start, end)` that have contents leave an eighth of the room to others.
    fn has_room_for(&self, start: u64, end: u64) -> bool {
        self.refresh_limit();
        let locked = self.locked_bytes() / PAGE_BYTES as u64;
        let mut pages = 0;
        {
            let _quiet = self.quiet();
            self.each_page(start, end, |_, _| pages += 1);
        }
        let room = self.budget.limit();
        locked + pages <= room - room / 8
    }

    /// Reads in the evicted pages of `[start, end)`, but no pages without contents. No lock is
    /// held.
    fn read_back(&self, start: u64, end: u64) {
        for region in self.regions.managed(start, end) {
            let pages = (region.start..region.end).step_by(PAGE_BYTES);
            pages
                .filter(|address| self.is_away(*address))
                .for_each(|address| {
                    let _quiet = self.undisturbed();
                    self.touch(address, false);
                });
        }
    }

    fn is_away(&self, address: u64) -> bool {
        let word = self
            .table
            .page_at(address)
            .map(|page| self.table.word(page));
        word.is_some_and(|word| matches!(word.state(), State::Evicted | State::Parked))
    }

    /// Gives up the range if all pages with contents are resident. Returns whether they were.
    fn try_to_cede(&self, start: u64, end: u64) -> bool {
        let _quiet = self.quiet();
        self.lock_pages(start, end);
        let mut absent = 0_usize;
        self.each_page(start, end, |_: Page, word: Word| {
            absent += usize::from(!word.idle().is_resident());
        });
        if absent > 0 {
            self.unlock_pages(start, end);
            return false;
        }
        let mut bytes = 0;
        for region in self.regions.managed(start, end) {
            self.uffd(&region).protect(region.start, region.end);
            self.drop_zeros(region.start, region.end);
            self.uffd(&region).unregister(region.start, region.end);
            bytes += region.end - region.start;
        }
        self.clear_pages(start, end);
        self.change_kind(start, end, |kind| {
            kind.managed = false;
            kind.locked = false;
            kind.ceded = true;
        });
        if let Some(place) = self.counters.place() {
            place.managed_bytes.fetch_sub(bytes, Ordering::Relaxed);
        }
        true
    }

    /// Drops pages that contain only zeros and are not being written to. The pager fills pages
    /// ahead of their first touch, and evicts zero pages as if they did not exist: so none of them
    /// may be present for a program that waits for its first faults.
    fn drop_zeros(&self, start: u64, end: u64) {
        let mut buffer = self.scratch.take();
        let bytes = buffer.bytes(1);
        self.each_page(start, end, |page, _| {
            let address = self.table.address_of(page);
            if scan::copy(address, bytes) && is_zero(bytes) {
                // SAFETY: page lock: `try_to_cede` has it; and the page reads as zeros before and after.
                unsafe { sys::advise(address, address + PAGE_BYTES as u64, libc::MADV_DONTNEED) };
            }
        });
    }
}
