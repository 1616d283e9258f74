//! What all replacement orders do, and what their look-ups share.

/// A replacement order.
pub trait Ordered {
    /// The order while entries are looked up, its tables' places and lengths in registers.
    fn lent(&mut self) -> impl Uses;
    /// Records that a way lost its entry; `is_empty` shows which ways of its set have none.
    fn emptied(&mut self, set: usize, way: usize, is_empty: impl Fn(usize) -> bool);
}

/// What look-ups do with a replacement order.
pub trait Uses {
    /// Records that an entry was used.
    fn used(&mut self, set: usize, way: usize);
    /// Chooses the way to replace, and counts it as filled.
    fn replace(&mut self, set: usize) -> usize;
}

/// The ways, oldest first, after `way` has lost its entry.
pub fn with_empty(mut ways: Vec<u8>, way: usize, is_empty: impl Fn(usize) -> bool) -> Vec<u8> {
    ways.retain(|&other| usize::from(other) != way);
    let before = |other: &&u8| usize::from(**other) < way && is_empty(usize::from(**other));
    let at = ways.iter().take_while(before).count();
    ways.insert(at, way as u8);
    ways
}

/// The table, and the mask of its indices; its length is a power of two.
#[inline(always)]
pub fn masked<T>(table: &mut [T]) -> (&mut [T], usize) {
    debug_assert!(table.len().is_power_of_two(), "{}", table.len());
    let mask = table.len().saturating_sub(1);
    // The same length, in the form in which the compiler sees that no masked index exceeds it.
    (&mut table[..mask + 1], mask)
}
