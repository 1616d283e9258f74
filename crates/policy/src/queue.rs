//! Queues of pages that need four bytes per page and have a lock-free push.
//!
//! Each page has one 32-bit word. While the page is in a queue, the word contains the link to the
//! next page, so a page is in at most one queue and no queue can overflow. Otherwise the word
//! records when the page was evicted.
//!
//! ```text
//!            31      30    29..28  27      26..0
//! in a queue LINKED  LIVE  uses    missed  next page
//! elsewhere  0       0     ─────────── eviction stamp, 0: none
//! ```
//!
//! Any thread pushes (one atomic swap); one thread at a time takes, which [`Words::turn`] enforces.
//! This is Vyukov's intrusive multi-producer single-consumer queue, with indices for pointers. A
//! page that is freed while queued only loses LIVE: the consumer skips it, and if it comes back
//! before that, it keeps its place.

use alloc::boxed::Box;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use crate::page::{MAX_PAGES, Page};

const LINKED: u32 = 1 << 31;
const LIVE: u32 = 1 << 30;
const USES_SHIFT: u32 = 28;
const USES: u32 = 3 << USES_SHIFT;
const MISSED: u32 = 1 << 27;
const LINK: u32 = MISSED - 1;
const NIL: u32 = LINK;
/// Bits of an eviction stamp.
const STAMP_BITS: u32 = 29;
const STAMP: u32 = (1 << STAMP_BITS) - 1;

/// Maximum of the use count in a page's word.
pub const MAX_USES: u32 = 3;

/// A point in time, counted in evictions. Wraps; only distances smaller than the range are
/// meaningful.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp(u32);

/// Set in stamps of the second clock.
const PASSED: u32 = 2;
/// Bits of a stamp before its count.
const COUNT_SHIFT: u32 = 2;

impl Stamp {
    /// The moment of eviction number `count`.
    #[must_use]
    pub const fn at(count: u32) -> Self {
        // Zero means "none" in a word, so every stamp is odd.
        Stamp((count << COUNT_SHIFT | 1) & STAMP)
    }

    /// The same on the clock of pages that only pass through memory.
    #[must_use]
    pub const fn passed(count: u32) -> Self {
        Stamp(Self::at(count).0 | PASSED)
    }

    /// Whether this is a stamp from [`Stamp::passed`].
    #[must_use]
    pub const fn is_passed(self) -> bool {
        self.0 & PASSED != 0
    }

    /// Evictions from `earlier`, a stamp of the same clock, until this moment.
    #[must_use]
    pub const fn since(self, earlier: Stamp) -> u32 {
        (self.0.wrapping_sub(earlier.0) & STAMP) >> COUNT_SHIFT
    }
}

/// What a page's word records when the page arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Past {
    /// It is already in a queue, alive: nothing to do.
    Present,
    /// It is in a queue, was freed and has not been skipped yet; it becomes live again in its old
    /// place.
    Revived,
    /// Evicted at that moment; the caller must push it.
    Evicted(Stamp),
    /// Nothing is known; the caller must push it.
    Unknown,
}

/// One word for each page.
#[derive(Debug)]
pub struct Words {
    words: Box<[AtomicU32]>,
    pages: u32,
    busy: AtomicBool,
}

/// The exclusive right to take from queues.
#[derive(Debug)]
pub struct Turn<'a>(&'a AtomicBool);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

/// A live page taken from a queue, with its use count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Taken {
    /// The page.
    pub page: Page,
    /// Uses seen since it was queued, at most [`MAX_USES`].
    pub uses: u32,
}

impl Words {
    /// Words for `pages` pages, all unknown, and the ends of `queues` queues. The memory is zero
    /// pages until first used.
    #[must_use]
    pub fn new(pages: u32, queues: u32) -> Self {
        assert!(
            pages <= MAX_PAGES && queues <= 8,
            "the caller checks the capacity"
        );
        let words = bytemuck::allocation::zeroed_slice_box((pages + queues) as usize);
        Words {
            words,
            pages,
            busy: AtomicBool::new(false),
        }
    }

