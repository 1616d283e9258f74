//! Which slots of the file are taken, with their reference counts and checksums.
//!
//! One table in memory that all processes of a run share, changed only by atomic operations: a
//! process may be killed at any of them and leaks at most the slot that it was about to take.
//!
//! ```text
//!  shared memory:  head (a page) │ reference counts, 8 in a word │ checksums, 4 bytes each
//! ```

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::page::PAGE_BYTES;
use crate::store::{Slot, StoreError};

/// Slots in one word of counts.
const GROUP: u32 = 8;
/// A word in which each slot has one reference.
const ALL_ONE: u64 = 0x0101_0101_0101_0101;
/// Number of groups that a search examines: a longer one costs more than scattered slots.
const LONGEST_SEARCH: u32 = 2048;
/// Largest number of references to a slot. A fork at most doubles them; the program's own limit on
/// processes is reached long before, but not on every machine.
const MAX_REFERENCES: u64 = 255;

/// Head of the shared memory.
#[derive(Debug)]
#[repr(C)]
struct Head {
    /// Group at which the next search starts.
    cursor: AtomicU32,
    /// Groups that have ever been in use: the file's extent.
    extent: AtomicU32,
    /// Slots taken.
    taken: AtomicU64,
}

/// The table.
#[derive(Debug)]
pub struct Slots {
    head: &'static Head,
    counts: &'static [AtomicU64],
    sums: &'static [AtomicU32],
}

impl Slots {
    /// The table of at most `slots` slots in `shared`. Slot 0 is never assigned.
    ///
    /// # Safety
    /// `shared` must be page-aligned, [`crate::store::shared_bytes`] of `slots` long, live as long
    /// as the process, and contain zeros or such a table of the same size.
    pub unsafe fn new(shared: *mut u8, slots: u32) -> Self {
        let groups = (slots / GROUP) as usize;
        // SAFETY: the caller guarantees address, size, alignment and lifetime; all fields are
        // atomics for which any bits are valid.
        unsafe {
            let counts = shared.add(PAGE_BYTES);
            let sums = counts.add(groups * 8);
            let table = Slots {
                head: &*shared.cast(),
                counts: core::slice::from_raw_parts(counts.cast(), groups),
                sums: core::slice::from_raw_parts(sums.cast(), groups * GROUP as usize),
            };
            if let Some(first) = table.counts.first() {
                // Slot 0, permanently.
                let _ = first.compare_exchange(0, 1, Ordering::AcqRel, Ordering::Relaxed);
            }
            table
        }
    }

    /// Slots taken, without slot 0.
    pub fn taken(&self) -> u64 {
        self.head.taken.load(Ordering::Relaxed)
    }

    /// Slots that can be taken.
    pub fn capacity(&self) -> u64 {
        (self.sums.len() as u64).saturating_sub(1)
    }

    /// Slots up to the highest that was ever taken.
    pub fn extent(&self) -> u64 {
        u64::from(self.head.extent.load(Ordering::Relaxed)) * u64::from(GROUP)
    }

    /// Takes a slot for each entry of `slots`, in groups of neighbours as long as there are free
    /// groups, in rising order within each stretch.
    pub fn take(&self, slots: &mut [Slot]) -> Result<(), StoreError> {
        let mut done = 0;
        if slots.len() >= GROUP as usize / 2 {
            done = self.take_groups(slots);
        }
        done = self.take_singles(slots, done);
        if done == slots.len() {
            return Ok(());
        }
        slots[..done].iter().for_each(|slot| self.release(*slot));
        slots.fill(0);
        Err(StoreError::Full)
    }

    fn groups(&self) -> u32 {
        u32::try_from(self.counts.len()).unwrap_or(u32::MAX)
    }

    /// Where a search starts, and how many groups it may examine. The file grows only when less
    /// than a third of its extent is free, so that it stays close to the size of its contents.
    fn search(&self) -> (u32, u32) {
        let extent = self.head.extent.load(Ordering::Relaxed);
        let roomy = self.taken() * 3 < u64::from(extent) * u64::from(GROUP) * 2;
        let cursor = self.head.cursor.load(Ordering::Relaxed);
        let end = if roomy { extent } else { self.groups() };
        (if cursor >= end { 0 } else { cursor }, end)
    }

    /// Start of the longest stretch of free groups from `cursor` on, of at most `wanted`: pages
    /// written in one piece can be read in one.
    fn stretch(&self, cursor: u32, end: u32, wanted: u32) -> u32 {
        let (mut best, mut longest, mut length) = (cursor, 0, 0);
        for group in cursor..end.min(cursor.saturating_add(LONGEST_SEARCH)) {
            let free = self.counts[group as usize].load(Ordering::Relaxed) == 0;
            length = if free { length + 1 } else { 0 };
            if length > longest {
                (best, longest) = (group + 1 - length, length);
            }
            if longest >= wanted {
                break;
            }
        }
        best
    }

