//! Numbers by pairs of numbers: a stack by its caller and its function.

use crate::known::fold;
use std::hash::{BuildHasher, RandomState};

/// A table with open addressing that is at most half full: with a million stacks each look-up is a
/// memory access, and here it is only one. The keys are random, so that no file can be constructed
/// whose stacks all collide.
#[derive(Clone, Debug)]
pub(crate) struct Pairs {
    keys: [u64; 2],
    slots: Vec<Slot>,
    len: usize,
}

/// A free slot has the number 0.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    pair: (u32, u32),
    number: u32,
}

impl Default for Pairs {
    fn default() -> Self {
        let random = RandomState::new();
        Self {
            keys: [random.hash_one(0), random.hash_one(1)],
            slots: vec![Slot::default(); 64],
            len: 0,
        }
    }
}

impl Pairs {
    /// The number of a pair.
    #[inline]
    pub fn find(&self, pair: (u32, u32)) -> Option<u32> {
        let found = self.slots[self.slot_of(pair)].number;
        (found != 0).then_some(found)
    }

    /// The number of a pair, which becomes `next` where it has none. 0 is not a valid number.
    #[inline]
    pub fn find_or_add(&mut self, pair: (u32, u32), next: u32) -> u32 {
        match self.slots[self.slot_of(pair)].number {
            0 => {
                self.add(Slot { pair, number: next });
                next
            }
            known => known,
        }
    }

    /// Where the pair is, or would be.
    #[inline]
    fn slot_of(&self, pair: (u32, u32)) -> usize {
        let mask = self.slots.len() - 1;
        let key = u64::from(pair.0) << 32 | u64::from(pair.1);
        #[allow(
            clippy::cast_possible_truncation,
            reason = "the low bits of a hash are taken"
        )]
        let mut at = fold(key ^ self.keys[0], self.keys[1]) as usize & mask;
        loop {
            let slot = &self.slots[at];
            if slot.number == 0 || slot.pair == pair {
                return at;
            }
            at = (at + 1) & mask;
        }
    }

    fn add(&mut self, slot: Slot) {
        if self.len * 2 >= self.slots.len() {
            self.grow();
        }
        let at = self.slot_of(slot.pair);
        self.slots[at] = slot;
        self.len += 1;
    }

    #[cold]
    fn grow(&mut self) {
        let slots = vec![Slot::default(); self.slots.len() * 2];
        let old = std::mem::replace(&mut self.slots, slots);
        for slot in old.into_iter().filter(|slot| slot.number != 0) {
            let at = self.slot_of(slot.pair);
            self.slots[at] = slot;
        }
    }
}
