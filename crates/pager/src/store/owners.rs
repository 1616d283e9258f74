//! Which process owns which slots, so that those of a killed process can be freed.
//!
//! Only processes that forked, or were forked, are distinguished: with any other process, the store
//! is removed as a whole. Each has a place in the shared memory with a bit for each slot, and holds
//! a lock on the file at the place's number (through an open file description of its own, which the
//! kernel closes with the process, however it ends). A place whose lock is free no longer belongs
//! to a process. The parent takes the lock for its child before a fork, on a description that the child
//! inherits and the parent then closes: a child that is killed before it runs has lost its lock as well.
//!
//! ```text
//!   take, fork:  count first, then the bit       a kill in between leaves one slot taken,
//!   release:     bit first, then the count       and never gives one away that is in use
//! ```

use core::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering};

use crate::store::Slot;
use crate::sys::{self, locks};

/// Number of processes of a run distinguished at a time. Slots of others are freed at the end of
/// the run.
const PLACES: usize = 64;
const _: () = assert!(PLACES * size_of::<u32>() <= HEAD_BYTES);
/// Bytes before the bits.
const HEAD_BYTES: usize = 256;

const FREE: u32 = 0;
/// For a process that has not locked it yet.
const PREPARED: u32 = 1;
const LIVE: u32 = 2;
/// No place.
const NONE: u32 = u32::MAX;

/// The table.
#[derive(Debug)]
pub struct Owners {
    states: &'static [AtomicU32],
    bits: &'static [AtomicU64],
    words: usize,
    store: i32,
    /// The open file description of the store's file that has this process's lock; -1 before it is
    /// needed.
    file: AtomicI32,
    own: AtomicU32,
    child: AtomicU32,
    /// The open file description with the lock of the expected child; -1 for none.
    file_of_child: AtomicI32,
}

/// Bytes of shared memory for `slots` slots.
#[must_use]
pub const fn shared_bytes(slots: u64) -> u64 {
    HEAD_BYTES as u64 + slots.div_ceil(64) * 8 * PLACES as u64
}

impl Owners {
    /// The table for `slots` slots in `shared`; `store` is the store's file.
    ///
    /// # Safety
    /// `shared` must be aligned to 8 bytes, [`shared_bytes`] long, live as long as the process, and
    /// contain zeros or such a table.
    pub unsafe fn new(shared: *mut u8, slots: u32, store: i32) -> Self {
        let words = slots.div_ceil(64) as usize;
        // SAFETY: the caller guarantees address, size, alignment and lifetime; all are atomics.
        unsafe {
            let bits = shared.add(HEAD_BYTES).cast();
            Owners {
                states: core::slice::from_raw_parts(shared.cast(), PLACES),
                bits: core::slice::from_raw_parts(bits, words * PLACES),
                words,
                store,
                file: AtomicI32::new(-1),
                own: AtomicU32::new(NONE),
                child: AtomicU32::new(NONE),
                file_of_child: AtomicI32::new(-1),
            }
        }
    }

    /// The descriptors in use, -1 for none: this process's own, and one for its next child.
    pub fn descriptors(&self) -> [i32; 2] {
        [&self.file, &self.file_of_child].map(|file| file.load(Ordering::Relaxed))
    }

    fn descriptor(&self) -> i32 {
        self.descriptors()[0]
    }

    /// Whether this process has a place, so that others see when it is gone.
    pub fn has_place(&self) -> bool {
        self.own.load(Ordering::Relaxed) != NONE
    }

    fn bits_of(&self, place: u32) -> &[AtomicU64] {
        let start = place as usize * self.words;
        self.bits.get(start..start + self.words).unwrap_or(&[])
    }

    fn bit(&self, place: u32, slot: Slot) -> Option<(&AtomicU64, u64)> {
        let word = self.bits_of(place).get(slot as usize / 64)?;
        Some((word, 1 << (slot % 64)))
    }

