//! Which accesses change nothing, and so need no look-up.

use super::PageSize;
use super::machine::{Index, Machine};

/// Places for the most recent products.
pub const RECENT: usize = 128;

/// Which accesses change nothing, and so need no look-up.
///
/// After an access the first level has its product, as the entry of its set that was used last. If
/// the next access *to that set* is to the same product, it hits and changes nothing: with LRU and
/// tree-PLRU because the entry is already the most recent one, with FIFO and random because hits
/// change nothing. Levels beyond the first see no hits. So counting the access is enough. This
/// needs only the last tag of each set, or of each group of sets, since "the next access to the
/// group" is "the next access to the set" or later.
///
/// Anything else that removes an entry from the first level between the two must clear the tags
/// here. A fill of that set is an access to it. Changes of page sizes clear all tags. If a lower
/// level is inclusive, an access elsewhere may remove any entry: then one group contains all sets,
/// so that the next access is the next access of all. If the first level also has separate stage
/// entries (it is then the last level as well), no access of a guest is skipped, and guest accesses
/// clear the tags.
#[derive(Clone, Copy, Debug)]
pub struct Recent {
    /// By page size.
    pub sets: [Sets; 2],
}

/// Sets of the first level that store pages of a size.
#[derive(Clone, Copy, Debug)]
pub struct Sets {
    /// Bits of a page's number that select the group.
    pub mask: u32,
    /// The first group's place.
    pub first: u32,
    /// Whether there are none, so that every access is looked up.
    pub is_absent: bool,
}

impl Recent {
    /// For the first level of a machine in which this many levels store products.
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
                // Neighbours in one entry belong to one set.
                mask: (groups - 1) << if is_huge { 0 } else { neighbours },
                first,
                is_absent: products == 0 || array.is_none(),
            }
        });
        Self { sets }
    }
}
