//! Pages that are out of the program's reach come back: from the tray, and from probation.

use super::resolve::Work;
use super::tray::Return;
use super::{Pager, probation};
use crate::page::{PAGE_BYTES, Page};
use crate::sync::{Attempt, State, Word};
use crate::sys::uffd;
use pagewise_policy::Use;

/// Puts `page` back if it is on probation, without a fault. The caller holds the eviction lock.
pub fn give_back(pager: &Pager, page: Page) {
    let word = pager.table.word(page);
    let here = !word.is_busy() && probation::holds(word);
    if !here || pager.table.attempt(page, word) != Attempt::Locked(word) {
        return;
    }
    let Some(region) = pager.regions.find(pager.table.address_of(page)) else {
        return pager.table.unlock(page, word);
    };
    let work = Work::unasked(pager, region, page);
    let found = work.fetch_from_probation(word.slot() as usize);
    pager.table.unlock(page, found.unwrap_or(word));
    work.wake();
}

impl Work<'_> {
    /// Moves a page in the tray back to where it was.
    pub(super) fn fetch_back(&self, word: Word) {
        if probation::holds(word) {
            return self.fetch_watched(word);
        }
        let place = word.slot() as usize;
        let back = self.pager.tray.put_back(self.uffd(), self.address(), place);
        if let Return::Refused(_) = back {
            // Its memory is just being removed. The tray keeps the page until that is done.
            self.pager.table.unlock(self.page, word);
            self.wake();
            return;
        }
        self.pager.policy().kept(self.page);
        self.pager.policy().used(self.page, Use::Touch);
        self.pager
            .table
            .unlock(self.page, Word::new(State::Dirty, 0));
        self.pager.used(self.page, self.fault.write);
        self.wake();
    }

    /// A page that was watched for its next use.
    fn fetch_watched(&self, word: Word) {
        let sample = self.pager.heat.returns(self.page);
        let was_clean = probation::slot_of(self.pager, word) != 0;
        let found = self.fetch_from_probation(word.slot() as usize);
        if found.is_some() {
            // The policy is not informed of uses that it did not ask for, because they would change
            // its decisions.
            if !sample {
                self.pager.probation.replace_one();
                self.pager.policy().used(self.page, Use::Touch);
                self.pager.counters.add(|all| &all.pages_seen_used, 1);
            } else if was_clean && self.fault.write {
                self.pager.policy().used(self.page, Use::Write);
            }
            self.pager.used(self.page, self.fault.write);
        }
        self.pager.table.unlock(self.page, found.unwrap_or(word));
        self.wake();
    }

    /// The page on probation at `place` is wanted. A page that is also in the store stays clean if
    /// it is only read: a copy can arrive write-protected, a moved page cannot. Returns the page's
    /// new word, or `None` if the kernel does not accept it.
    fn fetch_from_probation(&self, place: usize) -> Option<Word> {
        let tray = &self.pager.tray;
        let stays_clean = self.pager.probation.slot(place) != 0 && !self.fault.write;
        if stays_clean {
            return self.copy_clean(place);
        }
        match tray.put_back(self.uffd(), self.address(), place) {
            Return::Moved => {}
            Return::Copied | Return::Occupied => tray.clear(place, place + 1),
            Return::Refused(_) => return None,
        }
        self.pager.give_up_place(place);
        Some(Word::new(State::Dirty, 0))
    }

    /// Brings back the page at `place`, which is also in the store, write-protected.
    fn copy_clean(&self, place: usize) -> Option<Word> {
        let from = self.pager.tray.address(place);
        let copied = loop {
            let bytes = PAGE_BYTES as u64;
            let mode = uffd::COPY_MODE_WP;
            match self.uffd().copy(self.address(), from, bytes, mode).errno {
                libc::EAGAIN => {}
                errno => break errno == 0,
            }
        };
        copied.then(|| {
            self.pager.tray.clear(place, place + 1);
            Word::new(State::Clean, self.pager.probation.leave(place))
        })
    }
}