    /// This process has taken `slot`.
    pub fn note(&self, slot: Slot) {
        self.set(self.own.load(Ordering::Relaxed), slot);
    }

    fn set(&self, place: u32, slot: Slot) {
        if place != NONE
            && let Some((word, bit)) = self.bit(place, slot)
        {
            word.fetch_or(bit, Ordering::AcqRel);
        }
    }

    /// This process is about to release `slot`.
    pub fn forget(&self, slot: Slot) {
        let own = self.own.load(Ordering::Relaxed);
        if own != NONE
            && let Some((word, bit)) = self.bit(own, slot)
        {
            word.fetch_and(!bit, Ordering::AcqRel);
        }
    }

    /// How many slots below `end` this process is noted to own; `None` if it has no place.
    pub fn noted(&self, end: u64) -> Option<u64> {
        let own = self.own.load(Ordering::Relaxed);
        let words = self.bits_of(own).iter().take(end.div_ceil(64) as usize);
        let ones = words.map(|word| u64::from(word.load(Ordering::Relaxed).count_ones()));
        (own != NONE).then(|| ones.sum())
    }

    /// A fork is coming. Reserves a place for this process, if it has none, and one for the child, which
    /// `inherits` descriptors that its parent may close then.
    pub fn expect_child(&self, inherits: bool) {
        if self.own.load(Ordering::Relaxed) == NONE && self.open() {
            let place = self.claim();
            match place != NONE && self.lock_soon(self.descriptor(), place) {
                true => self.own.store(place, Ordering::Relaxed),
                false => self.give_up(place),
            }
        }
        let place = self.claim();
        self.child.store(place, Ordering::Relaxed);
        if place == NONE || !inherits {
            return;
        }
        let file = locks::reopen(self.store);
        self.file_of_child.store(file, Ordering::Relaxed);
        if file >= 0 && !self.lock_soon(file, place) {
            self.let_go(&self.file_of_child);
        }
    }

    /// After a fork, in the parent: what the child has inherited is the child's alone.
    pub fn part(&self) {
        self.let_go(&self.file_of_child);
    }

    /// The expected child owns `slot` as well as this process.
    pub fn note_for_child(&self, slot: Slot) {
        self.note(slot);
        self.set(self.child.load(Ordering::Relaxed), slot);
    }

    /// The fork failed: clears what was recorded for the child.
    pub fn forget_child(&self) {
        let child = self.child.swap(NONE, Ordering::Relaxed);
        if child != NONE {
            self.clear(child, |_| {});
        }
        self.part();
    }

    /// This is the child.
    pub fn forked(&self) {
        let place = self.child.swap(NONE, Ordering::Relaxed);
        self.own.store(NONE, Ordering::Relaxed);
        // The parent's lock must not survive in this process.
        self.let_go(&self.file);
        let inherited = self.file_of_child.swap(-1, Ordering::Relaxed);
        self.file.store(inherited, Ordering::Relaxed);
        let is_own = inherited >= 0
            || (place != NONE && self.open() && self.lock_soon(self.descriptor(), place));
        if is_own {
            self.own.store(place, Ordering::Relaxed);
        }
    }

    /// Locks the prepared `place` by `file`. Whoever has just reclaimed it, or was about to, may still
    /// have its lock for a moment.
    fn lock_soon(&self, file: i32, place: u32) -> bool {
        const ATTEMPTS: u32 = 10_000;
        let locks = |_| {
            locks::attempt(file, place) || {
                sys::give_way();
                false
            }
        };
        let locked = (0..ATTEMPTS).any(locks);
        if locked {
            self.states[place as usize].store(LIVE, Ordering::Release);
        }
        locked
    }

    /// Gives back a place that was claimed, if there is one.
    fn give_up(&self, place: u32) {
        if let Some(state) = self.states.get(place as usize) {
            state.store(FREE, Ordering::Release);
        }
    }

