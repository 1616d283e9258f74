//! Places of code addresses in a list of them, each once.

use crate::event::CpuMode;
use crate::known::fold;
use crate::stack::FrameKey;
use rustc_hash::FxHashMap;
use std::hash::{BuildHasher, RandomState};

/// Whose addresses some are: of a process in a mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Whose(u32);

/// Addresses, each once.
///
/// Broken chains of frame pointers make up a million different ones, so that each look-up waits
/// for memory. [`Self::find`] adds nothing: called for all addresses of a chain before any is
/// added, the processor waits for all of them at a time. The keys are random, so that no file can
/// be made whose addresses all collide.
#[derive(Clone, Debug)]
pub(crate) struct CodePlaces {
    addresses: Vec<FrameKey>,
    processes: FxHashMap<(i32, CpuMode), u32>,
    keys: [u64; 3],
    /// Open addressing, at most half full.
    slots: Vec<Slot>,
}

/// Sixteen bytes, so that four share a cache line. A free one has no place.
#[derive(Clone, Copy, Debug)]
struct Slot {
    address: u64,
    whose: Whose,
    place: u32,
}

const FREE: Slot = Slot {
    address: 0,
    whose: Whose(0),
    place: u32::MAX,
};

impl Default for CodePlaces {
    fn default() -> Self {
        let random = RandomState::new();
        Self {
            addresses: Vec::new(),
            processes: FxHashMap::default(),
            keys: [0, 1, 2].map(|at| random.hash_one(at)),
            slots: vec![FREE; 256],
        }
    }
}

impl CodePlaces {
    /// All addresses in the order of their places.
    pub fn addresses(&self) -> &[FrameKey] {
        &self.addresses
    }

    /// Whose addresses those of this process and mode are; the kernel's are everyone's.
    pub fn whose(&mut self, pid: i32, mode: CpuMode) -> Whose {
        let pid = if mode == CpuMode::Kernel { -1 } else { pid };
        let next = u32::try_from(self.processes.len()).unwrap_or(u32::MAX);
        Whose(*self.processes.entry((pid, mode)).or_insert(next))
    }

    /// The place of an address that was met.
    #[inline]
    pub fn find(&self, whose: Whose, address: u64) -> Option<u32> {
        let place = self.slots[self.slot_of(whose, address)].place;
        (place != FREE.place).then_some(place)
    }

    /// The place of an address, by whose it is and the key that has its process and mode.
    pub fn find_or_add(&mut self, whose: Whose, key: FrameKey) -> u32 {
        if let Some(place) = self.find(whose, key.address) {
            return place;
        }
        if self.addresses.len() * 2 >= self.slots.len() {
            self.grow();
        }
        let place = u32::try_from(self.addresses.len()).unwrap_or(u32::MAX);
        let at = self.slot_of(whose, key.address);
        self.slots[at] = Slot {
            address: key.address,
            whose,
            place,
        };
        self.addresses.push(key);
        place
    }

    #[inline]
    fn slot_of(&self, whose: Whose, address: u64) -> usize {
        let [a, b, c] = self.keys;
        let mask = self.slots.len() - 1;
        #[allow(
            clippy::cast_possible_truncation,
            reason = "the low bits of a hash are taken"
        )]
        let mut at =
            fold(address ^ a, (u64::from(whose.0) ^ b).wrapping_mul(c | 1)) as usize & mask;
        loop {
            let slot = &self.slots[at];
            let is_it = slot.address == address && slot.whose == whose;
            if is_it || slot.place == FREE.place {
                return at;
            }
            at = (at + 1) & mask;
        }
    }

    #[cold]
    fn grow(&mut self) {
        let slots = vec![FREE; self.slots.len() * 2];
        let old = std::mem::replace(&mut self.slots, slots);
        for slot in old.into_iter().filter(|slot| slot.place != FREE.place) {
            let at = self.slot_of(slot.whose, slot.address);
            self.slots[at] = slot;
        }
    }
}
