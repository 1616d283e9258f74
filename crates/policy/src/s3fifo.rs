//! `s3fifo`: three queues, after Yang, Zhang, Qiu, Yue and Rashmi, "FIFO queues are all you need for
//! cache eviction", SOSP 2023.
//!
//! New pages enter a small queue (a tenth of memory). A page that is not seen in use there, as in a
//! scan, is evicted without having pushed out anything valuable. A page in use, or one that comes
//! back while the ghost queue would still contain it, goes to the main queue. The ghost queue takes
//! no memory here: a page's word records when it was evicted, and the distance shows whether it
//! would still be in a queue as long as the main queue.

use core::sync::atomic::{AtomicU32, Ordering};

use crate::page::{Arrival, Page, Span, Use};
use crate::policy::Policy;
use crate::queue::{Past, Queue, Stamp, Words};

/// Small, main and ghost queue.
#[derive(Debug)]
pub struct S3Fifo {
    words: Words,
    small: Queue,
    main: Queue,
    /// Evictions out of the small queue: the clock of the ghost queue.
    ghosts: AtomicU32,
    budget: u32,
}

/// The small queue takes one page out of this many (section 4.1 of the paper: 10 %).
const SMALL_SHARE: u32 = 10;

impl S3Fifo {
    /// Queues over `pages` managed pages, `budget` of them resident.
    #[must_use]
    pub fn new(pages: u32, budget: u32) -> Self {
        let words = Words::new(pages, 2);
        S3Fifo {
            small: Queue::new(&words, 0),
            main: Queue::new(&words, 1),
            words,
            ghosts: AtomicU32::new(0),
            budget,
        }
    }

    fn is_ghost(&self, left: Stamp) -> bool {
        let length = self.main.len().max(self.budget - self.budget / SMALL_SHARE);
        Stamp::at(self.ghosts.load(Ordering::Relaxed)).since(left) <= length
    }

    fn small_is_due(&self) -> bool {
        let all = self.small.len() + self.main.len();
        self.small.len() > all / SMALL_SHARE || self.main.is_empty()
    }
}

impl Policy for S3Fifo {
    fn name(&self) -> &'static str {
        "s3fifo"
    }

    fn mapped(&self, page: Page, how: Arrival) {
        match self.words.arrive(page, how == Arrival::Demand) {
            Past::Evicted(left) if how == Arrival::Demand && self.is_ghost(left) => {
                self.main.push(&self.words, page);
            }
            Past::Evicted(_) | Past::Unknown => self.small.push(&self.words, page),
            Past::Present | Past::Revived => {}
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
        // Every page has at most three uses to lose.
        let mut chances = (self.small.len() + self.main.len()).saturating_mul(4);
        while found < out.len() {
            let small = self.small_is_due();
            let queue = if small { &self.small } else { &self.main };
            let Some(taken) = self.words.take(queue, &turn) else {
                if self.small.is_empty() && self.main.is_empty() {
                    break;
                }
                // A push is half done, or all pages were freed: try the other queue.
                chances = chances.saturating_sub(1);
                if chances == 0 {
                    break;
                }
                continue;
            };
            if taken.uses > 0 && chances > 0 {
                chances -= 1;
                let uses = if small { 0 } else { taken.uses - 1 };
                self.words.requeue(taken.page, uses, &self.main, &turn);
                continue;
            }
            let stamp = small
                .then(|| Stamp::at(self.ghosts.fetch_add(1, Ordering::Relaxed).wrapping_add(1)));
            if self.words.evict(taken.page, stamp) {
                out[found] = taken.page;
                found += 1;
            }
        }
        found
    }

    fn kept(&self, page: Page) {
        if let Past::Unknown | Past::Evicted(_) = self.words.arrive(page, false) {
            self.main.push(&self.words, page);
        }
    }

    fn soon(&self, out: &mut [Page]) -> usize {
        let Some(turn) = self.words.turn() else {
            return 0;
        };
        let queue = if self.small_is_due() {
            &self.small
        } else {
            &self.main
        };
        queue.peek(&self.words, out, &turn)
    }

    fn forked(&self) {
        self.words.forked();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scan_leaves_the_main_queue_alone() {
        let policy = S3Fifo::new(10_000, 100);
        (0..100).for_each(|page| policy.mapped(page, Arrival::Demand));
        (0..90).for_each(|page| policy.used(page, Use::Touch));
        let mut out = [0; 1];
        let mut lost = 0;
        for page in 1000..6000 {
            assert_eq!(policy.victims(&mut out), 1);
            lost += u32::from(out[0] < 90);
            policy.mapped(page, Arrival::Demand);
        }
        // Until the small queue has its tenth, the main queue gives up pages.
        assert!(lost <= 2, "{lost} pages in use left");
    }

    #[test]
    fn a_ghost_comes_back_to_the_main_queue() {
        let policy = S3Fifo::new(1000, 10);
        (0..10).for_each(|page| policy.mapped(page, Arrival::Demand));
        let mut out = [0; 2];
        assert_eq!(policy.victims(&mut out), 2);
        policy.mapped(out[0], Arrival::Demand);
        assert_eq!(policy.main.len(), 1);
        policy.mapped(out[1], Arrival::Ahead);
        assert_eq!(policy.main.len(), 1);
    }
}
