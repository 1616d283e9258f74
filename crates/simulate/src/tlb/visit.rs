//! Consecutive accesses to one page, as one item.

/// An address, and how many more accesses to the same 4 KiB follow the first.
///
/// Traces of real programs consist mostly of such repeats, which do not affect the TLB: after an
/// access its page is in the first level as the most recently used entry, and using that again
/// changes nothing (no processor has a base page smaller than 4 KiB, and within a larger one it is
/// the same page too). So repeats are counted, and stored and simulated once. The offset within the
/// 4 KiB is dropped: its bits contain the count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Visit(u64);

/// Bits not used by a page number.
const WITHIN: u64 = 0xFFF;
/// Most repeats in a visit: few, so that visits remain short relative to a controller's interval.
const MOST: u64 = 15;

impl Visit {
    /// One access.
    #[must_use]
    pub fn one(address: u64) -> Self {
        Self(address & !WITHIN)
    }

    /// Start of its 4 KiB.
    #[inline(always)]
    #[must_use]
    pub fn address(self) -> u64 {
        self.0 & !WITHIN
    }

    /// Number of accesses.
    #[inline(always)]
    #[must_use]
    pub fn accesses(self) -> u64 {
        1 + (self.0 & WITHIN)
    }

    /// Adds an access to the end of `visits`.
    #[inline(always)]
    pub fn push(visits: &mut Vec<Self>, address: u64) {
        if let Some(last) = visits.last_mut()
            && last.0 ^ (address & !WITHIN) < MOST
        {
            last.0 += 1;
        } else {
            visits.push(Self::one(address));
        }
    }

    /// Adds accesses to one page; the visits are the same as with single accesses.
    #[inline(always)]
    pub fn push_many(visits: &mut Vec<Self>, address: u64, mut accesses: u64) {
        let page = address & !WITHIN;
        if let Some(last) = visits.last_mut()
            && last.0 ^ page < MOST
        {
            let joined = accesses.min(MOST - (last.0 & WITHIN));
            last.0 += joined;
            accesses -= joined;
        }
        while accesses > 0 {
            let now = accesses.min(MOST + 1);
            visits.push(Self(page | (now - 1)));
            accesses -= now;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeats_of_a_page_are_joined_up_to_a_bound() {
        let mut visits = Vec::new();
        let addresses = [0x5000, 0x5fff, 0x5008, 0x6000, 0x5000];
        for address in addresses.into_iter().chain([0x9010; 20]) {
            Visit::push(&mut visits, address);
        }
        let found: Vec<_> = visits.iter().map(|r| (r.address(), r.accesses())).collect();
        let expected = [
            (0x5000, 3),
            (0x6000, 1),
            (0x5000, 1),
            (0x9000, 16),
            (0x9000, 4),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn many_at_once_are_joined_as_one_by_one() {
        let (mut one_by_one, mut at_once) = (Vec::new(), Vec::new());
        let runs = [
            (0x5000, 1),
            (0x5000, 14),
            (0x5000, 3),
            (0x6000, 16),
            (0x6000, 1),
            (0x5000, 70),
        ];
        for (page, accesses) in runs {
            for _ in 0..accesses {
                Visit::push(&mut one_by_one, page);
            }
            Visit::push_many(&mut at_once, page, accesses);
        }
        assert_eq!(one_by_one, at_once);
    }
}
