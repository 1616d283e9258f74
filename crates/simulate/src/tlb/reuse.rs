//! The sampling engine: misses of fully associative LRU TLBs of all sizes, in one pass.
//!
//! An access misses a TLB of `n` entries when at least `n` other pages were used since the last use
//! of its page (Mattson et al., 1970). Only pages whose hash is below a threshold are followed
//! (SHARDS: Waldspurger et al., FAST 2015): with one page in 64, a place in the list of followed
//! pages stands for 64 places. TLBs are small, so the list is cut at the largest size of interest;
//! it then spans a few cache lines, which are searched all at once. Most accesses find their page
//! in the first few places, which are searched one by one.
//!
//! Repeated rounds need not be processed again ([`Reuse::repeat`]): in each further round only the
//! first access to each page has another distance than in the round before, and the later rounds
//! follow from the list at the end of a round.
//!
//! Unlike [`super::Exact`], this has one page size, no sets and no upper levels.
//!
//! # Error
//! There are two independent errors, both shrinking with a larger sample: the miss ratio is off by
//! at most [`Reuse::error`] (95 %), and each size by the relative [`Reuse::size_error`], since a
//! list of `n × rate` pages stands for `n`.

use super::visit::Visit;
use rustc_hash::FxHashMap;

/// Follows a sample of pages of one size.
#[derive(Clone, Debug)]
pub struct Reuse {
    shift: u32,
    /// Binary logarithm of the pages per followed page.
    one_in: u32,
    threshold: u32,
    /// Followed pages, the most recently used first: the first [`NEAR`] of them.
    near: Vec<Near>,
    /// The remaining ones.
    far: Vec<u32>,
    depth: usize,
    /// Accesses that found their page at each place.
    found: Vec<u64>,
    /// Sampled accesses whose page was not in the list.
    lost: u64,
    accesses: u64,
    /// Sampled accesses by page, for the error, without those still counted in [`Near`].
    uses: FxHashMap<u32, u64>,
    /// Followed pages in the order of their first access.
    firsts: Vec<u32>,
}

/// A page among the most recently used.
#[derive(Clone, Copy, Debug)]
struct Near {
    tag: u32,
    /// Sampled accesses since it came here.
    uses: u64,
}

/// Places that are searched one by one.
const NEAR: usize = 8;

impl Reuse {
    /// For pages of `2^shift` bytes and TLBs of up to `most` entries; follows one page in
    /// `2^one_in`.
    #[must_use]
    pub fn new(shift: u32, most: usize, one_in: u32) -> Self {
        let one_in = one_in.min(16);
        let depth = (most >> one_in).max(1);
        Self {
            shift,
            one_in,
            threshold: u32::MAX >> one_in,
            near: Vec::with_capacity(NEAR),
            far: Vec::with_capacity(depth.saturating_sub(NEAR)),
            depth,
            found: vec![0; depth],
            lost: 0,
            accesses: 0,
            uses: FxHashMap::default(),
            firsts: Vec::new(),
        }
    }

    /// Takes accesses in order.
    pub fn access(&mut self, addresses: &[u64]) {
        for part in addresses.chunks(BLOCK) {
            self.block(part, |&address| (address, 1));
        }
    }

    /// Takes visits in order.
    pub fn access_visits(&mut self, visits: &[Visit]) {
        for part in visits.chunks(BLOCK) {
            self.block(part, |visit| (visit.address(), visit.accesses()));
        }
    }

    /// Hashes a block at once, which compilers vectorise, then follows the pages that the hashes
    /// select.
    #[inline(always)]
    fn block<T>(&mut self, items: &[T], access: impl Fn(&T) -> (u64, u64)) {
        self.accesses += items.iter().map(|item| access(item).1).sum::<u64>();
        if self.one_in == 0 {
            for item in items {
                let (address, accesses) = access(item);
                self.follow(address >> self.shift, accesses);
            }
            return;
        }
        let mut hashes = [0_u32; BLOCK];
        for (hash, item) in hashes.iter_mut().zip(items) {
            *hash = mixed((access(item).0 >> self.shift) as u32);
        }
        for (&hash, item) in hashes.iter().zip(items) {
            if hash <= self.threshold {
                let (address, accesses) = access(item);
                self.follow(address >> self.shift, accesses);
            }
        }
    }

    #[inline(always)]
    fn follow(&mut self, page: u64, accesses: u64) {
        // Bits above 32 distinguish heaps from stacks and libraries; folded in, they keep tags
        // distinct.
        let tag = (page ^ (page >> 32).wrapping_mul(0x9E37_79B1)) as u32;
        // Repeated accesses to the page hit the first place.
        self.found[0] += accesses - 1;
        self.follow_tag(tag);
    }

