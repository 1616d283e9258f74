//! Every interleaving of two threads, and with few switches of three, in the word, the locks and
//! the gate as the pager uses them. Accesses to a page's bytes are modelled as well: loom finds
//! accesses without the right to them, and threads that are never woken as deadlocks.

use super::{AtomicU32, Attempt, Changes, Gate, Lock, PageLock, State, Word};
use core::sync::atomic::Ordering;
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::fence;
use loom::thread;

/// The one slot, and the one place in the tray.
const SLOT: u32 = 7;
const PLACE: u32 = 3;
const EVICTED: Word = Word::new(State::Evicted, SLOT);
const PARKED: Word = Word::new(State::Parked, PLACE);
const DIRTY: Word = Word::new(State::Dirty, 0);

/// One page, and the other state that its threads share.
struct Model {
    word: AtomicU32,
    sleepers: AtomicU32,
    evictions: Lock,
    gate: Gate,
    /// Whether the page is pinned ([`crate::paging::pins`]).
    pinned: AtomicU32,
    changes: Changes,
    /// The bytes as the program sees them, in the tray and in the slot. They belong to the holder
    /// of the page's lock; tray and slot to the evictor while the page is in neither.
    mapped: UnsafeCell<Option<u32>>,
    tray: UnsafeCell<Option<u32>>,
    slot: UnsafeCell<Option<u32>>,
    /// Pages that take memory.
    resident: AtomicU32,
    /// Reads of the store.
    reads: AtomicU32,
}

/// Contents.
const CONTENTS: Option<u32> = Some(42);

/// Reads the bytes of `place`, or changes them.
fn at<T>(place: &UnsafeCell<Option<u32>>, change: impl FnOnce(&mut Option<u32>) -> T) -> T {
    // SAFETY: the owner of the place calls this; loom reports it if another does at the same time.
    place.with_mut(|bytes| change(unsafe { &mut *bytes }))
}

impl Model {
    fn new(word: Word) -> Arc<Self> {
        let (mapped, slot) = match word.state() {
            State::Evicted => (None, CONTENTS),
            State::Empty => (None, None),
            _ => (CONTENTS, None),
        };
        Arc::new(Self {
            word: AtomicU32::new(word.0),
            sleepers: AtomicU32::new(0),
            evictions: Lock::new(),
            gate: Gate::new(),
            pinned: AtomicU32::new(0),
            changes: Changes::new(),
            mapped: UnsafeCell::new(mapped),
            tray: UnsafeCell::new(None),
            slot: UnsafeCell::new(slot),
            resident: AtomicU32::new(u32::from(word.is_resident())),
            reads: AtomicU32::new(0),
        })
    }