    /// Closes this table's own descriptor in `place`, if there is one.
    fn let_go(&self, place: &AtomicI32) {
        let file = place.swap(-1, Ordering::Relaxed);
        if file >= 0 {
            // SAFETY: this table's own descriptor.
            unsafe { sys::call3(libc::SYS_close, file as usize, 0, 0) };
        }
    }

    /// Calls `release` for each slot of processes that have ended. Returns how many. One thread at
    /// a time.
    pub fn reclaim(&self, mut release: impl FnMut(Slot)) -> u64 {
        let own = self.own.load(Ordering::Relaxed);
        let mut count = 0;
        if own == NONE {
            return 0;
        }
        for (state, place) in self.states.iter().zip(0..) {
            let lives = || state.load(Ordering::Acquire) == LIVE;
            if place == own || !lives() || !self.lock(place) {
                continue;
            }
            // Another process may have reclaimed it meanwhile, and the next child may be coming.
            if lives() {
                self.clear(place, |slot| {
                    release(slot);
                    count += 1;
                });
            }
            self.unlock(place);
        }
        count
    }

    /// Frees a place, and calls `body` for each of its slots.
    fn clear(&self, place: u32, mut body: impl FnMut(Slot)) {
        for (word, first) in self.bits_of(place).iter().zip((0_u32..).step_by(64)) {
            if word.load(Ordering::Relaxed) == 0 {
                continue;
            }
            let mut bits = word.swap(0, Ordering::AcqRel);
            while bits != 0 {
                body(first + bits.trailing_zeros());
                bits &= bits - 1;
            }
        }
        self.states[place as usize].store(FREE, Ordering::Release);
    }

