//! Lets swept pages pass through memory, and keeps the others.
//!
//! A repeated sweep over more than fits into memory never hits under any eviction order by age:
//! each page is evicted just before its use. Therefore the pages that a sweep reads are evicted
//! first, just behind it, and a fixed part of the swept range stays resident.
//!
//! ```text
//!  swept:  ████████████░░░░░░░░░░░░░░░░░▒▒▒▶───────────────────
//!          settled     evicted          window  read ahead
//! ```

use core::sync::atomic::{AtomicU32, Ordering};

use crate::page::{Arrival, Page, Span, Use};
use crate::policy::Policy;
use crate::prefetch::max_window;
use crate::queue::{Past, Queue, Stamp, Turn, Words};
use crate::two_queue::TwoQueue;
use crate::width::Width;

/// One victim in this many is a settled page, so that settled pages of arrays that are no longer
/// swept are evicted eventually.
const TURNOVER: u32 = 32;
/// Settled pages are evicted in runs of this length: neighbours evicted together can be read
/// together.
const TURNOVER_RUN: u32 = 64;
/// One victim in this many is a kept page, for the same reason; a kept page that is needed again
/// costs a stall.
const KEPT_TURNOVER: u32 = 512;
/// When a kept page came back soon after eviction, this many turns are skipped: others would come
/// back as well.
const SPARED: u32 = 15;
/// A kept page that comes back soon costs as much as this many swept ones: it is read alone (47 µs
/// against 4 µs per page in a long run).
const KEPT_WORTH: u32 = 12;
/// At most one kept page in this many is owed to sweeps at a time: a past shortage must not cost
/// pages that came since.
const MOST_OWED: u32 = 32;
/// The unit of shares.
const WHOLE: u32 = 1024;
/// Queue numbers after those of [`TwoQueue`].
const WINDOW: u32 = 2;
const SETTLED: u32 = 3;

/// The queues of kept and swept pages.
#[derive(Debug)]
pub struct Sweep {
    kept: TwoQueue,
    /// Swept pages that pass through, latest last.
    window: Queue,
    /// Swept pages that stay.
    settled: Queue,
    width: Width,
    /// Evicted pages, swept or kept: the clock of swept pages. Kept pages are timed by the clock of
    /// their own lists, which a concurrent sweep does not advance.
    evictions: AtomicU32,
    /// Swept pages that came back so soon that the sweep would fit into memory without some of the
    /// kept pages: this many kept pages are to be evicted.
    crowded: AtomicU32,
    /// Share of swept pages among recent evictions, in [`WHOLE`]ths.
    swept_share: AtomicU32,
    /// Share of kept pages that came back soon after eviction, among those that came back, in
    /// [`WHOLE`]ths.
    soon_share: AtomicU32,
    /// Turns of kept pages to skip.
    spared: AtomicU32,
    budget: u32,
}

impl Sweep {
    /// Over `pages` managed pages, `budget` of them resident.
    #[must_use]
    pub fn new(pages: u32, budget: u32) -> Self {
        let words = Words::new(pages, 4);
        let window_pages = (max_window(budget) * 8).min(budget / 8).max(1);
        Sweep {
            window: Queue::new(&words, WINDOW),
            settled: Queue::new(&words, SETTLED),
            kept: TwoQueue::over(words, budget),
            width: Width::new(window_pages),
            evictions: AtomicU32::new(0),
            crowded: AtomicU32::new(0),
            swept_share: AtomicU32::new(0),
            soon_share: AtomicU32::new(0),
            spared: AtomicU32::new(0),
            budget,
        }
    }

    fn words(&self) -> &Words {
        self.kept.words()
    }

    /// Streams under way have `in_flight` pages in their windows: leaves the latest swept pages in
    /// memory accordingly.
    pub(crate) fn leave_window(&self, in_flight: u32) {
        self.width.set(in_flight);
    }

    /// `page` became resident; `missed` if it was missed outside any stream. Returns what is known
    /// of it, for [`Sweep::pass`] or [`Sweep::keep`].
    pub(crate) fn arrive(&self, page: Page, missed: bool) -> Past {
        self.words().arrive(page, missed)
    }

    /// What [`Sweep::arrive`] would return.
    pub(crate) fn past(&self, page: Page) -> Past {
        self.words().past(page)
    }

    /// The page that arrived is part of a sweep.
    pub(crate) fn pass(&self, page: Page, past: Past) {
        if matches!(past, Past::Present | Past::Revived) {
            return;
        }
        if let Some(distance) = self.distance(past).filter(|_| is_passed(past)) {
            self.width.returned(distance);
        }
        if self.fits(past) {
            let most = self.budget / MOST_OWED;
            self.crowd(|count| (count < most).then_some(count + 1));
        }
        self.window.push(self.words(), page);
    }

    /// The page that arrived is not part of a sweep.
    pub(crate) fn keep(&self, page: Page, past: Past, how: Arrival) {
        let distance = self.distance(past);
        if let (Some(distance), Arrival::Demand) = (distance, how) {
            if distance < self.budget / 4 * 3 {
                self.crowd(|count| Some(count.saturating_sub(KEPT_WORTH)));
                self.spared.store(SPARED, Ordering::Relaxed);
            }
            if !is_passed(past) {
                self.width.displaced(distance, KEPT_WORTH);
            }
            let soon = !is_passed(past) && distance < self.budget / 2;
            follow(&self.soon_share, u32::from(soon) * WHOLE, 32);
        }
        self.kept.queue(page, past, distance, how);
    }

