//! The sampled blocks that are live, by address.
//!
//! Almost all blocks that are freed were not sampled. A byte for each page, which counts the sampled
//! blocks on it, tells so by one load: neighbours share it, so the bytes of a heap in use stay in the
//! cache. Only for a page with a sampled block the table itself is searched, without a lock; who changes
//! it holds the lock, and searches see that by its version.

use crate::sys;
use core::hint::spin_loop;
use core::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering, fence};

/// Bytes of the filter: 4 GiB of addresses until two pages share one.
const FILTER: usize = 1 << 20;
/// A byte that no longer counts: as many blocks, or more.
const FULL: u8 = u8::MAX;
/// Places of the table: at 512 KiB between samples, for a heap of 112 GiB.
const PLACES: usize = 1 << 18;
/// Blocks at most, so that searches stay short.
const MOST: u32 = (PLACES / 8 * 7) as u32;
/// Bits of a site's number.
const SITE_BITS: u32 = crate::layout::SITES.trailing_zeros();
/// Turns that a thread waits for the lock before it lets others run.
const TURNS: u32 = 200;

/// A sampled block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// Its size.
    pub size: u64,
    /// Number of its site.
    pub site: u32,
}

impl Block {
    fn packed(self) -> u64 {
        self.size.min(u64::MAX >> SITE_BITS) << SITE_BITS | u64::from(self.site)
    }

    fn unpacked(word: u64) -> Self {
        Self {
            size: word >> SITE_BITS,
            site: word as u32 & ((1 << SITE_BITS) - 1),
        }
    }
}

struct Place {
    /// 0 if it is free.
    address: AtomicU64,
    block: AtomicU64,
}

/// The table with its filter. All zeros is an empty one.
pub struct Live {
    filter: [AtomicU8; FILTER],
    places: [Place; PLACES],
    /// Odd while it is locked.
    version: AtomicU32,
    count: AtomicU32,
}

/// The right to change the table, until it is dropped.
pub struct Locked<'a>(&'a Live);

impl Live {
    /// An empty one.
    #[must_use]
    #[allow(clippy::new_without_default, reason = "megabytes: static memory alone")]
    pub const fn new() -> Self {
        Self {
            filter: [const { AtomicU8::new(0) }; FILTER],
            places: [const {
                Place {
                    address: AtomicU64::new(0),
                    block: AtomicU64::new(0),
                }
            }; PLACES],
            version: AtomicU32::new(0),
            count: AtomicU32::new(0),
        }
    }

    /// Whether there may be a sampled block at the address.
    #[inline(always)]
    pub fn may_hold(&self, address: u64) -> bool {
        self.filter_of(address).load(Ordering::Relaxed) != 0
    }

    #[inline(always)]
    fn filter_of(&self, address: u64) -> &AtomicU8 {
        &self.filter[(address >> 12) as usize % FILTER]
    }

    /// Whether there is a sampled block at the address, which no other thread frees meanwhile.
    pub fn holds(&self, address: u64) -> bool {
        loop {
            let before = self.version.load(Ordering::Acquire);
            if before.is_multiple_of(2) {
                let is_there = self.place_of(address).is_some();
                fence(Ordering::Acquire);
                if self.version.load(Ordering::Relaxed) == before {
                    return is_there;
                }
            }
            spin_loop();
        }
    }

    /// Waits until no other thread changes the table.
    pub fn lock(&self) -> Locked<'_> {
        let mut turns = 0_u32;
        loop {
            let version = self.version.load(Ordering::Relaxed);
            let is_free = version.is_multiple_of(2);
            if is_free
                && self
                    .version
                    .compare_exchange_weak(
                        version,
                        version.wrapping_add(1),
                        Ordering::Acquire,
                        Ordering::Relaxed,
                    )
                    .is_ok()
            {
                // Changes are not seen before the version is.
                fence(Ordering::Release);
                return Locked(self);
            }
            turns += 1;
            match turns % TURNS {
                0 => sys::give_way(),
                _ => spin_loop(),
            }
        }
    }

    /// The place of an address, or `None`.
    fn place_of(&self, address: u64) -> Option<usize> {
        let mut at = first_place(address);
        for _ in 0..PLACES {
            match self.places[at].address.load(Ordering::Relaxed) {
                0 => return None,
                found if found == address => return Some(at),
                _ => at = (at + 1) % PLACES,
            }
        }
        None
    }
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        let version = self.0.version.load(Ordering::Relaxed);
        self.0
            .version
            .store(version.wrapping_add(1), Ordering::Release);
    }
}

