//! `fifo`: evicts the page that has been resident longest, as UMap does. The baseline for the other
//! policies.

use crate::page::{Arrival, Page, Span, Use};
use crate::policy::Policy;
use crate::queue::{Past, Queue, Words};

/// First in, first out.
#[derive(Debug)]
pub struct Fifo {
    words: Words,
    queue: Queue,
}

impl Fifo {
    /// A queue over `pages` managed pages.
    #[must_use]
    pub fn new(pages: u32) -> Self {
        let words = Words::new(pages, 1);
        let queue = Queue::new(&words, 0);
        Fifo { words, queue }
    }
}

impl Policy for Fifo {
    fn name(&self) -> &'static str {
        "fifo"
    }

    fn mapped(&self, page: Page, _how: Arrival) {
        if let Past::Unknown | Past::Evicted(_) = self.words.arrive(page, false) {
            self.queue.push(&self.words, page);
        }
    }

    fn used(&self, _page: Page, _how: Use) {}

    fn removed(&self, pages: Span) {
        (pages.first..pages.end()).for_each(|page| self.words.forget(page));
    }

    fn victims(&self, out: &mut [Page]) -> usize {
        let Some(turn) = self.words.turn() else {
            return 0;
        };
        let mut found = 0;
        while found < out.len() {
            let Some(taken) = self.words.take(&self.queue, &turn) else {
                break;
            };
            if self.words.evict(taken.page, None) {
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
            .map_or(0, |turn| self.queue.peek(&self.words, out, &turn))
    }

    fn forked(&self) {
        self.words.forked();
    }
}
