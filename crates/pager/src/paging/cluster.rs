//! Pages that are brought in together.

use super::resolve::Work;
use super::scratch::BUFFER_PAGES;
use crate::inject;
use crate::page::Page;
use crate::sync::{State, Word};
use pagewise_policy::{Arrival, Span};
use pagewise_wire::trace::Event;

/// An unbroken run of pages, locked by this thread, with room in the budget.
pub(super) struct Cluster {
    pub(super) first: Page,
    pub(super) words: [Word; BUFFER_PAGES],
    pub(super) count: usize,
}

/// Which neighbours are included.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    /// Those whose slots are near, so that a thread that waits for one page waits little longer.
    Near,
    /// All: each will be used, and several concurrent transfers keep the disk busier than one after
    /// another. (Slots of streams that were evicted together are interleaved.)
    Any,
}

impl Cluster {
    pub(super) fn pages(&self) -> impl Iterator<Item = (Page, Word)> + '_ {
        (self.first..).zip(self.words[..self.count].iter().copied())
    }

    /// The run's bounds; `page` is in it or next to it.
    fn grow_up(&mut self, word: Word) {
        self.words[self.count] = word;
        self.count += 1;
    }

    fn grow_down(&mut self, below: &[Word]) {
        self.words.copy_within(..self.count, below.len());
        for (place, word) in (0..below.len()).rev().zip(below) {
            self.words[place] = *word;
        }
        self.first -= below.len() as Page;
        self.count += below.len();
    }
}

impl Work<'_> {
    /// The locked page `first`, which is `word`, and those of its neighbours in `along` that are in
    /// the same state (pages of a file: also in the file alone), as far as they are contiguous and within `reach`. The caller has taken room
    /// for the page and `room` others; unused room is given back.
    pub(super) fn gather(
        &self,
        first: Page,
        word: Word,
        along: Span,
        room: u64,
        reach: Reach,
    ) -> Cluster {
        let along = match self.region.kind.guarded {
            true => Span { first, count: 1 },
            false => along.clipped(self.span()),
        };
        if along.first < first {
            inject::dawdle();
        }
        let most = 1 + (room as usize).min(BUFFER_PAGES - 1);
        let mut cluster = Cluster {
            first,
            words: [word; BUFFER_PAGES],
            count: 1,
        };
        let mut last = word;
        for page in first + 1..along.end().max(first + 1) {
            match self.lock_if_like(page, last, reach) {
                Some(next) if cluster.count < most => {
                    cluster.grow_up(next);
                    last = next;
                }
                Some(next) => {
                    self.pager.table.unlock(page, next);
                    break;
                }
                None => break,
            }
        }
        let mut below = [word; BUFFER_PAGES];
        let mut before = 0;
        last = word;
        for page in (along.first..first).rev() {
            if cluster.count + before == most {
                break;
            }
            let Some(next) = self.lock_if_like(page, last, reach) else {
                break;
            };
            below[before] = next;
            before += 1;
            last = next;
        }
        cluster.grow_down(&below[..before]);
        self.pager
            .budget
            .release_unused(room + 1 - cluster.count as u64);
        self.keep_current(&mut cluster);
        cluster
    }

    /// Locks `page`, the neighbour of a page whose word is `last`, if it can be included.
    fn lock_if_like(&self, page: Page, last: Word, reach: Reach) -> Option<Word> {
        let table = &self.pager.table;
        let word = table.word(page);
        let in_file = |word: Word| matches!(word.state(), State::Empty | State::Left);
        let both = self.region.kind.file != 0 && in_file(word) && in_file(last);
        if word.is_busy() || (word.state() != last.state() && !both) {
            return None;
        }
        let near = reach == Reach::Near && word.state() == State::Evicted;
        if near && !self.pager.store().together(last.slot(), word.slot()) {
            return None;
        }
        table.enter(page, word, &self.pager.gate).then_some(word)
    }

    /// Page `place` of the cluster is now resident.
    pub(super) fn arrive(&self, cluster: &Cluster, place: usize, word: Word) {
        let page = cluster.first + place as Page;
        let (how, demanded) = match page == self.page {
            true => (Arrival::Demand, true),
            false => (Arrival::Ahead, false),
        };
        self.pager.policy().mapped(page, how);
        self.pager.table.unlock(page, word);
        if !demanded {
            self.pager.happened(page, Event::Prefetched);
        }
    }

    /// The kernel does not accept page `place` of the cluster: its memory is just being removed, or
    /// is no longer registered. The page remains as it was.
    pub(super) fn give_up(&self, cluster: &Cluster, place: usize) {
        let page = cluster.first + place as Page;
        self.pager.budget.release(1);
        self.pager.counters.add(|all| &all.refused, 1);
        self.pager.table.unlock(page, cluster.words[place]);
    }
}