    #[inline(always)]
    fn follow_tag(&mut self, tag: u32) {
        match self.near.first() {
            Some(first) if first.tag == tag => self.found[0] += 1,
            _ => self.move_to_front(tag),
        }
    }

    #[inline]
    fn move_to_front(&mut self, tag: u32) {
        let mut carried = Near { tag, uses: 1 };
        for (place, found) in self.near.iter_mut().zip(&mut self.found) {
            std::mem::swap(place, &mut carried);
            if carried.tag == tag {
                *found += 1;
                self.near[0].uses += carried.uses;
                return;
            }
        }
        if self.near.len() < NEAR.min(self.depth) {
            self.near.push(carried);
            self.lost += 1;
            self.firsts.push(tag);
        } else {
            self.move_from_far(tag, carried);
        }
    }

    /// Moves the page from the far list to the front; `carried` made room.
    fn move_from_far(&mut self, tag: u32, carried: Near) {
        *self.uses.entry(carried.tag).or_default() += carried.uses;
        match place(&self.far, tag) {
            Some(at) => {
                self.found[NEAR + at] += 1;
                self.far.copy_within(0..at, 1);
                self.far[0] = carried.tag;
            }
            None => {
                self.lost += 1;
                if !self.uses.contains_key(&tag) {
                    self.firsts.push(tag);
                }
                if self.far.len() + NEAR >= self.depth {
                    self.far.pop();
                }
                if self.depth > NEAR {
                    self.far.insert(0, carried.tag);
                }
            }
        }
    }

    /// Counts the accesses so far as the first of `rounds` (at least 1) identical rounds.
    ///
    /// Between two uses of a page within one round, the same pages are used in each round. The
    /// first use in a later round comes after the last uses of the previous round, and after the
    /// first uses of other pages in its own.
    pub fn repeat(&mut self, rounds: u64) {
        let mut second = self.clone();
        for tag in &self.firsts {
            second.follow_tag(*tag);
        }
        let further = rounds.saturating_sub(1);
        for (found, second) in self.found.iter_mut().zip(&second.found) {
            *found += *second * further;
        }
        // None of the second round's first uses is new.
        self.lost += (second.lost - self.firsts.len() as u64) * further;
        self.accesses *= 1 + further;
        for uses in self.uses.values_mut() {
            *uses *= 1 + further;
        }
        for near in &mut self.near {
            near.uses *= 1 + further;
        }
    }

    /// Accesses seen.
    #[must_use]
    pub fn accesses(&self) -> u64 {
        self.accesses
    }

    /// Share of pages that are followed.
    #[must_use]
    pub fn rate(&self) -> f64 {
        1.0 / f64::from(1_u32 << self.one_in)
    }

    /// Share of accesses that miss a TLB of this many entries (at most the number given to `new`).
    #[must_use]
    pub fn miss_ratio(&self, entries: usize) -> f64 {
        if self.accesses == 0 {
            return 0.0;
        }
        let hit_below = (entries >> self.one_in).min(self.depth);
        let far: u64 = self.found[hit_below..].iter().sum();
        let misses = (self.lost + far) as f64 / self.rate();
        (misses / self.accesses as f64).min(1.0)
    }

    /// Sizes and miss ratios: a point for each place of the list.
    #[must_use]
    pub fn curve(&self) -> Vec<(u64, f64)> {
        let sizes = (1..=self.depth).map(|place| place << self.one_in);
        sizes
            .map(|size| (size as u64, self.miss_ratio(size)))
            .collect()
    }

    /// The largest sampling error of the miss ratio, with 95 % confidence: a page is in the sample
    /// or not, together with all its accesses.
    #[must_use]
    pub fn error(&self) -> f64 {
        let rate = self.rate();
        let square = |uses: u64| (uses as f64).powi(2);
        let squares: f64 = self.uses.values().map(|&uses| square(uses)).sum();
        let near = self.near.iter().map(|near| {
            let before = self.uses.get(&near.tag).copied().unwrap_or(0);
            square(before + near.uses) - square(before)
        });
        let squares = squares + near.sum::<f64>();
        1.96 * ((1.0 - rate) * squares).sqrt() / rate / self.accesses.max(1) as f64
    }

    /// The largest sampling error of a size, as a share of it, with 95 % confidence.
    #[must_use]
    pub fn size_error(&self, entries: usize) -> f64 {
        let rate = self.rate();
        1.96 * ((1.0 - rate) / (entries.max(1) as f64 * rate)).sqrt()
    }
}

/// Accesses hashed together.
const BLOCK: usize = 256;

