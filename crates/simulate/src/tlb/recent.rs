//! Which accesses change nothing, and so need no look-up.

use super::PageSize;
use super::machine::{Index, Machine};

/// Places for products that were used last.
pub const RECENT: usize = 128;

/// Which accesses change nothing, and so need no look-up.
///
/// After an access the first level holds its product, as the entry of its set that was used last.
/// If the next access *to that set* is to the same product, it hits; and it leaves everything as it
/// is: LRU and tree-PLRU, because the entry is the most recent one already, FIFO and random, because
/// no hit changes them. Levels beyond the first see no hits. So it is enough to count it. This needs
/// no more than the last tag of each set, or of each group of sets, since "the next access to the
/// group" is "the next access to the set" or later.
///
/// What takes an entry out of the first level between the two must empty the tags here. A fill of
/// that set is an access to it. Changes of page sizes empty them all. Where a lower level is
/// inclusive, an access elsewhere may take any entry out: then one group holds all sets, so that the
/// next access is the next access of all. Where the first level also holds stages apart, as the last
/// one that it then is, nothing is left out for guests, and their accesses empty the tags.
#[derive(Clone, Copy, Debug)]
pub struct Recent {
    /// By page size.
    pub sets: [Sets; 2],
}

/// Sets of the first level that hold pages of a size.
#[derive(Clone, Copy, Debug)]
pub struct Sets {
    /// Bits of a page's number that tell the group.
    pub mask: u32,
    /// The first group's place.
    pub first: u32,
    /// Whether there are none: every access is looked up.
    pub is_absent: bool,
}

impl Recent {
    /// For the first level of a machine, of whose levels so many hold products.
    pub fn new(machine: &Machine, products: usize) -> Self {
        let is_inclusive = machine.levels.iter().any(|level| level.is_inclusive);
        let small = machine.array(0, PageSize::Small);
        let huge = machine.array(0, PageSize::Huge);
        let is_shared = small.is_some_and(|array| array.holds(PageSize::Huge));
        let neighbours = small.map_or(0, |array| array.pages_per_entry.trailing_zeros());
        let sets = [(PageSize::Small, small), (PageSize::Huge, huge)].map(|(size, array)| {
            let is_huge = size == PageSize::Huge;
            let is_plain = array.is_some_and(|array| array.index == Index::Linear)
                && !is_inclusive
                // Sizes that share sets must find them at the same places.
                && !(is_shared && neighbours > 0);
            let groups = match array {
                Some(array) if is_plain => array.sets().min(RECENT as u32 / 2),
                _ => 1,
            };
            let first = match is_huge && !is_shared && !is_inclusive {
                true => RECENT as u32 / 2,
                false => 0,
            };
            Sets {
                // Neighbours in one entry are of one set.
                mask: (groups - 1) << if is_huge { 0 } else { neighbours },
                first,
                is_absent: products == 0 || array.is_none(),
            }
        });
        Self { sets }
    }
}
