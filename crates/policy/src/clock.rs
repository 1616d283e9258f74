//! `clock`: first in, first out, but a page that was seen in use stays for another round.
//!
//! Uses are visible only on watched pages, so the front half of the queue is watched: a page in use
//! costs one soft fault per round.

use core::sync::atomic::{AtomicU32, Ordering};

use crate::page::{Arrival, Page, Span, Use};
use crate::policy::Policy;
use crate::queue::{Past, Queue, Words};

/// The second-chance algorithm.
#[derive(Debug)]
pub struct Clock {
    words: Words,
    queue: Queue,
    /// Watched pages in front of the clock hand.
    watched: Queue,
    /// Watch at most this many pages.
    watch_limit: AtomicU32,
}

impl Clock {
    /// A clock over `pages` managed pages, `budget` of them resident.
    #[must_use]
    pub fn new(pages: u32, budget: u32) -> Self {
        let words = Words::new(pages, 2);
        let queue = Queue::new(&words, 0);
        let watched = Queue::new(&words, 1);
        Clock {
            words,
            queue,
            watched,
            watch_limit: AtomicU32::new(budget / 8),
        }
    }

    fn hand(&self) -> &Queue {
        if self.watched.is_empty() {
            &self.queue
        } else {
            &self.watched
        }
    }
}

impl Policy for Clock {
    fn name(&self) -> &'static str {
        "clock"
    }

    fn mapped(&self, page: Page, how: Arrival) {
        if let Past::Unknown | Past::Evicted(_) = self.words.arrive(page, how == Arrival::Demand) {
            self.queue.push(&self.words, page);
        }
    }

    fn used(&self, page: Page, _how: Use) {
        self.words.touch(page);
    }

    fn removed(&self, pages: Span) {
        (pages.first..pages.end()).for_each(|page| self.words.forget(page));
    }

    fn victims(&self, out: &mut [Page]) -> usize {
        let Some(turn) = self.words.turn() else {
            return 0;
        };
        let mut found = 0;
        // At most one round: after it no page has a use left.
        let mut chances = self.queue.len() + self.watched.len();
        while found < out.len() {
            let taken = self
                .words
                .take(&self.watched, &turn)
                .or_else(|| self.words.take(&self.queue, &turn));
            let Some(taken) = taken else { break };
            if taken.uses > 0 && chances > 0 {
                chances -= 1;
                self.words.requeue(taken.page, 0, &self.queue, &turn);
            } else if self.words.evict(taken.page, None) {
                out[found] = taken.page;
                found += 1;
            }
        }
        found
    }

    fn kept(&self, page: Page) {
        self.mapped(page, Arrival::Demand);
    }

    fn soon(&self, out: &mut [Page]) -> usize {
        self.words
            .turn()
            .map_or(0, |turn| self.hand().peek(&self.words, out, &turn))
    }

    fn watch(&self, out: &mut [Page]) -> usize {
        let Some(turn) = self.words.turn() else {
            return 0;
        };
        let room = self
            .watch_limit
            .load(Ordering::Relaxed)
            .saturating_sub(self.watched.len());
        let wanted = out.len().min(room as usize);
        let mut found = 0;
        while found < wanted {
            let Some(taken) = self.words.take(&self.queue, &turn) else {
                break;
            };
            self.words.requeue(taken.page, 0, &self.watched, &turn);
            out[found] = taken.page;
            found += 1;
        }
        found
    }

    fn forked(&self) {
        self.words.forked();
    }
}
