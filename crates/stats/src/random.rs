//! A small seeded generator, so that an analysis gives the same answer each time.

/// xoshiro256++ (Blackman and Vigna, 2019), seeded through splitmix64.
#[derive(Clone, Debug)]
pub struct Random {
    state: [u64; 4],
}

impl Random {
    /// A generator for `seed`; any seed is good.
    #[must_use]
    pub fn seeded(seed: u64) -> Self {
        let mut weyl = seed;
        Self {
            state: std::array::from_fn(|_| splitmix(&mut weyl)),
        }
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        let [a, b, c, d] = &mut self.state;
        let result = a.wrapping_add(*d).rotate_left(23).wrapping_add(*a);
        let shifted = *b << 17;
        *c ^= *a;
        *d ^= *b;
        *b ^= *c;
        *a ^= *d;
        *c ^= shifted;
        *d = d.rotate_left(45);
        result
    }

    /// A whole number below `bound`, without any bias that a 64-bit draw could show. 0 for bound 0.
    pub fn below(&mut self, bound: usize) -> usize {
        let wide = u128::from(self.bits()) * bound as u128;
        usize::try_from(wide >> 64).unwrap_or(0)
    }

    /// Puts `items` in random order (Fisher–Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }
}

fn splitmix(weyl: &mut u64) -> u64 {
    *weyl = weyl.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mixed = (*weyl ^ (*weyl >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_are_even_and_repeatable() {
        let mut counts = [0u32; 6];
        let mut random = Random::seeded(7);
        for _ in 0..60_000 {
            counts[random.below(6)] += 1;
        }
        // Six sigma of a binomial with 10,000 expected is 550.
        assert!(
            counts.iter().all(|count| count.abs_diff(10_000) < 550),
            "{counts:?}"
        );
        assert_eq!(Random::seeded(1).bits(), Random::seeded(1).bits());
        assert_ne!(Random::seeded(1).bits(), Random::seeded(2).bits());
    }

    #[test]
    fn shuffles_reach_each_order() {
        let mut seen = std::collections::BTreeMap::<[u8; 3], u32>::new();
        let mut random = Random::seeded(3);
        for _ in 0..6_000 {
            let mut items = [1, 2, 3];
            random.shuffle(&mut items);
            *seen.entry(items).or_default() += 1;
        }
        assert_eq!(seen.len(), 6);
        assert!(
            seen.values().all(|count| count.abs_diff(1_000) < 180),
            "{seen:?}"
        );
    }
}
