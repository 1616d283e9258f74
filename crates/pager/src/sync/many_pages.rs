//! Two neighbouring pages, each with a slot of the store, beside a fork: parent and child together have as
//! many references to a slot as there are pages in it.

use super::{AtomicU32, Gate, PageLock, State, Word};
use core::sync::atomic::Ordering;
use loom::sync::Arc;
use loom::thread;

/// Pages in the order of their addresses.
const PAGES: usize = 2;

struct Model {
    words: [AtomicU32; PAGES],
    sleepers: AtomicU32,
    gate: Gate,
    /// References to the slot in which each page is at first.
    references: [AtomicU32; PAGES],
    /// The child's pages.
    child: [AtomicU32; PAGES],
}

const fn evicted(index: usize) -> Word {
    Word::new(State::Evicted, index as u32 + 1)
}

impl Model {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            words: core::array::from_fn(|index| AtomicU32::new(evicted(index).0)),
            sleepers: AtomicU32::new(0),
            gate: Gate::new(),
            references: core::array::from_fn(|_| AtomicU32::new(1)),
            child: core::array::from_fn(|_| AtomicU32::new(Word::EMPTY.0)),
        })
    }

    fn page(&self, index: usize) -> PageLock<'_> {
        PageLock::new(&self.words[index], &self.sleepers)
    }

    /// A fault on the last page, as `Work::run` and `Work::read`: its neighbours come with it, to be
    /// written.
    fn fault(&self) {
        let last = PAGES - 1;
        loop {
            let word = self.page(last).word();
            if word.is_busy() {
                self.page(last).sleep(word);
                return;
            }
            if word.state() != State::Evicted {
                return;
            }
            if self.page(last).enter(word, &self.gate) {
                break;
            }
            self.gate.pass();
        }
        let joins = |index: &usize| {
            let word = self.page(*index).word();
            let like = !word.is_busy() && word.state() == State::Evicted;
            like && self.page(*index).enter(word, &self.gate)
        };
        let along = (0..last).rev().take_while(joins).count();
        (last - along..=last).for_each(|index| self.arrive(index));
    }

    /// A page without its slot, which this thread has locked.
    fn arrive(&self, index: usize) {
        let before = self.references[index].fetch_sub(1, Ordering::AcqRel);
        assert!(before > 0, "a slot is released that nobody has");
        self.page(index).unlock(Word::new(State::Dirty, 0));
    }

    /// As `Pager::before_fork`, the fork, and `Pager::after_fork_parent`.
    fn fork(&self) {
        self.gate.close();
        (0..PAGES).for_each(|index| self.settle(index));
        for (word, child) in self.words.iter().zip(&self.child) {
            // Who comes now locks a page for a moment, and lets go; the child has no such thread.
            let word = Word(word.load(Ordering::Acquire)).idle();
            child.store(word.0, Ordering::Release);
        }
        self.gate.open();
    }

    fn settle(&self, index: usize) {
        let mut word = self.page(index).word();
        while word.is_busy() {
            word = self.page(index).sleep(word);
        }
        if word.owns_slot() {
            let before = self.references[index].fetch_add(1, Ordering::AcqRel);
            assert!(before > 0, "the child gets a slot that nobody has");
        }
    }

    fn check(&self) {
        for index in 0..PAGES {
            let owns = |words: &[AtomicU32; PAGES]| {
                u32::from(Word(words[index].load(Ordering::Relaxed)).owns_slot())
            };
            let references = self.references[index].load(Ordering::Relaxed);
            let owners = owns(&self.words) + owns(&self.child);
            assert_eq!(references, owners, "references to the slot of page {index}");
        }
        assert_eq!(self.sleepers.load(Ordering::Relaxed), 0);
    }
}

fn beside<const N: usize>(switches: Option<usize>, bodies: [fn(&Model); N]) {
    let mut all = loom::model::Builder::new();
    all.preemption_bound = switches;
    all.check(move || {
        let model = Model::new();
        let threads = bodies.map(|body| {
            let model = model.clone();
            thread::spawn(move || body(&model))
        });
        for one in threads {
            one.join().expect("no thread panics");
        }
        model.check();
    });
}

#[test]
fn pages_that_come_with_another_one_wait_for_a_fork_as_well() {
    // Both wait in loops: there are too many interleavings to try them all.
    beside(Some(4), [Model::fault, Model::fork]);
    beside(Some(2), [Model::fault, Model::fork, Model::fault]);
}
