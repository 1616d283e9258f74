//! Numbers by rank: the most frequent ones get the least numbers.

/// The numbers that occur, most frequent first; all are below `end`.
pub(super) fn by_frequency(numbers: impl Iterator<Item = u32>, end: usize) -> Vec<u32> {
    let mut uses = vec![0_u32; end];
    for number in numbers {
        uses[number as usize] += 1;
    }
    let mut order: Vec<u32> = (0..)
        .take(end)
        .filter(|&at| uses[at as usize] > 0)
        .collect();
    order.sort_by_key(|&at| u32::MAX - uses[at as usize]);
    order
}

/// The position of each number.
pub(super) fn inverse(order: &[u32], length: usize) -> Vec<u32> {
    let mut places = vec![0; length];
    for (&number, place) in order.iter().zip(0..) {
        places[number as usize] = place;
    }
    places
}
