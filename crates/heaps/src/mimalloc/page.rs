//! A page: slices of a segment with blocks of one size.

use super::super::tiling::Listed;
use super::super::{Hole, Image};
use super::layout::{self, Layout, SLICE, starts};
use pagewise_model::memory::Unread;

/// How often a page is read if it changes meanwhile.
const LOOKS: usize = 3;

/// What a descriptor says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Descriptor {
    /// Slices; none if it is not the first one of its page.
    pub slices: u64,
    /// Bytes of a block; none if the slices are free.
    pub block: u64,
    /// Blocks that were ever used, and for which there is room.
    capacity: u64,
    room: u64,
    /// Blocks in use, with those that other threads have freed.
    used: u64,
    /// Lists of free blocks, the last one of those that other threads have freed.
    lists: [u64; 3],
    start: Option<u64>,
}

impl Descriptor {
    /// The descriptor at `place`.
    pub fn read(image: &Image<'_>, place: u64, layout: &Layout) -> Result<Self, Hole> {
        let words: [u64; 8] = image.now_all(place)?;
        let [slices, counts, free, ..] = words;
        let (used, block, lists, start) = match layout.page {
            layout::Page::Old => {
                let lists = [free, words[4], words[5]];
                (words[3] & 0xffff_ffff, words[3] >> 32, lists, None)
            }
            layout::Page::New => {
                let lists = [free, words[3], words[7]];
                (words[4] & 0xffff, words[5], lists, Some(words[6]))
            }
        };
        Ok(Self {
            slices: slices & 0xffff_ffff,
            block,
            capacity: counts >> 16 & 0xffff,
            room: counts >> 32 & 0xffff,
            used,
            lists,
            start,
        })
    }

    /// What these words at the start of a page's slices say, in mimalloc 3.
    pub fn of_third(words: &[u64]) -> Self {
        let word = |at: usize| words.get(at).copied().unwrap_or_default();
        Self {
            slices: 0,
            block: word(5),
            capacity: word(2) >> 16 & 0xffff,
            room: word(2) >> 32 & 0xffff,
            used: word(2) & 0xffff,
            lists: [word(1), word(3), word(4)],
            start: Some(word(6)),
        }
    }

    /// Whether its numbers fit together.
    pub fn is_sound(&self) -> bool {
        self.block >= 8
            && self.start.is_some_and(|start| start.is_multiple_of(8))
            && self.used <= self.capacity
            && self.capacity <= self.room
            && self.room > 0
    }

    /// Whether there is room for one block alone.
    pub fn has_one_block(&self) -> bool {
        self.room == 1
    }

    /// Bytes of the blocks for which there is room.
    pub fn bytes(&self) -> Option<u64> {
        self.block.checked_mul(self.room)
    }
}

/// A page that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Page {
    /// Blocks that were ever used.
    pub blocks: Listed,
    /// Blocks for which there is room.
    pub room: u64,
}

/// The page at `from`, with its descriptor at `place`: `None` if it changes all the time.
pub(super) fn read(
    image: &mut Image<'_>,
    place: u64,
    from: u64,
    layout: &Layout,
) -> Result<Option<Page>, Unread> {
    read_by(image, from, |image| {
        let page = Descriptor::read(image, place, layout)?;
        Ok((page, from + page.slices * SLICE))
    })
}

/// The page at `from`; `describe` reads its descriptor and where it ends.
pub(super) fn read_by(
    image: &mut Image<'_>,
    from: u64,
    describe: impl Fn(&Image<'_>) -> Result<(Descriptor, u64), Hole>,
) -> Result<Option<Page>, Unread> {
    for _ in 0..LOOKS {
        let (page, end) = describe(image)?;
        let starts = match page.start {
            Some(start) => [start; 2],
            None => starts(page.block).map(|offset| from + offset),
        };
        // A single block has nothing to be read in it.
        if page.capacity > 1 {
            image.load(from, end - from);
        }
        for start in starts {
            match blocks(image, &page, start, end) {
                Err(Hole::Swapped) => return Err(Unread::Swapped),
                Err(Hole::Refused) => return Err(Unread::NotAllowed),
                Ok(Some(found)) => return Ok(Some(found)),
                Ok(None) | Err(Hole::Absent) => {}
            }
        }
        image.forget();
    }
    Ok(None)
}

/// The blocks of a page, if its lists and counts agree with a first block at `start`.
fn blocks(
    image: &mut Image<'_>,
    page: &Descriptor,
    start: u64,
    end: u64,
) -> Result<Option<Page>, Hole> {
    let block = page.block;
    let fits = start < end && (page.room == 1 || page.room * block <= end - start);
    if block < 8 || page.capacity > page.room || !fits {
        return Ok(None);
    }
    let size = match page.room {
        1 => block.min(end - start),
        _ => block,
    };
    let mut blocks = Listed::new(start, size, page.capacity);
    let mut by_owner = 0;
    for (number, list) in page.lists.into_iter().enumerate() {
        let is_others = number == 2;
        // Two bits of the list of other threads are flags.
        let list = if is_others { list & !3 } else { list };
        let Some(count) = blocks.follow(list, image)? else {
            return Ok(None);
        };
        by_owner += if is_others { 0 } else { count };
    }
    let is_sound = page.used + by_owner == page.capacity;
    Ok(is_sound.then_some(Page {
        blocks,
        room: page.room,
    }))
}