    fn take_groups(&self, slots: &mut [Slot]) -> usize {
        let (cursor, end) = self.search();
        let wanted = u32::try_from(slots.len()).unwrap_or(0).div_ceil(GROUP);
        let mut group = self.stretch(cursor, end, wanted);
        let mut done = 0;
        for _ in 0..end.min(LONGEST_SEARCH) {
            let wanted = (slots.len() - done).min(GROUP as usize);
            if wanted == 0 {
                break;
            }
            let ones = ALL_ONE >> (8 * (GROUP as usize - wanted));
            let count = &self.counts[group as usize];
            let free = count.load(Ordering::Relaxed) == 0;
            if free
                && count
                    .compare_exchange(0, ones, Ordering::AcqRel, Ordering::Relaxed)
                    .is_ok()
            {
                for (place, slot) in slots[done..done + wanted].iter_mut().zip(group * GROUP..) {
                    *place = slot;
                }
                done += wanted;
                self.note(group, wanted);
            }
            group = if group + 1 >= self.groups() {
                0
            } else {
                group + 1
            };
        }
        self.head.cursor.store(group, Ordering::Relaxed);
        done
    }

    fn take_singles(&self, slots: &mut [Slot], mut done: usize) -> usize {
        let (mut group, _) = self.search();
        for _ in 0..=self.groups() {
            while done < slots.len() {
                let Some(slot) = self.take_in(group) else {
                    break;
                };
                slots[done] = slot;
                done += 1;
            }
            if done == slots.len() {
                self.head.cursor.store(group, Ordering::Relaxed);
                break;
            }
            group = if group + 1 >= self.groups() {
                0
            } else {
                group + 1
            };
        }
        done
    }

    fn take_in(&self, group: u32) -> Option<Slot> {
        let count = self.counts.get(group as usize)?;
        let mut old = count.load(Ordering::Relaxed);
        loop {
            let lane = (0..GROUP).find(|lane| old >> (lane * 8) & 0xff == 0)?;
            let new = old | 1 << (lane * 8);
            match count.compare_exchange_weak(old, new, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => {
                    self.note(group, 1);
                    return Some(group * GROUP + lane);
                }
                Err(now) => old = now,
            }
        }
    }

    fn note(&self, group: u32, taken: usize) {
        self.head.taken.fetch_add(taken as u64, Ordering::Relaxed);
        self.head.extent.fetch_max(group + 1, Ordering::Relaxed);
    }

    /// Adds a reference to a slot that has one.
    pub fn retain(&self, slot: Slot) -> Result<(), StoreError> {
        let (count, shift) = self.lane(slot).ok_or(StoreError::Unowned)?;
        let more = count.fetch_update(Ordering::AcqRel, Ordering::Relaxed, |old| {
            let references = old >> shift & 0xff;
            (references > 0 && references < MAX_REFERENCES).then_some(old + (1 << shift))
        });
        more.map(|_| ()).map_err(|old| match old >> shift & 0xff {
            0 => StoreError::Unowned,
            _ => StoreError::Full,
        })
    }

    /// Removes a reference. A slot without references stays as it is.
    pub fn release(&self, slot: Slot) {
        let Some((count, shift)) = self.lane(slot) else {
            return;
        };
        let less = count.fetch_update(Ordering::AcqRel, Ordering::Relaxed, |old| {
            (old >> shift & 0xff > 0).then(|| old - (1 << shift))
        });
        if less.is_ok_and(|old| old >> shift & 0xff == 1) {
            self.head.taken.fetch_sub(1, Ordering::Relaxed);
        }
    }

    fn lane(&self, slot: Slot) -> Option<(&AtomicU64, u32)> {
        let count = self
            .counts
            .get((slot / GROUP) as usize)
            .filter(|_| slot != 0)?;
        Some((count, slot % GROUP * 8))
    }

    /// Stores the checksum of the contents of `slot`.
    pub fn set_sum(&self, slot: Slot, sum: u32) {
        if let Some(place) = self.sums.get(slot as usize) {
            place.store(sum, Ordering::Release);
        }
    }

