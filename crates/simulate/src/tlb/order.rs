//! The order in which the ways of each set are replaced: the oldest first; ways without an entry
//! before those with one, the lowest of them first.

use super::machine::Array as Description;
use super::ordered::{Ordered, Uses};
use super::recency::{Matrix, Nibbles};
use super::replacement::{Draws, Replacement, plru_touch, plru_victim};

/// The order of all sets of an array.
#[derive(Clone, Debug)]
pub enum Order {
    /// LRU of fewer than 8 ways.
    Few(Matrix),
    /// LRU of up to 16 ways.
    More(Nibbles),
    /// LRU of more ways.
    Many(Ring<true>),
    /// FIFO.
    Filled(Ring<false>),
    /// Tree-PLRU.
    Trees(Trees),
    /// Any way.
    Random(Random),
}

/// Runs the same code for each kind of order.
macro_rules! with_order {
    ($order:expr, $kind:ident => $body:expr) => {
        match $order {
            Order::Few($kind) => $body,
            Order::More($kind) => $body,
            Order::Many($kind) => $body,
            Order::Filled($kind) => $body,
            Order::Trees($kind) => $body,
            Order::Random($kind) => $body,
        }
    };
}
pub(super) use with_order;

impl Order {
    pub fn new(description: &Description) -> Self {
        let ways = description.ways as usize;
        let sets = description.sets() as usize;
        match description.replacement {
            // Replacing takes more instructions than in nibbles, a use fewer: for first levels.
            Replacement::Lru if ways < 8 => Self::Few(Matrix::new(sets, ways)),
            Replacement::Lru if ways <= 16 => Self::More(Nibbles::new(sets, ways)),
            Replacement::Lru => Self::Many(Ring::new(sets, ways)),
            Replacement::Fifo => Self::Filled(Ring::new(sets, ways)),
            Replacement::TreePlru => Self::Trees(Trees {
                bits: vec![0; sets],
                free: Free::new(sets, ways),
            }),
            Replacement::Random => Self::Random(Random {
                draws: Draws::default(),
                free: Free::new(sets, ways),
            }),
        }
    }
}

/// The ways of each set in a ring: its head is the most recent, the one before the head the oldest.
/// LRU and FIFO differ in whether a use makes a way the most recent.
#[derive(Clone, Debug)]
pub struct Ring<const IS_LRU: bool> {
    /// The way before and the way after each.
    links: Vec<[u8; 2]>,
    heads: Vec<u8>,
    ways: usize,
}

impl<const IS_LRU: bool> Ring<IS_LRU> {
    fn new(sets: usize, ways: usize) -> Self {
        let mut ring = Self {
            links: vec![[0; 2]; sets * ways],
            heads: vec![0; sets],
            ways,
        };
        let list: Vec<u8> = (0..ways).map(|way| way as u8).collect();
        for set in 0..sets {
            ring.link(set, &list);
        }
        ring
    }

    fn link(&mut self, set: usize, oldest_first: &[u8]) {
        let base = set * self.ways;
        for (at, &way) in oldest_first.iter().enumerate() {
            let older = oldest_first[(at + self.ways - 1) % self.ways];
            let newer = oldest_first[(at + 1) % self.ways];
            self.links[base + usize::from(way)] = [newer, older];
        }
        self.heads[set] = oldest_first[self.ways - 1];
    }

    #[inline]
    fn make_head(&mut self, set: usize, way: usize) {
        let head = self.heads[set];
        if way == usize::from(head) {
            return;
        }
        self.heads[set] = way as u8;
        let links = &mut self.links[set * self.ways..][..self.ways];
        let oldest = links[usize::from(head)][0];
        if way == usize::from(oldest) {
            return;
        }
        let [before, after] = links[way];
        links[usize::from(before)][1] = after;
        links[usize::from(after)][0] = before;
        links[usize::from(oldest)][1] = way as u8;
        links[usize::from(head)][0] = way as u8;
        links[way] = [oldest, head];
    }
}

impl<const IS_LRU: bool> Ordered for Ring<IS_LRU> {
    #[inline(always)]
    fn lent(&mut self) -> impl Uses {
        self
    }

    fn emptied(&mut self, set: usize, way: usize, is_empty: impl Fn(usize) -> bool) {
        if self.ways == 1 {
            return;
        }
        let links = &mut self.links[set * self.ways..][..self.ways];
        let [newer, older] = links[way];
        links[usize::from(newer)][1] = older;
        links[usize::from(older)][0] = newer;
        let head = &mut self.heads[set];
        if way == usize::from(*head) {
            *head = older;
        }
        // The emptied way goes before the oldest one, behind any lower ways without an entry; if
        // there is no other, it becomes the newest.
        let oldest = links[usize::from(*head)][0];
        let mut before = oldest;
        while usize::from(before) < way && is_empty(usize::from(before)) {
            before = links[usize::from(before)][0];
            if before == oldest {
                *head = way as u8;
                break;
            }
        }
        let after = links[usize::from(before)][1];
        links[way] = [before, after];
        links[usize::from(before)][1] = way as u8;
        links[usize::from(after)][0] = way as u8;
    }
}

