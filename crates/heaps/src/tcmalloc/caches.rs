//! Freed objects in the caches of threads (`ThreadCache`), and in those between threads and spans
//! (`CentralFreeList`), which look in use.
//!
//! ```text
//!  cache of a thread   for each class: list 8 │ objects 4 │ … 12 │ size of an object 4 │ 4
//!  central list        class 8 │ two heads of lists of spans 96 │ counts 16 │ 64 slots │ slots in use 4
//! ```

use super::super::scattered::Scattered;
use super::Words;
use super::classes::{Classes, number_at};
use std::collections::BTreeSet;

/// In the cache of a thread: from one list to the next, and its parts.
const LIST: u64 = 32;
const OBJECTS: u64 = 8;
const SIZE: u64 = 24;
/// Room for lists, and what may be behind them, in which the next cache is named.
const LISTS: u64 = 128;
const REST: u64 = 1 << 10;
/// Most caches.
const MOST: usize = 1 << 16;
/// From one central list to the next, and from its class to the slots in use.
const CENTRAL: u64 = 1216;
const SLOTS_IN_USE: u64 = 8 + 96 + 16 + 64 * 16;
const SLOTS: u64 = 64;

/// Bytes and number of the objects in caches.
pub(super) fn bytes(data: &Words, classes: &Classes, words: &mut Scattered<'_>) -> (u64, u64) {
    let mut sums = central(data, classes);
    for cache in threads(data, classes, words) {
        for (class, size) in (0_u64..).zip(&classes.sizes) {
            let objects = number_at(cache + LIST * class + OBJECTS, words).unwrap_or(0);
            sums.0 += u64::from(objects) * size;
            sums.1 += u64::from(objects);
        }
    }
    sums
}

/// The caches of threads: a variable leads to one, and each to others.
fn threads(data: &Words, classes: &Classes, words: &mut Scattered<'_>) -> BTreeSet<u64> {
    let mut seen = BTreeSet::new();
    let mut next: Vec<u64> = data.0.iter().map(|one| one.1).collect();
    while let Some(place) = next.pop() {
        let is_new = place.is_multiple_of(8) && !seen.contains(&place) && seen.len() < MOST;
        if !is_new || !is_cache(place, classes, words) {
            continue;
        }
        seen.insert(place);
        let first = LIST * classes.sizes.len() as u64;
        let rest = (place + first..place + LIST * LISTS + REST).step_by(8);
        next.extend(
            rest.map_while(|at| words.word(at).ok())
                .filter(|word| *word != 0),
        );
    }
    seen
}

fn is_cache(place: u64, classes: &Classes, words: &mut Scattered<'_>) -> bool {
    let mut lists = (0_u64..).zip(&classes.sizes).skip(1);
    lists.all(|(class, size)| {
        let said = place.checked_add(LIST * class + SIZE);
        said.and_then(|at| number_at(at, words)).map(u64::from) == Some(*size)
    })
}

fn central(data: &Words, classes: &Classes) -> (u64, u64) {
    let all = classes.sizes.len() as u64;
    let is_first =
        |place: u64| (2..all).all(|class| data.at(place + CENTRAL * (class - 1)) == class);
    let mut firsts = data.0.iter().filter(|one| one.1 == 1).map(|one| one.0);
    let Some(first) = firsts.find(|place| is_first(*place)) else {
        return (0, 0);
    };
    let mut sums = (0, 0);
    for (class, (size, moved)) in (0_u64..)
        .zip(classes.sizes.iter().zip(&classes.moved))
        .skip(1)
    {
        let slots = data.at(first + CENTRAL * (class - 1) + SLOTS_IN_USE) & 0xffff_ffff;
        if slots <= SLOTS {
            sums.0 += slots * moved * size;
            sums.1 += slots * moved;
        }
    }
    sums
}