impl Locked<'_> {
    /// Adds a block. `false` if there is no room.
    pub fn insert(&self, address: u64, block: Block) -> bool {
        let live = self.0;
        if live.count.load(Ordering::Relaxed) >= MOST {
            return false;
        }
        let mut at = first_place(address);
        while live.places[at].address.load(Ordering::Relaxed) != 0 {
            at = (at + 1) % PLACES;
        }
        let place = &live.places[at];
        place.block.store(block.packed(), Ordering::Relaxed);
        place.address.store(address, Ordering::Relaxed);
        let filter = live.filter_of(address);
        let blocks = filter.load(Ordering::Relaxed);
        filter.store(blocks.saturating_add(1), Ordering::Relaxed);
        live.count.fetch_add(1, Ordering::Relaxed);
        true
    }

    /// Takes out a block.
    pub fn remove(&self, address: u64) -> Option<Block> {
        let live = self.0;
        let at = live.place_of(address)?;
        let block = Block::unpacked(live.places[at].block.load(Ordering::Relaxed));
        let filter = live.filter_of(address);
        match filter.load(Ordering::Relaxed) {
            FULL => {}
            blocks => filter.store(blocks.saturating_sub(1), Ordering::Relaxed),
        }
        live.count.fetch_sub(1, Ordering::Relaxed);
        self.close(at);
        Some(block)
    }

    /// Frees a place: those behind it that were displaced move up, so that no search ends too early.
    fn close(&self, mut gap: usize) {
        let places = &self.0.places;
        let mut at = gap;
        loop {
            at = (at + 1) % PLACES;
            let address = places[at].address.load(Ordering::Relaxed);
            if address == 0 {
                break;
            }
            // How far it is from its first place, and from the gap.
            let moved = at.wrapping_sub(first_place(address)) % PLACES;
            let to_gap = at.wrapping_sub(gap) % PLACES;
            if moved >= to_gap {
                let block = places[at].block.load(Ordering::Relaxed);
                places[gap].block.store(block, Ordering::Relaxed);
                places[gap].address.store(address, Ordering::Relaxed);
                gap = at;
            }
        }
        places[gap].address.store(0, Ordering::Relaxed);
    }
}

/// Where a search for an address starts.
fn first_place(address: u64) -> usize {
    let mixed = (address >> 4).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> (u64::BITS - PLACES.trailing_zeros())) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draw;
    use std::collections::BTreeMap;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn the_table_agrees_with_a_map() {
        static LIVE: Live = Live::new();
        let (mut state, mut map) = (1, BTreeMap::new());
        let live = LIVE.lock();
        for step in 0..400_000_u64 {
            // Few addresses, close together, so that they displace each other and come back.
            let address = 0x7f00_0000_0000 + draw::next(&mut state) % 4000 * 16;
            let known: Option<Block> = map.remove(&address);
            assert_eq!(live.remove(address), known);
            if known.is_none() {
                let block = Block {
                    size: step << 20,
                    site: (step % 16384) as u32,
                };
                assert!(live.insert(address, block));
                map.insert(address, block);
                assert!(LIVE.may_hold(address));
            }
        }
        for (address, block) in map {
            assert_eq!(live.remove(address), Some(block));
        }
        assert_eq!(LIVE.count.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_full_table_refuses_and_loses_nothing() {
        static LIVE: Live = Live::new();
        let live = LIVE.lock();
        let block = Block { size: 1, site: 2 };
        let addresses = || (1..=u64::from(MOST)).map(|at| at * 48);
        assert!(addresses().all(|address| live.insert(address, block)));
        assert!(!live.insert(16, block));
        assert!(addresses().all(|address| live.remove(address) == Some(block)));
        assert!(live.insert(16, block));
    }

    #[test]
    fn searches_see_blocks_while_others_move() {
        static LIVE: Live = Live::new();
        let over = AtomicBool::new(false);
        let own = |thread: u64, at: u64| 0x1000 + (at * 4 + thread) * 16;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut state = 3;
                while !over.load(Ordering::Relaxed) {
                    let address = own(0, draw::next(&mut state) % 3000);
                    let live = LIVE.lock();
                    if live.remove(address).is_none() {
                        live.insert(address, Block { size: 1, site: 1 });
                    }
                }
            });
            let searchers: Vec<_> = (1..4)
                .map(|thread| {
                    scope.spawn(move || {
                        for at in 0..20_000 {
                            let address = own(thread, at % 3000);
                            let block = Block { size: at, site: 7 };
                            assert!(LIVE.lock().insert(address, block));
                            assert!(LIVE.holds(address));
                            assert_eq!(LIVE.lock().remove(address), Some(block));
                        }
                    })
                })
                .collect();
            let ended: Vec<_> = searchers.into_iter().map(|one| one.join()).collect();
            over.store(true, Ordering::Relaxed);
            assert!(ended.iter().all(Result::is_ok));
        });
    }
}