    /// The right to take pages; `None` while another thread has it.
    pub fn turn(&self) -> Option<Turn<'_>> {
        let free = !self.busy.swap(true, Ordering::Acquire);
        free.then_some(Turn(&self.busy))
    }

    /// Resets the turn in the child of a fork, where the thread that had it does not exist.
    pub fn forked(&self) {
        self.busy.store(false, Ordering::Release);
    }

    /// Number of pages.
    #[must_use]
    pub const fn pages(&self) -> u32 {
        self.pages
    }

    fn word(&self, page: Page) -> &AtomicU32 {
        &self.words[page as usize]
    }

    fn update(&self, page: Page, change: impl Fn(u32) -> u32) -> u32 {
        let word = self.word(page);
        let mut old = word.load(Ordering::Relaxed);
        loop {
            match word.compare_exchange_weak(old, change(old), Ordering::AcqRel, Ordering::Acquire)
            {
                Ok(_) => return old,
                Err(now) => old = now,
            }
        }
    }

    /// `page` became resident: it was `missed`, or it was read with others. After [`Past::Evicted`]
    /// and [`Past::Unknown`] the caller owns the page's place and must push it to a queue.
    pub fn arrive(&self, page: Page, missed: bool) -> Past {
        let fresh = LINKED | LIVE | if missed { MISSED } else { 0 } | NIL;
        let old = self.update(
            page,
            |old| if old & LINKED != 0 { old | LIVE } else { fresh },
        );
        Self::decoded(old)
    }

    /// A use of `page` was seen.
    pub fn touch(&self, page: Page) {
        self.update(page, |old| match old {
            _ if old & LINKED == 0 => old,
            _ if old & USES == USES => old,
            _ => old + (1 << USES_SHIFT),
        });
    }

    /// `page` was freed.
    pub fn forget(&self, page: Page) {
        let word = self.word(page);
        // Most pages of a large region that is freed were never resident: look before writing, so
        // that their words stay unbacked.
        if word.load(Ordering::Relaxed) != 0 {
            self.update(page, |old| {
                if old & LINKED != 0 {
                    old & !(LIVE | USES)
                } else {
                    0
                }
            });
        }
    }

    /// Whether `page` is in a queue and alive.
    #[must_use]
    pub fn is_queued(&self, page: Page) -> bool {
        self.word(page).load(Ordering::Acquire) & (LINKED | LIVE) == LINKED | LIVE
    }

    /// Whether `page` is in a queue, alive, and came because it was missed.
    #[must_use]
    pub fn is_missed(&self, page: Page) -> bool {
        const ALL: u32 = LINKED | LIVE | MISSED;
        self.word(page).load(Ordering::Relaxed) & ALL == ALL
    }

    /// What is known of `page`: the value that [`Words::arrive`] would return.
    #[must_use]
    pub fn past(&self, page: Page) -> Past {
        Self::decoded(self.word(page).load(Ordering::Relaxed))
    }

    fn decoded(word: u32) -> Past {
        match word {
            _ if word & (LINKED | LIVE) == LINKED | LIVE => Past::Present,
            _ if word & LINKED != 0 => Past::Revived,
            0 => Past::Unknown,
            stamp => Past::Evicted(Stamp(stamp & STAMP)),
        }
    }

    /// Takes the first live page out of `queue`; the page keeps its word until [`Words::evict`] or
    /// a push. `None` when the queue is empty.
    pub fn take(&self, queue: &Queue, _turn: &Turn<'_>) -> Option<Taken> {
        while let Some(page) = queue.unlink(self) {
            let word = self.word(page);
            let mut old = word.load(Ordering::Acquire);
            while old & LIVE == 0 {
                match word.compare_exchange_weak(old, 0, Ordering::AcqRel, Ordering::Acquire) {
                    Ok(_) => break,
                    Err(now) => old = now,
                }
            }
            if old & LIVE != 0 {
                let uses = (old & USES) >> USES_SHIFT;
                return Some(Taken { page, uses });
            }
        }
        None
    }

    /// Marks a taken page as evicted, recording `stamp`. Returns false if it was freed meanwhile:
    /// then it is no longer a victim.
    pub fn evict(&self, page: Page, stamp: Option<Stamp>) -> bool {
        let memory = stamp.map_or(0, |stamp| stamp.0);
        let old = self.update(page, |old| if old & LIVE != 0 { memory } else { 0 });
        old & LIVE != 0
    }

    /// Puts a taken page at the end of `queue`, with `uses` uses. A page that was freed meanwhile
    /// is dropped.
    pub fn requeue(&self, page: Page, uses: u32, queue: &Queue, _turn: &Turn<'_>) {
        let old = self.update(page, |old| match old & LIVE {
            0 => 0,
            _ => LINKED | LIVE | (uses.min(MAX_USES) << USES_SHIFT) | old & MISSED | NIL,
        });
        if old & LIVE != 0 {
            queue.push(self, page);
        }
    }

    fn link(&self, page: Page) -> u32 {
        self.word(page).load(Ordering::Acquire) & LINK
    }

    fn set_link(&self, page: Page, next: u32) {
        self.update(page, |old| old & !LINK | next);
    }
}