    fn page(&self) -> PageLock<'_> {
        PageLock::new(&self.word, &self.sleepers)
    }

    /// A fault, as `Work::run`.
    fn fault(&self) {
        let page = self.page();
        loop {
            let word = page.word();
            if word.is_busy() {
                page.sleep(word);
                return;
            }
            if page.enter(word, &self.gate) {
                return page.unlock(self.resolve(word));
            }
            self.gate.pass();
        }
    }

    /// The missing page is brought in, under its lock. Returns its new word.
    fn resolve(&self, word: Word) -> Word {
        match word.state() {
            State::Evicted => {
                self.reads.fetch_add(1, Ordering::Relaxed);
                self.resident.fetch_add(1, Ordering::Relaxed);
                let bytes = at(&self.slot, Option::take);
                assert!(bytes.is_some(), "read out of an empty slot");
                at(&self.mapped, |page| *page = bytes);
                DIRTY
            }
            State::Empty => {
                self.resident.fetch_add(1, Ordering::Relaxed);
                at(&self.mapped, |page| *page = Some(0));
                DIRTY
            }
            State::Parked => {
                let bytes = at(&self.tray, Option::take);
                assert!(
                    bytes.is_some(),
                    "fetched back out of a place that was cleared"
                );
                at(&self.mapped, |page| *page = bytes);
                DIRTY
            }
            State::Clean | State::Dirty => word,
            State::File | State::Left => unreachable!("see mapped_file"),
        }
    }

    /// An eviction, as `evict_these` with its tray.
    fn evict(&self) {
        let _evictions = self.evictions.hold();
        let page = self.page();
        let word = page.word();
        let goes = !word.is_busy() && word.state() == State::Dirty;
        if !goes || page.attempt(word) != Attempt::Locked(word) {
            return;
        }
        fence(Ordering::SeqCst);
        if self.pinned.load(Ordering::SeqCst) != 0 {
            return page.unlock(word);
        }
        let moved = at(&self.mapped, Option::take);
        at(&self.tray, |place| *place = moved);
        page.unlock(PARKED);
        // The store has the bytes now; the exchange decides whether the slot belongs to the page.
        at(&self.slot, |slot| *slot = moved);
        if page.exchange(PARKED, EVICTED) {
            self.resident.fetch_sub(1, Ordering::Relaxed);
        } else {
            at(&self.slot, |slot| *slot = None);
            assert!(!page.outlast(PARKED), "no fault gives up here");
        }
        at(&self.tray, |place| *place = None);
    }

    /// A page that must not be evicted, as `Pager::keep_stack`: from then on it is present without
    /// its lock.
    fn keep(&self) {
        self.pinned.store(1, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        let page = self.page();
        loop {
            let word = page.word();
            match word.state() {
                _ if word.is_busy() => drop(page.sleep(word)),
                State::Evicted | State::Parked => self.fault(),
                _ => break,
            }
        }
        assert_eq!(at(&self.mapped, |bytes| *bytes), CONTENTS, "kept");
    }

    /// The program gives the page back, as `Pager::emptying`.
    fn discard(&self) {
        let _evictions = self.evictions.hold();
        let word = self.page().lock();
        assert_ne!(word.state(), State::Parked, "nothing is left in the tray");
        if word.is_resident() {
            self.resident.fetch_sub(1, Ordering::Relaxed);
        }
        at(&self.mapped, |page| *page = None);
        if word.owns_slot() {
            at(&self.slot, |slot| *slot = None);
        }
        self.page().unlock(Word::EMPTY);
    }

    /// What must hold at the end.
    fn check(&self) {
        let word = self.page().word();
        assert!(!word.is_busy() && word.state() != State::Parked);
        let resident = self.resident.load(Ordering::Relaxed);
        assert_eq!(resident, u32::from(word.is_resident()), "the budget");
        assert_eq!(self.sleepers.load(Ordering::Relaxed), 0);
        let bytes = [&self.mapped, &self.tray, &self.slot].map(|place| at(place, |bytes| *bytes));
        let there = [word.is_resident(), false, word.owns_slot()];
        assert_eq!(
            bytes.map(|bytes| bytes.is_some()),
            there,
            "bytes in one place"
        );
    }
}

/// Runs the bodies concurrently, two in every order, three in those with at most two switches at
/// points where no thread has to wait, and checks the final state.
fn beside<const N: usize>(
    word: Word,
    bodies: [fn(&Model); N],
    last: impl Fn(&Model) + Send + Sync + 'static,
) {
    within((N > 2).then_some(2), word, bodies, last);
}

fn within<const N: usize>(
    switches: Option<usize>,
    word: Word,
    bodies: [fn(&Model); N],
    last: impl Fn(&Model) + Send + Sync + 'static,
) {
    let mut all = loom::model::Builder::new();
    all.preemption_bound = switches;
    all.check(move || {
        let model = Model::new(word);
        let threads = bodies.map(|body| {
            let model = model.clone();
            thread::spawn(move || body(&model))
        });
        for one in threads {
            one.join().expect("no thread panics");
        }
        model.check();
        last(&model);
    });
}

