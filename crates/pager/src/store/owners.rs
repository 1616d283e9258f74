//! Which process owns which slots, so that those of a killed process can be freed.
//!
//! Only processes that forked, or were forked, are distinguished: with any other process, the store
//! is removed as a whole. Each has a place in the shared memory with a bit for each slot, and holds
//! a lock on the file at the place's number (through an open file description of its own, which the
//! kernel closes with the process, however it ends). A place whose lock is free no longer belongs
//! to a process.
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
/// Prepared for a process that has not locked it yet.
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
            }
        }
    }

    /// The descriptor in use, -1 for none.
    pub fn descriptor(&self) -> i32 {
        self.file.load(Ordering::Relaxed)
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

    /// A fork is coming. Reserves a place for this process, if it has none, and one for the child.
    pub fn expect_child(&self) {
        if self.own.load(Ordering::Relaxed) == NONE && self.open() {
            let place = self.claim();
            if place != NONE && !self.move_in(place) {
                self.states[place as usize].store(FREE, Ordering::Release);
            }
        }
        self.child.store(self.claim(), Ordering::Relaxed);
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
    }

    /// This is the child.
    pub fn forked(&self) {
        let place = self.child.swap(NONE, Ordering::Relaxed);
        self.own.store(NONE, Ordering::Relaxed);
        // The parent's lock must not survive in this process.
        let former = self.file.swap(-1, Ordering::Relaxed);
        if former >= 0 {
            // SAFETY: this table's own descriptor.
            unsafe { sys::call3(libc::SYS_close, former as usize, 0, 0) };
        }
        if place != NONE && self.open() {
            self.move_in(place);
        }
    }

    /// Makes the prepared `place` this process's own. Whoever has just reclaimed it, or was about to,
    /// may still have its lock for a moment.
    fn move_in(&self, place: u32) -> bool {
        const ATTEMPTS: u32 = 10_000;
        let locks = |_| {
            self.lock(place) || {
                sys::give_way();
                false
            }
        };
        let locked = (0..ATTEMPTS).any(locks);
        if locked {
            self.states[place as usize].store(LIVE, Ordering::Release);
            self.own.store(place, Ordering::Relaxed);
        }
        locked
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

    /// Two open file descriptions of one file, as in two processes.
    #[test]
    fn slots_come_back_from_who_has_gone_and_from_nobody_else() {
        let words = usize::try_from(shared_bytes(512) / 8).expect("small");
        let memory: Vec<AtomicU64> = (0..words).map(|_| AtomicU64::new(0)).collect();
        let memory: &'static [AtomicU64] = Box::leak(memory.into_boxed_slice());
        let file = tempfile::tempfile().expect("a file");
        let parent = table(memory, &file);
        parent.note(7); // before the first fork nothing is recorded
        parent.expect_child();
        for slot in [7, 64, 500] {
            parent.note_for_child(slot);
        }
        let child = table(memory, &file);
        child.child.store(
            parent.child.swap(NONE, Ordering::Relaxed),
            Ordering::Relaxed,
        );
        assert_eq!(
            parent.reclaim(|_| {}),
            0,
            "it has not come to lock its place yet"
        );
        child.forked();
        child.forget(64);
        child.note(65);
        assert_eq!(parent.reclaim(|_| {}), 0, "it lives");
        // SAFETY: as the kernel does at the end of a process.
        unsafe { libc::close(child.descriptor()) };
        let mut found = Vec::new();
        assert_eq!(parent.reclaim(|slot| found.push(slot)), 3);
        assert_eq!(found, [7, 65, 500]);
        assert_eq!(parent.reclaim(|_| {}), 0, "once");
        parent.expect_child();
        parent.note_for_child(9);
        parent.forget_child();
        assert_eq!(parent.child.load(Ordering::Relaxed), NONE);
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
                    other.expect_child();
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
                parent.expect_child();
                let place = parent.child.swap(NONE, Ordering::Relaxed);
                living.store(slot, Ordering::SeqCst);
                parent.set(place, slot);
                let child = table(memory, &file);
                child.child.store(place, Ordering::Relaxed);
                child.forked();
                without_place += u32::from(child.own.load(Ordering::Relaxed) == NONE);
                living.store(0, Ordering::SeqCst);
                // SAFETY: as the kernel does at the end of a process.
                unsafe { libc::close(child.descriptor()) };
            }
            done.store(1, Ordering::Release);
        });
        assert_eq!(lost.into_inner(), 0, "slots that live children lost");
        assert_eq!(without_place, 0, "children without a place");
    }
}