    /// Checksum of the contents of `slot`.
    pub fn sum(&self, slot: Slot) -> Option<u32> {
        self.sums
            .get(slot as usize)
            .map(|sum| sum.load(Ordering::Acquire))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::store::shared_bytes;

    fn table(slots: u32) -> Slots {
        let words = shared_bytes(u64::from(slots)).div_ceil(8);
        let memory: Vec<u64> = vec![0; usize::try_from(words).expect("small") + 512];
        let memory = Box::leak(memory.into_boxed_slice())
            .as_mut_ptr()
            .cast::<u8>();
        let aligned = memory.wrapping_add(memory.align_offset(PAGE_BYTES));
        // SAFETY: aligned, large enough, zero, and leaked.
        unsafe { Slots::new(aligned, slots) }
    }

    #[derive(Debug, Clone)]
    enum Step {
        Take(usize),
        Retain(usize),
        Release(usize),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        prop::collection::vec(
            prop_oneof![
                (1usize..20).prop_map(Step::Take),
                any::<usize>().prop_map(Step::Retain),
                any::<usize>().prop_map(Step::Release),
                any::<usize>().prop_map(Step::Release),
            ],
            0..if cfg!(miri) { 20 } else { 200 },
        )
    }

    proptest! {
        #[test]
        fn no_slot_is_given_twice_or_lost(steps in steps()) {
            let table = table(64);
            let mut held: BTreeMap<Slot, u32> = BTreeMap::new();
            for step in steps {
                match step {
                    Step::Take(count) => {
                        let mut slots = vec![0; count];
                        let taken = table.take(&mut slots);
                        prop_assert_eq!(taken.is_ok(), held.len() + count <= 63);
                        if taken.is_ok() {
                            for slot in slots {
                                prop_assert!((1..64).contains(&slot));
                                prop_assert!(held.insert(slot, 1).is_none(), "slot {} twice", slot);
                            }
                        }
                    }
                    Step::Retain(which) if !held.is_empty() => {
                        let slot = *held.keys().nth(which % held.len()).expect("in range");
                        prop_assert!(table.retain(slot).is_ok());
                        *held.get_mut(&slot).expect("held") += 1;
                    }
                    Step::Release(which) if !held.is_empty() => {
                        let slot = *held.keys().nth(which % held.len()).expect("in range");
                        table.release(slot);
                        let count = held.get_mut(&slot).expect("held");
                        *count -= 1;
                        if *count == 0 {
                            held.remove(&slot);
                        }
                    }
                    _ => {}
                }
                prop_assert_eq!(table.taken(), held.len() as u64);
            }
        }
    }

    #[test]
    fn a_batch_gets_neighbours() {
        let table = table(4096);
        let mut slots = [0; 64];
        table.take(&mut slots).expect("room");
        let breaks = slots
            .windows(2)
            .filter(|pair| pair[1] != pair[0] + 1)
            .count();
        assert_eq!(breaks, 0, "{slots:?}");
    }

    #[test]
    fn a_batch_goes_to_a_stretch_that_holds_it_whole() {
        let table = table(1 << 12);
        let mut all = vec![0; (1 << 12) - 8];
        table.take(&mut all).expect("room");
        let (pieces, stretch) = (all.chunks(8).step_by(2).take(40), &all[2000..2128]);
        pieces
            .flatten()
            .chain(stretch)
            .for_each(|slot| table.release(*slot));
        let mut slots = [0; 128];
        table.take(&mut slots).expect("room");
        assert_eq!(slots, stretch);
    }

    #[test]
    fn the_file_stays_near_what_it_holds() {
        let table = table(1 << 16);
        let mut rounds = Vec::new();
        for round in 0..1000 {
            let mut slots = [0; 64];
            table.take(&mut slots).expect("room");
            rounds.push(slots);
            if round >= 32 {
                rounds
                    .remove(0)
                    .into_iter()
                    .for_each(|slot| table.release(slot));
            }
        }
        assert!(
            table.extent() <= 33 * 64 * 3 / 2 + 128,
            "{} for {}",
            table.extent(),
            table.taken()
        );
    }

    #[test]
    fn references_end_where_a_byte_ends() {
        let table = table(64);
        let mut slot = [0];
        table.take(&mut slot).expect("room");
        assert!((1..255).all(|_| table.retain(slot[0]).is_ok()));
        assert_eq!(table.retain(slot[0]), Err(StoreError::Full));
        (0..255).for_each(|_| table.release(slot[0]));
        assert_eq!(table.taken(), 0);
        table.release(slot[0]);
        assert_eq!(table.taken(), 0);
    }

    #[test]
    fn a_free_slot_is_not_called_shared_by_too_many() {
        let table = table(64);
        let mut slot = [0];
        table.take(&mut slot).expect("room");
        table.release(slot[0]);
        for free in [slot[0], 0, 64] {
            assert_eq!(table.retain(free), Err(StoreError::Unowned));
        }
    }
}