/// The page's bytes are what they were.
fn kept(model: &Model) {
    let there = match model.page().word().state() {
        State::Evicted => &model.slot,
        _ => &model.mapped,
    };
    assert_eq!(at(there, |bytes| *bytes), CONTENTS);
}

/// Checks how often something was added to them.
fn added(count: u32) -> impl Fn(&Model) + Send + Sync {
    move |model| {
        assert_eq!(
            at(&model.mapped, |bytes| *bytes),
            CONTENTS.map(|sum| sum + count)
        )
    }
}

fn add(model: &Model) {
    at(&model.mapped, |bytes| *bytes = bytes.map(|sum| sum + 1));
}

#[test]
fn two_faults_on_one_page_read_it_once() {
    beside(EVICTED, [Model::fault, Model::fault], |model| {
        kept(model);
        assert_eq!(model.reads.load(Ordering::Relaxed), 1);
    });
}

#[test]
fn a_fault_beside_an_eviction_loses_no_byte() {
    beside(DIRTY, [Model::fault, Model::evict], kept);
}

#[test]
fn what_is_kept_stays_whoever_had_it_before() {
    for word in [DIRTY, EVICTED] {
        // Both wait in loops: there are too many interleavings to try them all.
        within(Some(4), word, [Model::keep, Model::evict], kept);
    }
}

#[test]
fn an_eviction_beside_a_discard_leaves_nothing() {
    beside(DIRTY, [Model::evict, Model::discard], |model| {
        assert_eq!(model.page().word(), Word::EMPTY);
    });
}

#[test]
fn fault_eviction_and_discard_together() {
    beside(DIRTY, [Model::fault, Model::evict, Model::discard], |_| ());
}

#[test]
fn two_faults_beside_an_eviction() {
    beside(DIRTY, [Model::fault, Model::evict, Model::fault], kept);
}

#[test]
fn who_waits_for_a_page_is_woken() {
    fn work(model: &Model) {
        let word = model.page().lock();
        add(model);
        model.page().unlock(word);
    }
    beside(DIRTY, [work, work], added(2));
    beside(DIRTY, [work, work, work], added(3));
}

#[test]
fn who_waits_for_a_lock_is_woken() {
    fn work(model: &Model) {
        let _held = model.evictions.hold();
        add(model);
    }
    beside(DIRTY, [work, work], added(2));
    beside(DIRTY, [work, work, work], added(3));
}

/// As `Pager::before_fork`: once the gate is closed and no page is busy, no thread works on a page
/// until it opens again.
#[test]
fn nobody_works_at_a_page_while_a_fork_is_under_way() {
    fn fork(model: &Model) {
        model.gate.close();
        let page = model.page();
        let mut word = page.word();
        while word.is_busy() {
            word = page.sleep(word);
        }
        // The bytes belong to the forking thread without the page's lock.
        let bytes = [&model.mapped, &model.slot].map(|place| at(place, |bytes| *bytes));
        assert_eq!(bytes.iter().flatten().count(), 1);
        model.gate.open();
    }
    // Both wait in loops: there are too many interleavings to try them all.
    within(Some(4), EVICTED, [Model::fault, fork], kept);
    beside(EVICTED, [Model::fault, fork, Model::fault], kept);
}

/// As `unmap::unmap`: what it has seen of mappings holds while it acts on it. Changes may be under
/// way together.
#[test]
fn nothing_changes_while_somebody_relies_on_that() {
    fn change(model: &Model) {
        let _change = model.changes.enter();
        model.reads.fetch_add(1, Ordering::Relaxed);
        model.reads.fetch_sub(1, Ordering::Relaxed);
    }
    fn rely(model: &Model) {
        let look = || {
            assert_eq!(
                model.reads.load(Ordering::Relaxed),
                0,
                "a change is under way"
            )
        };
        model.changes.between(|| {
            look();
            look();
        });
    }
    beside(DIRTY, [change, rely], kept);
    beside(DIRTY, [change, rely, change], kept);
}