/// A first-in first-out queue over [`Words`].
#[derive(Debug)]
pub struct Queue {
    /// Index of the word that stands for the empty queue.
    stub: u32,
    front: AtomicU32,
    back: AtomicU32,
    length: AtomicU32,
}

impl Queue {
    /// Queue number `number` over `words`; each number may be used once.
    #[must_use]
    pub fn new(words: &Words, number: u32) -> Self {
        let stub = words.pages + number;
        words.word(stub).store(LINKED | NIL, Ordering::Release);
        Queue {
            stub,
            front: AtomicU32::new(stub),
            back: AtomicU32::new(stub),
            length: AtomicU32::new(0),
        }
    }

    /// Pages in the queue, including freed ones that were not skipped yet.
    #[must_use]
    pub fn len(&self) -> u32 {
        self.length.load(Ordering::Relaxed)
    }

    /// Whether [`Queue::len`] is zero.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Puts `page`, whose place the caller owns since [`Words::arrive`], at the end.
    pub fn push(&self, words: &Words, page: Page) {
        self.length.fetch_add(1, Ordering::Relaxed);
        self.append(words, page);
    }

    fn append(&self, words: &Words, page: Page) {
        let previous = self.back.swap(page, Ordering::AcqRel);
        words.set_link(previous, page);
    }

    /// Takes the first page out; `None` when the queue is empty, or when a push is half done.
    fn unlink(&self, words: &Words) -> Option<Page> {
        let mut first = self.front.load(Ordering::Relaxed);
        let mut next = words.link(first);
        if first == self.stub {
            if next == NIL {
                return None;
            }
            self.front.store(next, Ordering::Relaxed);
            first = next;
            next = words.link(first);
        }
        if next == NIL {
            if self.back.load(Ordering::Acquire) != first {
                return None;
            }
            // The last page can only be unlinked once something stands behind it: the stub.
            words.set_link(self.stub, NIL);
            self.append(words, self.stub);
            next = words.link(first);
            if next == NIL {
                return None;
            }
        }
        self.front.store(next, Ordering::Relaxed);
        self.length.fetch_sub(1, Ordering::Relaxed);
        Some(first)
    }