/// A hash whose values are spread evenly for any stride (the finaliser of MurmurHash3, Appleby).
#[inline]
fn mixed(page: u32) -> u32 {
    let mut hash = page;
    hash ^= hash >> 16;
    hash = hash.wrapping_mul(0x85EB_CA6B);
    hash ^= hash >> 13;
    hash = hash.wrapping_mul(0xC2B2_AE35);
    hash ^ (hash >> 16)
}

/// The place of a tag in the list, searched eight at a time.
#[inline]
fn place(list: &[u32], tag: u32) -> Option<usize> {
    let (chunks, rest) = list.as_chunks::<16>();
    for (chunk, tags) in chunks.iter().enumerate() {
        let mut found = 0_u32;
        for (lane, &other) in tags.iter().enumerate() {
            found |= if other == tag { lane as u32 + 1 } else { 0 };
        }
        if found > 0 {
            return Some(chunk * 16 + found as usize - 1);
        }
    }
    let base = chunks.len() * 16;
    let at = rest.iter().position(|&other| other == tag)?;
    Some(base + at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Mattson's definition, written directly: pages used since the last use.
    fn plain(pages: &[u64]) -> Vec<Option<usize>> {
        let distance = |(at, page): (usize, &u64)| {
            let last = pages[..at].iter().rposition(|other| other == page)?;
            let between: std::collections::HashSet<_> = pages[last + 1..at].iter().collect();
            Some(between.len())
        };
        pages.iter().enumerate().map(distance).collect()
    }

    proptest! {
        #[test]
        fn without_sampling_every_size_is_exact(
            pages in prop::collection::vec(0_u64..60, 1..300),
            most in 1_usize..50,
        ) {
            let mut engine = Reuse::new(12, most, 0);
            let addresses: Vec<u64> = pages.iter().map(|page| page << 12).collect();
            engine.access(&addresses);
            let distances = plain(&pages);
            for size in 1..=most {
                let misses = distances.iter().filter(|d| d.is_none_or(|d| d >= size)).count();
                let expected = misses as f64 / pages.len() as f64;
                prop_assert!((engine.miss_ratio(size) - expected).abs() < 1e-12, "size {}", size);
            }
        }

        #[test]
        fn repeated_rounds_are_counted_as_if_taken(
            pages in prop::collection::vec(0_u64..90, 1..300),
            most in 1_usize..70,
            one_in in 0_u32..3,
            rounds in 1_u64..5,
        ) {
            let addresses: Vec<u64> = pages.iter().map(|page| page << 12).collect();
            let mut taken = Reuse::new(12, most, one_in);
            for _ in 0..rounds {
                taken.access(&addresses);
            }
            let mut repeated = Reuse::new(12, most, one_in);
            repeated.access(&addresses);
            repeated.repeat(rounds);
            prop_assert_eq!(taken.accesses, repeated.accesses);
            prop_assert_eq!(taken.lost, repeated.lost);
            prop_assert_eq!(&taken.found, &repeated.found);
            // When a round starts with the page that ended the previous one, its first use is one
            // of the near ones, which the error leaves out.
            if repeated.near.first().map(|near| near.tag) != repeated.firsts.first().copied() {
                let apart = (taken.error() - repeated.error()).abs();
                prop_assert!(apart < 1e-9, "{} {}", taken.error(), repeated.error());
            }
        }
    }

    #[test]
    fn a_sample_is_within_its_stated_error() {
        use crate::tlb::workload::named;
        for (name, shift, one_in) in [
            ("gups", 12, 3),
            ("key-value", 12, 4),
            ("mcf-sweep", 14, 2),
            ("mcf-heap", 14, 4),
            ("btree", 14, 3),
        ] {
            let mut workload = named(name, Some(16 << 20), 3).unwrap();
            let mut accesses = vec![0; 60_000];
            workload.fill(&mut accesses);
            let mut exact = Reuse::new(shift, 2048, 0);
            let mut sampled = Reuse::new(shift, 1024, one_in);
            exact.access(&accesses);
            sampled.access(&accesses);
            assert_eq!(exact.error(), 0.0);
            for size in [128_usize, 256, 512, 1024] {
                let off = sampled.size_error(size);
                let at = |factor: f64| exact.miss_ratio((size as f64 * factor) as usize);
                // With a margin of one half, since ten checks of 95 % each would fail now and then.
                let (least, most) = (at(1.0 + 1.5 * off), at((1.0 - 1.5 * off).max(0.0)));
                let error = 1.5 * sampled.error();
                let found = sampled.miss_ratio(size);
                assert!(
                    found >= least - error && found <= most + error,
                    "{name}, {size}: {found} is not within {least} to {most} ± {error}"
                );
            }
        }
    }
}
