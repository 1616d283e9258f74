//! A page's word as its lock.

use super::Gate;
use super::shim::{AtomicU32, futex_wait, futex_wake};
use super::word::Word;
use core::sync::atomic::Ordering;

/// The lock of one page.
///
/// The thread that sets busy (by [`attempt`](Self::attempt) or [`lock`](Self::lock)) owns the
/// page's bytes, its slot and its place until [`unlock`](Self::unlock). A thread that finds the
/// page busy sleeps on the word. A sleeper is counted before the kernel checks the word, and the
/// unlocking thread checks for sleepers after the word has changed: one of the two sees the other,
/// so no wake-up is lost.
#[derive(Clone, Copy, Debug)]
pub struct PageLock<'a> {
    word: &'a AtomicU32,
    sleepers: &'a AtomicU32,
}

/// The result of an attempt to lock a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attempt {
    /// It is locked; this was its word.
    Locked(Word),
    /// It changed meanwhile; this is its word now.
    Changed(Word),
}

impl<'a> PageLock<'a> {
    /// The lock of the page with `word`; `sleepers` may be shared by several.
    #[inline]
    pub const fn new(word: &'a AtomicU32, sleepers: &'a AtomicU32) -> Self {
        Self { word, sleepers }
    }

    /// The page's current word.
    #[inline]
    pub fn word(self) -> Word {
        Word(self.word.load(Ordering::Acquire))
    }

    /// Locks the page if its word is still `expected`, which is not busy.
    #[inline]
    pub fn attempt(self, expected: Word) -> Attempt {
        match self.word.compare_exchange(
            expected.0,
            expected.busy().0,
            Ordering::SeqCst,
            Ordering::Acquire,
        ) {
            Ok(_) => Attempt::Locked(expected),
            Err(now) => Attempt::Changed(Word(now)),
        }
    }

    /// Locks the page as [`attempt`](Self::attempt) does, for work that changes its state while a
    /// fork may be coming: where `gate` is closed, the page is let go again. Whoever forks counts
    /// the slots of pages that it does not lock.
    pub fn enter(self, expected: Word, gate: &Gate) -> bool {
        if self.attempt(expected) != Attempt::Locked(expected) {
            return false;
        }
        let open = !gate.is_closed();
        if !open {
            self.unlock(expected);
        }
        open
    }

    /// Waits for the lock. Returns the page's word.
    pub fn lock(self) -> Word {
        let mut word = self.word();
        loop {
            if word.is_busy() {
                word = self.sleep(word);
                continue;
            }
            match self.attempt(word) {
                Attempt::Locked(word) => return word,
                Attempt::Changed(now) => word = now,
            }
        }
    }

    /// Changes the page from `expected` to `next` without locking it.
    #[inline]
    pub fn exchange(self, expected: Word, next: Word) -> bool {
        self.word
            .compare_exchange(expected.0, next.0, Ordering::SeqCst, Ordering::Relaxed)
            .is_ok()
    }

    /// Unlocks the page, which is now `word`, and wakes waiting threads.
    #[inline]
    pub fn unlock(self, word: Word) {
        self.word.store(word.idle().0, Ordering::SeqCst);
        if self.sleepers.load(Ordering::SeqCst) != 0 {
            futex_wake(self.word, i32::MAX);
        }
    }

    /// Sleeps until the page is no longer `word`, which is busy. Returns its word then.
    pub fn sleep(self, word: Word) -> Word {
        self.sleepers.fetch_add(1, Ordering::SeqCst);
        futex_wait(self.word, word.0, None);
        self.sleepers.fetch_sub(1, Ordering::SeqCst);
        self.word()
    }

    /// Sleeps while the thread that has locked the page as `word` works on it. Returns whether it
    /// is `word` again.
    pub fn outlast(self, word: Word) -> bool {
        let mut now = self.word();
        while now == word.busy() {
            now = self.sleep(now);
        }
        now == word
    }

    /// Sets the word while nothing else can use the page: in the child of a fork, or under its
    /// lock.
    #[inline]
    pub fn set(self, word: Word) {
        self.word.store(word.0, Ordering::Release);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::super::word::State;
    use super::*;
    use std::thread;

    #[test]
    fn one_thread_works_at_a_page_at_a_time() {
        let (word, sleepers) = (AtomicU32::new(0), AtomicU32::new(0));
        let page = PageLock::new(&word, &sleepers);
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    for _ in 0..50 {
                        let found = page.lock();
                        page.unlock(Word::new(State::Evicted, found.slot() + 1));
                    }
                });
            }
        });
        assert_eq!(page.word(), Word::new(State::Evicted, 150));
        assert_eq!(sleepers.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn nobody_enters_where_the_gate_is_closed() {
        let (word, sleepers) = (AtomicU32::new(0), AtomicU32::new(0));
        let (page, gate) = (PageLock::new(&word, &sleepers), Gate::new());
        gate.close();
        assert!(!page.enter(Word::EMPTY, &gate));
        assert_eq!(page.word(), Word::EMPTY, "let go");
        gate.open();
        assert!(!page.enter(Word::new(State::Dirty, 0), &gate), "it is not");
        assert!(page.enter(Word::EMPTY, &gate) && page.word().is_busy());
    }

    #[test]
    fn what_has_changed_is_not_locked() {
        let (word, sleepers) = (AtomicU32::new(0), AtomicU32::new(0));
        let page = PageLock::new(&word, &sleepers);
        let dirty = Word::new(State::Dirty, 0);
        assert_eq!(page.attempt(dirty), Attempt::Changed(Word::EMPTY));
        assert_eq!(page.attempt(Word::EMPTY), Attempt::Locked(Word::EMPTY));
        assert!(!page.exchange(Word::EMPTY, dirty), "it is busy");
        page.unlock(dirty);
        assert!(page.outlast(dirty) && page.exchange(dirty, Word::EMPTY));
    }
}