    /// Evictions since a page with this past was evicted, on its clock.
    fn distance(&self, past: Past) -> Option<u32> {
        match past {
            Past::Evicted(stamp) if is_passed(past) => Some(self.now().since(stamp)),
            _ => self.kept.distance(past),
        }
    }

    /// The stamp for evicted settled pages: how soon they come back does not depend on the length
    /// of their sweep.
    fn long_ago(&self) -> Stamp {
        let now = self.evictions.load(Ordering::Relaxed);
        Stamp::passed(now.wrapping_sub(self.budget))
    }

    fn now(&self) -> Stamp {
        Stamp::passed(self.evictions.load(Ordering::Relaxed))
    }

    /// Whether the sweep that brought back a swept page with this past would fit into memory: the
    /// pages it had to read since then plus those that stayed resident.
    fn fits(&self, past: Past) -> bool {
        let missed = self.distance(past).filter(|_| is_passed(past));
        let all = missed.map(|count| count.saturating_add(self.settled.len()));
        all.is_some_and(|count| count < self.budget / 8 * 7)
    }

    /// Whether pages read next to `page`, which will be kept, take no room from kept pages in use:
    /// swept pages give way, or evicted pages do not come back. (When much more than memory is used
    /// without order, few come back soon; so something must be swept, this page or others.)
    pub(crate) fn has_room_beside(&self, page: Page) -> bool {
        let contended = self.soon_share.load(Ordering::Relaxed) > WHOLE / 12;
        let sweeps = self.swept_share.load(Ordering::Relaxed) > WHOLE / 4;
        !self.settled.is_empty() || (!contended && (sweeps || is_passed(self.past(page))))
    }

    /// Number of pages of `span` that are here because they were missed.
    pub(crate) fn missed(&self, span: Span) -> usize {
        let end = span.end().min(self.words().pages());
        (span.first..end)
            .filter(|page| self.words().is_missed(*page))
            .count()
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
        // Pages that passed before memory was full, or before the window became narrow, become settled.
        while self.window.len() > self.width.most() {
            let Some(taken) = self.words().take(&self.window, &turn) else {
                break;
            };
            self.words().requeue(taken.page, 0, &self.settled, &turn);
        }
        let (mut found, mut kept) = (0, 0);
        while found < out.len() {
            if self.kept_page_is_due() {
                let chosen = self.kept.choose(&mut out[found..=found], &turn);
                found += chosen;
                kept += chosen;
                if chosen == 1 {
                    continue;
                }
            }
            let (queue, stamp) = match self.window_is_next() {
                true => (&self.window, self.now()),
                false => (&self.settled, self.long_ago()),
            };
            let Some(page) = self.evict_first(queue, stamp, &turn) else {
                break;
            };
            out[found] = page;
            found += 1;
        }
        let chosen = self.kept.choose(&mut out[found..], &turn);
        let count = u32::try_from(chosen).unwrap_or(0);
        self.evictions.fetch_add(count, Ordering::Relaxed);
        found += chosen;
        kept += chosen;
        // Finally the window itself.
        while found < out.len() {
            let Some(page) = self.evict_first(&self.window, self.now(), &turn) else {
                break;
            };
            out[found] = page;
            found += 1;
        }
        let swept = (found - kept) * WHOLE as usize;
        if let Some(share) = swept.checked_div(found) {
            follow(&self.swept_share, u32::try_from(share).unwrap_or(0), 8);
        }
        found
    }

    /// Evicts the first page of `queue` that was not freed.
    fn evict_first(&self, queue: &Queue, stamp: Stamp, turn: &Turn<'_>) -> Option<Page> {
        loop {
            let page = self.words().take(queue, turn)?.page;
            if self.words().evict(page, Some(stamp)) {
                return Some(page);
            }
        }
    }

    fn kept_page_is_due(&self) -> bool {
        let count = self.evictions.fetch_add(1, Ordering::Relaxed);
        let crowded = || self.crowd(|count| count.checked_sub(1));
        let turn = count % KEPT_TURNOVER == KEPT_TURNOVER - 1;
        (turn && !self.is_spared()) || (count.is_multiple_of(2) && crowded())
    }

    /// Whether recently evicted kept pages were needed again, so that this turn is skipped.
    fn is_spared(&self) -> bool {
        let fewer = |turns: u32| turns.checked_sub(1);
        self.spared
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, fewer)
            .is_ok()
    }

    fn window_is_next(&self) -> bool {
        let count = self.evictions.load(Ordering::Relaxed);
        let from_settled =
            (count / TURNOVER_RUN).is_multiple_of(TURNOVER) && !self.settled.is_empty();
        self.window.len() > self.width.pages() && !from_settled
    }

    /// Swept pages that pass through, at the moment.
    #[cfg(test)]
    pub(crate) fn in_window(&self) -> u32 {
        self.window.len()
    }

    /// As [`Policy::is_swept`].
    pub(crate) fn is_swept(&self, page: Page) -> bool {
        is_passed(self.past(page))
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

/// Whether a page with this past was a swept page when it was evicted.
fn is_passed(past: Past) -> bool {
    matches!(past, Past::Evicted(stamp) if stamp.is_passed())
}

/// Moves the mean `share` towards `one` by one part in `parts`. Concurrent updates may be lost.
fn follow(share: &AtomicU32, one: u32, parts: u32) {
    let lately = share.load(Ordering::Relaxed);
    share.store((lately * (parts - 1) + one) / parts, Ordering::Relaxed);
}