    /// Prepares a free place.
    fn claim(&self) -> u32 {
        let free = |place: &AtomicU32| {
            place
                .compare_exchange(FREE, PREPARED, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok()
        };
        self.states
            .iter()
            .position(free)
            .and_then(|place| u32::try_from(place).ok())
            .unwrap_or(NONE)
    }

    fn open(&self) -> bool {
        if self.descriptor() < 0 {
            self.file
                .store(locks::reopen(self.store), Ordering::Relaxed);
        }
        self.descriptor() >= 0
    }

    fn lock(&self, place: u32) -> bool {
        locks::attempt(self.descriptor(), place)
    }

    fn unlock(&self, place: u32) {
        locks::release(self.descriptor(), place);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;

    fn table(memory: &'static [AtomicU64], file: &std::fs::File) -> Owners {
        let place = memory.as_ptr().cast_mut().cast();
        // SAFETY: leaked memory of atomics, zero at first, and long enough for 512 slots.
        unsafe { Owners::new(place, 512, file.as_raw_fd()) }
    }

    /// What the kernel does at a fork, for a child that has `child` as its memory.
    fn fork(parent: &Owners, child: &Owners) {
        let place = parent.child.load(Ordering::Relaxed);
        child.child.store(place, Ordering::Relaxed);
        let inherited = parent.file_of_child.load(Ordering::Relaxed);
        // SAFETY: a new descriptor of the same description.
        let inherited = unsafe { libc::dup(inherited) };
        child.file_of_child.store(inherited, Ordering::Relaxed);
        parent.part();
    }

    /// Two open file descriptions of one file, as in two processes.
    #[test]
    fn slots_come_back_from_who_has_gone_and_from_nobody_else() {
        let words = usize::try_from(shared_bytes(512) / 8).expect("small");
        let memory: Vec<AtomicU64> = (0..words).map(|_| AtomicU64::new(0)).collect();
        let memory: &'static [AtomicU64] = Box::leak(memory.into_boxed_slice());
        let file = tempfile::tempfile().expect("a file");
        let parent = table(memory, &file);
        parent.note(7); // before the first fork nothing is recorded
        parent.expect_child(true);
        for slot in [7, 64, 500] {
            parent.note_for_child(slot);
        }
        let child = table(memory, &file);
        fork(&parent, &child);
        assert_eq!(parent.reclaim(|_| {}), 0, "it has not run yet");
        child.forked();
        child.forget(64);
        child.note(65);
        assert_eq!(parent.reclaim(|_| {}), 0, "it lives");
        child.let_go(&child.file);
        let mut found = Vec::new();
        assert_eq!(parent.reclaim(|slot| found.push(slot)), 3);
        assert_eq!(found, [7, 65, 500]);
        assert_eq!(parent.reclaim(|_| {}), 0, "once");
        parent.expect_child(true);
        parent.note_for_child(9);
        parent.forget_child();
        assert_eq!(parent.child.load(Ordering::Relaxed), NONE);
        assert_eq!(parent.descriptors()[1], -1);
    }

    #[test]
    fn slots_of_a_child_killed_before_it_runs_come_back() {
        let words = usize::try_from(shared_bytes(512) / 8).expect("small");
        let memory: Vec<AtomicU64> = (0..words).map(|_| AtomicU64::new(0)).collect();
        let memory: &'static [AtomicU64] = Box::leak(memory.into_boxed_slice());
        let file = tempfile::tempfile().expect("a file");
        let parent = table(memory, &file);
        for _ in 0..2 * PLACES {
            parent.expect_child(true);
            parent.note_for_child(7);
            let child = table(memory, &file);
            fork(&parent, &child);
            assert_eq!(parent.reclaim(|_| {}), 0, "it lives");
            child.let_go(&child.file_of_child);
            assert_eq!(parent.reclaim(|_| {}), 1);
        }
        // A child with its parent's table of descriptors opens its own.
        parent.expect_child(false);
        let child = table(memory, &file);
        let place = parent.child.load(Ordering::Relaxed);
        child.child.store(place, Ordering::Relaxed);
        child.forked();
        assert_eq!(child.own.load(Ordering::Relaxed), place);
    }

    /// Several processes look for those that have ended while another one forks: the place of one
    /// that has gone soon belongs to the next child.
    #[test]
    fn nobody_takes_a_place_that_has_been_given_to_a_new_child() {
        let words = usize::try_from(shared_bytes(512) / 8).expect("small");
        let memory: Vec<AtomicU64> = (0..words).map(|_| AtomicU64::new(0)).collect();
        let memory: &'static [AtomicU64] = Box::leak(memory.into_boxed_slice());
        let file = tempfile::tempfile().expect("a file");
        let (living, done) = (AtomicU32::new(0), AtomicU32::new(0));
        let (lost, mut without_place) = (AtomicU32::new(0), 0);
        let release = |slot| {
            let lives = living.load(Ordering::SeqCst) == slot;
            lost.fetch_add(lives.into(), Ordering::Relaxed);
        };
        std::thread::scope(|threads| {
            for _ in 0..3 {
                threads.spawn(|| {
                    let other = table(memory, &file);
                    other.expect_child(true);
                    other.forget_child();
                    while done.load(Ordering::Acquire) == 0 {
                        other.reclaim(release);
                    }
                });
            }
            let parent = table(memory, &file);
            let children = if cfg!(miri) { 20 } else { 40_000 };
            for slot in (1..500).cycle().take(children) {
                parent.reclaim(release);
                // Every other child shares its parent's table of descriptors.
                parent.expect_child(slot % 2 == 0);
                living.store(slot, Ordering::SeqCst);
                parent.set(parent.child.load(Ordering::Relaxed), slot);
                let child = table(memory, &file);
                fork(&parent, &child);
                child.forked();
                without_place += u32::from(child.own.load(Ordering::Relaxed) == NONE);
                living.store(0, Ordering::SeqCst);
                child.let_go(&child.file);
            }
            done.store(1, Ordering::Release);
        });
        assert_eq!(lost.into_inner(), 0, "slots that live children lost");
        assert_eq!(without_place, 0, "children without a place");
    }
}
