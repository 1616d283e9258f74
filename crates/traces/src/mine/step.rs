//! What a pattern can be extended by.

use super::database::Item;

/// The rest of a sequence after a match.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub sequence: u32,
    pub rest: u32,
}

/// An item that extends a pattern, with the places after it.
pub(super) struct Step {
    pub item: Item,
    pub support: u64,
    pub places: Vec<Place>,
}
