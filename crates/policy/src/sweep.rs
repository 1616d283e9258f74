//! Where pages that are swept over pass through, and where the others stay.
//!
//! A sweep over more than fits into memory that comes again finds nothing of what any order by age
//! would keep: each page is pushed out just before its use. So what a sweep brings in goes first,
//! just behind it, and a fixed part of what it sweeps over stays where it is.
//!
//! ```text
//!  swept:  ████████████░░░░░░░░░░░░░░░░░▒▒▒▶───────────────────
//!          settled     evicted          window  read ahead
//! ```

use std::sync::atomic::{AtomicU32, Ordering};

use crate::page::{Arrival, Page, Span, Use};
use crate::policy::Policy;
use crate::prefetch::max_window;
use crate::queue::{Past, Queue, Words};
use crate::two_queue::TwoQueue;

/// One victim in so many is a settled page, so that settled pages of arrays that nobody sweeps any
/// more go in the end.
const TURNOVER: u32 = 32;
/// So many of them go in a row: neighbours that leave together can be read together.
const TURNOVER_RUN: u32 = 64;
/// And one in so many is a kept page, for the same reason; these cost a stall if they were wanted.
const KEPT_TURNOVER: u32 = 512;
/// A kept page that comes back soon cost as much as so many swept ones: it is read alone (47 µs
/// against 4 µs in a long run).
const KEPT_WORTH: u32 = 12;
/// Queue numbers after those of [`TwoQueue`].
const WINDOW: u32 = 2;
const SETTLED: u32 = 3;

/// The queues of both.
#[derive(Debug)]
pub struct Sweep {
    kept: TwoQueue,
    /// Swept pages, latest last.
    window: Queue,
    /// Swept pages that stay.
    settled: Queue,
    /// Pages that the windows of all threads may take.
    window_pages: u32,
    evictions: AtomicU32,
    /// Swept pages that came back so soon that the sweep would fit into memory but for the kept
    /// pages: so many of these leave.
    crowded: AtomicU32,
    budget: u32,
}

impl Sweep {
    /// Over `pages` managed pages, `budget` of them resident.
    #[must_use]
    pub fn new(pages: u32, budget: u32) -> Self {
        let words = Words::new(pages, 4);
        Sweep {
            window: Queue::new(&words, WINDOW),
            settled: Queue::new(&words, SETTLED),
            kept: TwoQueue::over(words, budget),
            window_pages: (max_window(budget) * 8).min(budget / 8).max(1),
            evictions: AtomicU32::new(0),
            crowded: AtomicU32::new(0),
            budget,
        }
    }

    fn words(&self) -> &Words {
        self.kept.words()
    }

    /// `page` became resident; what is known of it, for [`Sweep::pass`] or [`Sweep::keep`].
    pub(crate) fn arrive(&self, page: Page, how: Arrival) -> Past {
        self.words().arrive(page, how == Arrival::Ahead)
    }

    /// The page that arrived is swept over.
    pub(crate) fn pass(&self, page: Page, past: Past) {
        if matches!(past, Past::Present | Past::Revived) {
            return;
        }
        if self.is_soon(past) {
            self.crowd(|count| count.checked_add(1));
        }
        self.window.push(self.words(), page);
    }

    /// The page that arrived is not swept over.
    pub(crate) fn keep(&self, page: Page, past: Past, how: Arrival) {
        if how == Arrival::Demand && self.is_soon(past) {
            self.crowd(|count| Some(count.saturating_sub(KEPT_WORTH)));
        }
        self.kept.queue(page, past, how);
    }

    /// Whether a page with this past was evicted so lately that it would still be here, were
    /// three quarters of memory its own queue's. (A part of a longer sweep may be in place already,
    /// so that the whole would not fit.)
    fn is_soon(&self, past: Past) -> bool {
        let soon = |distance| distance < self.budget / 4 * 3;
        self.kept.distance(past).is_some_and(soon)
    }

    fn crowd(&self, change: impl Fn(u32) -> Option<u32>) -> bool {
        self.crowded
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, change)
            .is_ok()
    }

    /// As [`Policy::used`].
    pub(crate) fn used(&self, page: Page, _how: Use) {
        self.words().touch(page);
    }

    /// As [`Policy::removed`].
    pub(crate) fn removed(&self, pages: Span) {
        self.kept.removed(pages);
    }

    /// As [`Policy::victims`].
    pub(crate) fn victims(&self, out: &mut [Page]) -> usize {
        let Some(turn) = self.words().turn() else {
            return 0;
        };
        // What passed before memory was full settles: all but the latest window.
        while self.window.len() > 2 * self.window_pages {
            let Some(taken) = self.words().take(&self.window, &turn) else {
                break;
            };
            self.words().requeue(taken.page, 0, &self.settled, &turn);
        }
        let mut found = 0;
        while found < out.len() {
            if self.kept_page_is_due() {
                let chosen = self.kept.choose(&mut out[found..=found], &turn);
                found += chosen;
                if chosen == 1 {
                    continue;
                }
            }
            let Some(taken) = self.words().take(self.next_queue(), &turn) else {
                break;
            };
            if self.kept.evict(taken.page) {
                out[found] = taken.page;
                found += 1;
            }
        }
        found += self.kept.choose(&mut out[found..], &turn);
        // At last the window itself.
        while found < out.len() {
            let Some(taken) = self.words().take(&self.window, &turn) else {
                break;
            };
            if self.kept.evict(taken.page) {
                out[found] = taken.page;
                found += 1;
            }
        }
        found
    }

    fn kept_page_is_due(&self) -> bool {
        let count = self.evictions.fetch_add(1, Ordering::Relaxed);
        let crowded = || self.crowd(|count| count.checked_sub(1));
        count % KEPT_TURNOVER == KEPT_TURNOVER - 1 || (count.is_multiple_of(2) && crowded())
    }

    fn next_queue(&self) -> &Queue {
        let count = self.evictions.load(Ordering::Relaxed);
        let from_settled =
            (count / TURNOVER_RUN).is_multiple_of(TURNOVER) && !self.settled.is_empty();
        match self.window.len() > self.window_pages && !from_settled {
            true => &self.window,
            false => &self.settled,
        }
    }

    /// As [`Policy::kept`].
    pub(crate) fn kept(&self, page: Page) {
        self.kept.kept(page);
    }

    /// As [`Policy::forked`].
    pub(crate) fn forked(&self) {
        self.kept.forked();
    }
}
