//! `struct malloc_state`, found by what it holds.
//!
//! Around the word with the address of the last block ("top") the structure has been the same from
//! 2.26 on: the heads of 127 lists of free blocks follow, which point to themselves while empty,
//! then a bitmap, links to the other arenas and the counters of bytes.

use super::super::Image;
use super::chunks::{ALIGNMENT, FLAGS};

/// Lists of free blocks (`NBINS` - 1), each with two links.
const LISTS: u64 = 127;
/// From `top` to the parts behind it: `bins` after `last_remainder`, `next` after 254 links and a
/// bitmap of 16 bytes, then `next_free` and `attached_threads`.
const BINS: u64 = 16;
const NEXT: u64 = BINS + 2 * 8 * LISTS + 16;
const SYSTEM_MEM: u64 = NEXT + 24;
const MAX_SYSTEM_MEM: u64 = SYSTEM_MEM + 8;
/// The structure's end.
pub(super) const BEHIND_TOP: u64 = MAX_SYSTEM_MEM + 8;
/// The heads of the lists of small blocks ("fastbins") end where `top` starts.
const FASTBINS: u64 = 10 * 8;

/// The place of an arena's `top`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Arena(pub u64);

/// How often it is looked at whether lists and counters are sound: a list may change meanwhile.
const LOOKS: usize = 4;

impl Arena {
    /// Where the address of the last block is.
    pub fn place(self) -> u64 {
        self.0
    }

    /// Bytes that the arena has from the system, by its own counter.
    pub fn system_mem(self, image: &mut Image<'_>) -> Option<u64> {
        image.now(self.0 + SYSTEM_MEM).ok()
    }

    /// Where the ten heads of its fastbins are.
    pub fn fastbins(self) -> u64 {
        self.0 - FASTBINS
    }

    /// The end of the structure.
    pub fn end(self) -> u64 {
        self.0 + BEHIND_TOP
    }

    /// Whether its last block ends with a page.
    fn ends_heap(self, image: &mut Image<'_>, end: u64) -> bool {
        for _ in 0..LOOKS {
            let Ok(top) = image.now(self.0) else {
                return false;
            };
            let size = top.checked_add(8).map(|place| image.now(place));
            match size {
                Some(Ok(word)) => {
                    let behind = top.saturating_add(word & !FLAGS);
                    if word & !FLAGS > 0 && behind.is_multiple_of(image.page()) {
                        return true;
                    }
                }
                // Behind the end, nothing is known to be present.
                Some(Err(_)) if top >= end => return true,
                _ => return false,
            }
        }
        false
    }

    /// Whether the lists and counters around this place are those of an arena.
    pub fn is_sound(self, image: &mut Image<'_>) -> bool {
        for _ in 0..LOOKS {
            if self.seems_sound(image) {
                return true;
            }
            image.forget();
        }
        false
    }

    fn seems_sound(self, image: &mut Image<'_>) -> bool {
        let mut empty = 0;
        for list in 0..LISTS {
            // The head of a list is a block whose links are the two words.
            let head = self.0 + BINS * list;
            let links = [image.word(head + 16), image.word(head + 24)];
            let [Ok(forward), Ok(back)] = links else {
                return false;
            };
            match (forward == head, back == head) {
                (true, true) => empty += 1,
                (false, false)
                    if forward != 0
                        && back != 0
                        && forward.is_multiple_of(ALIGNMENT)
                        && back.is_multiple_of(ALIGNMENT) => {}
                _ => return false,
            }
        }
        let (Ok(now), Ok(most)) = (
            image.word(self.0 + SYSTEM_MEM),
            image.word(self.0 + MAX_SYSTEM_MEM),
        ) else {
            return false;
        };
        empty > 0 && now > 0 && now <= most
    }
}

/// How far the end of a heap may move while it is read.
const GROWTH: u64 = 1 << 30;

/// The arena whose last block is in the heap from `start` to `end`, or behind it if the heap has grown
/// meanwhile, in these ranges of variables.
pub(super) fn find(
    image: &mut Image<'_>,
    ranges: &[(u64, u64)],
    (start, end): (u64, u64),
) -> Option<Arena> {
    let latest = end.saturating_add(GROWTH);
    let is_near = |word: u64| (start..latest).contains(&word) && word.is_multiple_of(ALIGNMENT);
    let places = words_that(image, ranges, is_near);
    places
        .into_iter()
        .map(Arena)
        .find(|arena| arena.0 >= FASTBINS && arena.ends_heap(image, end) && arena.is_sound(image))
}

/// Most places that are looked at.
const MOST_PLACES: usize = 1 << 14;

/// Addresses of words that pass `test`, on pages that are present.
pub(super) fn words_that(
    image: &mut Image<'_>,
    ranges: &[(u64, u64)],
    test: impl Fn(u64) -> bool,
) -> Vec<u64> {
    let mut found = Vec::new();
    for &(start, end) in ranges {
        let runs: Vec<_> = image.presence().within(start, end).collect();
        for run in runs {
            for address in (run.start..run.end).step_by(8) {
                match image.word(address) {
                    Ok(word) if test(word) => found.push(address),
                    Ok(_) => {}
                    Err(_) => break,
                }
                if found.len() >= MOST_PLACES {
                    return found;
                }
            }
        }
    }
    found
}