impl<const IS_LRU: bool> Uses for &mut Ring<IS_LRU> {
    #[inline(always)]
    fn used(&mut self, set: usize, way: usize) {
        if IS_LRU {
            self.make_head(set, way);
        }
    }

    /// Makes the oldest way the most recent, which changes no link.
    #[inline(always)]
    fn replace(&mut self, set: usize) -> usize {
        let head = usize::from(self.heads[set]);
        let oldest = self.links[set * self.ways + head][0];
        self.heads[set] = oldest;
        usize::from(oldest)
    }
}

/// Tree bits, and which ways have no entry.
#[derive(Clone, Debug)]
pub struct Trees {
    bits: Vec<u128>,
    free: Free,
}

impl Ordered for Trees {
    #[inline(always)]
    fn lent(&mut self) -> impl Uses {
        self
    }

    fn emptied(&mut self, set: usize, way: usize, _: impl Fn(usize) -> bool) {
        self.free.put(set, way);
    }
}

impl Uses for &mut Trees {
    fn used(&mut self, set: usize, way: usize) {
        self.bits[set] = plru_touch(self.bits[set], self.free.ways, way);
    }

    fn replace(&mut self, set: usize) -> usize {
        let way = self.free.take(set);
        let way = way.unwrap_or_else(|| plru_victim(self.bits[set], self.free.ways));
        self.used(set, way);
        way
    }
}

/// Any way; ways without an entry are taken first.
#[derive(Clone, Debug)]
pub struct Random {
    draws: Draws,
    free: Free,
}

impl Ordered for Random {
    #[inline(always)]
    fn lent(&mut self) -> impl Uses {
        self
    }

    fn emptied(&mut self, set: usize, way: usize, _: impl Fn(usize) -> bool) {
        self.free.put(set, way);
    }
}

impl Uses for &mut Random {
    fn used(&mut self, _: usize, _: usize) {}

    fn replace(&mut self, set: usize) -> usize {
        let way = self.free.take(set);
        way.unwrap_or_else(|| self.draws.way(self.free.ways))
    }
}

/// Ways without an entry, for policies without an order.
#[derive(Clone, Debug)]
pub struct Free {
    ways: usize,
    /// One bit per way.
    sets: Vec<[u128; 2]>,
}

impl Free {
    fn new(sets: usize, ways: usize) -> Self {
        let bits = |ways: usize| match ways {
            0 => 0,
            _ => u128::MAX >> (128 - ways.min(128)),
        };
        Self {
            ways,
            sets: vec![[bits(ways), bits(ways.saturating_sub(128))]; sets],
        }
    }

    #[inline]
    fn take(&mut self, set: usize) -> Option<usize> {
        let half = self.sets[set].iter().position(|&bits| bits != 0)?;
        let bits = &mut self.sets[set][half];
        let way = bits.trailing_zeros() as usize;
        *bits &= *bits - 1;
        Some(half * 128 + way)
    }

    fn put(&mut self, set: usize, way: usize) {
        self.sets[set][way / 128] |= 1 << (way % 128);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tlb::machine::Index;

    fn description(ways: u32) -> Description {
        Description {
            holds: vec![],
            entries: 2 * ways,
            ways,
            replacement: Replacement::Lru,
            pages_per_entry: 1,
            index: Index::Linear,
        }
    }

    /// Uses, replaces and empties ways at random, compared with a list that has the oldest first.
    #[test]
    fn orders_are_those_of_a_plain_list() {
        for ways in [1, 2, 3, 4, 6, 7, 8, 9, 12, 15, 16, 17, 24, 64, 256] {
            let mut order = Order::new(&description(ways));
            let mut list: Vec<usize> = (0..ways as usize).collect();
            let mut empty = vec![true; ways as usize];
            let mut draws = Draws::default();
            for _ in 0..10_000 {
                let way = draws.way(ways as usize);
                match draws.way(8) {
                    0..4 => {
                        let way = with_order!(&mut order, order => order.lent().replace(1));
                        assert_eq!(way, list[0], "{ways} ways");
                        let first = list.remove(0);
                        list.push(first);
                        empty[first] = false;
                    }
                    4..7 if !empty[way] => {
                        with_order!(&mut order, order => order.lent().used(1, way));
                        list.retain(|&other| other != way);
                        list.push(way);
                    }
                    7 if !empty[way] => {
                        empty[way] = true;
                        with_order!(&mut order, order => order.emptied(1, way, |other| empty[other]));
                        list.retain(|&other| other != way);
                        list.push(way);
                        // Empty ones first, by number; the others in their previous order.
                        list.sort_by_key(|&way| if empty[way] { way } else { usize::MAX });
                    }
                    _ => {}
                }
            }
        }
    }
}