    /// Lists the first live pages, up to `out.len()`, without taking them.
    pub fn peek(&self, words: &Words, out: &mut [Page], _turn: &Turn<'_>) -> usize {
        let mut page = self.front.load(Ordering::Relaxed);
        let mut found = 0;
        // Freed pages are skipped, but only a limited number of them.
        for _ in 0..out.len().saturating_mul(4) {
            if page == NIL || found == out.len() {
                break;
            }
            if page != self.stub && words.is_queued(page) {
                out[found] = page;
                found += 1;
            }
            page = words.link(page);
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::sync::atomic::AtomicUsize;

    use proptest::prelude::*;

    use super::*;

    #[derive(Debug, Clone)]
    enum Step {
        Arrive(u32),
        Forget(u32),
        Touch(u32),
        Take,
        TakeAndRequeue,
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let page = 0..24u32;
        prop::collection::vec(
            prop_oneof![
                4 => page.clone().prop_map(Step::Arrive),
                1 => page.clone().prop_map(Step::Forget),
                1 => page.prop_map(Step::Touch),
                2 => Just(Step::Take),
                1 => Just(Step::TakeAndRequeue),
            ],
            0..400,
        )
    }

    /// A naive model of the queue: a list of (page, alive, uses).
    #[derive(Default)]
    struct Naive(VecDeque<(u32, bool, u32)>);

    impl Naive {
        fn find(&mut self, page: u32) -> Option<&mut (u32, bool, u32)> {
            self.0.iter_mut().find(|entry| entry.0 == page)
        }

        fn take(&mut self) -> Option<(u32, u32)> {
            loop {
                let (page, alive, uses) = self.0.pop_front()?;
                if alive {
                    return Some((page, uses));
                }
            }
        }
    }

    proptest! {
        #[test]
        fn a_queue_does_what_a_list_does(steps in steps()) {
            let words = Words::new(24, 2);
            let queue = Queue::new(&words, 1);
            let mut naive = Naive::default();
            let turn = words.turn().expect("free");
            for step in steps {
                match step {
                    Step::Arrive(page) => {
                        let past = words.arrive(page, false);
                        match naive.find(page) {
                            Some(entry) => {
                                let expected = if entry.1 { Past::Present } else { Past::Revived };
                                prop_assert_eq!(past, expected);
                                entry.1 = true;
                            }
                            None => {
                                prop_assert!(matches!(past, Past::Unknown | Past::Evicted(_)));
                                queue.push(&words, page);
                                naive.0.push_back((page, true, 0));
                            }
                        }
                    }
                    Step::Forget(page) => {
                        words.forget(page);
                        if let Some(entry) = naive.find(page) {
                            *entry = (page, false, 0);
                        }
                    }
                    Step::Touch(page) => {
                        words.touch(page);
                        if let Some(entry) = naive.find(page) {
                            entry.2 = (entry.2 + 1).min(3);
                        }
                    }
                    Step::Take => {
                        let taken = words.take(&queue, &turn);
                        prop_assert_eq!(taken.map(|t| (t.page, t.uses)), naive.take());
                        if let Some(taken) = taken {
                            prop_assert!(words.evict(taken.page, Some(Stamp::at(5))));
                            prop_assert!(!words.is_queued(taken.page));
                        }
                    }
                    Step::TakeAndRequeue => {
                        let taken = words.take(&queue, &turn);
                        prop_assert_eq!(taken.map(|t| (t.page, t.uses)), naive.take());
                        if let Some(taken) = taken {
                            words.requeue(taken.page, 1, &queue, &turn);
                            naive.0.push_back((taken.page, true, 1));
                        }
                    }
                }
                prop_assert_eq!(queue.len() as usize, naive.0.len());
                let mut seen = [0; 24];
                let count = queue.peek(&words, &mut seen[..6], &turn);
                let expected: Vec<u32> =
                    naive.0.iter().filter(|e| e.1).map(|e| e.0).take(count.max(1)).collect();
                prop_assert_eq!(&seen[..count], &expected[..count.min(expected.len())]);
            }
        }

        #[test]
        fn distances_survive_the_wrap(start in any::<u32>(), distance in 0u32..1 << 27) {
            let (early, late) = (Stamp::at(start), Stamp::at(start.wrapping_add(distance)));
            prop_assert_eq!(late.since(early), distance);
        }
    }

    #[test]
    fn threads_lose_no_page_and_double_none() {
        const THREADS: u32 = 4;
        const EACH: u32 = 20_000;
        let words = Words::new(THREADS * EACH, 1);
        let queue = Queue::new(&words, 0);
        let taken: Vec<AtomicUsize> = (0..THREADS * EACH).map(|_| AtomicUsize::new(0)).collect();
        let done = AtomicU32::new(0);
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                let (words, queue, done) = (&words, &queue, &done);
                scope.spawn(move || {
                    for page in thread * EACH..(thread + 1) * EACH {
                        assert_eq!(words.arrive(page, false), Past::Unknown);
                        queue.push(words, page);
                        words.touch(page);
                    }
                    done.fetch_add(1, Ordering::Release);
                });
            }
            loop {
                let finished = done.load(Ordering::Acquire) == THREADS;
                let turn = words.turn().expect("only this thread takes");
                match words.take(&queue, &turn) {
                    Some(page) => {
                        taken[page.page as usize].fetch_add(1, Ordering::Relaxed);
                        words.evict(page.page, None);
                    }
                    None if finished => break,
                    None => std::hint::spin_loop(),
                }
            }
        });
        assert!(taken.iter().all(|count| count.load(Ordering::Relaxed) == 1));
    }

    #[test]
    fn only_one_thread_takes_at_a_time() {
        let words = Words::new(4, 1);
        let turn = words.turn();
        assert!(turn.is_some() && words.turn().is_none());
        drop(turn);
        assert!(words.turn().is_some());
    }
}
