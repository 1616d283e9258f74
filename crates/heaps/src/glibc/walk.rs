//! From one block of a heap to the next, while the program may change them.
//!
//! A heap is walked in pieces. A piece in which headers contradict each other is read again, from the
//! block that ended the piece before. If that does not help, the walk goes on at the next place from
//! which blocks follow each other, and what is between counts as changed.

use super::super::Image;
use super::caches::may_be_cache;
use super::chunks::{
    ALIGNMENT, Area, Broken, Ending, FLAGS, FastBlocks, SMALLEST, Step, Walk, step, top,
};
use pagewise_model::memory::{PageState, Tile, TileState};

/// Bytes after which a piece ends with the block that is reached.
const PIECE: u64 = 256 << 10;
/// How often a piece is read.
const LOOKS: usize = 4;
/// Blocks that must follow each other where a walk goes on. What the program wrote looks like headers
/// by chance once or twice.
const FOLLOWING: usize = 16;
/// Most places at which a walk breaks, and the part of a heap (1 in so many) that may be lost by it.
const MOST_BREAKS: u32 = 1 << 14;
const MAY_BE_LOST: u64 = 2;

/// Receives blocks in order of address.
trait Visit {
    /// The next block.
    fn block(&mut self, image: &mut Image<'_>, block: Block);
    /// Blocks from `at` on are void.
    fn back_to(&mut self, at: u64);
    /// Blocks so far are right.
    fn keep(&mut self);
    /// Here blocks could not be found.
    fn changed(&mut self, start: u64, end: u64);
    /// The heap ends with what is at `at`.
    fn end(&mut self, at: u64, ending: Ending);
}

/// A block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Block {
    at: u64,
    size: u64,
    is_free: bool,
}

/// Walks through the heap. The blocks in `fast` are free.
///
/// # Errors
/// If too little of it is readable as blocks, or a header is swapped out.
pub(super) fn walk(
    image: &mut Image<'_>,
    area: &Area,
    fast: &FastBlocks,
    each: &mut dyn FnMut(Tile),
) -> Result<Walk, Broken> {
    let begin = fast.blocks.partition_point(|block| *block < area.first);
    let mut tiles = Tiles {
        end: area.end,
        blocks: Vec::new(),
        caches: Vec::new(),
        fast: fast.blocks.get(begin..).unwrap_or_default(),
        free_from: None,
        walk: Walk::default(),
        each,
    };
    follow(image, area, &mut tiles)?;
    Ok(tiles.walk)
}

/// Calls `each` with address and size of all blocks that look in use. What it returns for blocks that
/// were right in the end is collected.
pub(super) fn noted<T>(
    image: &mut Image<'_>,
    area: &Area,
    most: usize,
    each: impl FnMut(&mut Image<'_>, u64, u64) -> Option<T>,
) -> Result<Vec<(u64, T)>, Broken> {
    let mut notes = Notes {
        most,
        noted: Vec::new(),
        each,
    };
    follow(image, area, &mut notes)?;
    Ok(notes.noted)
}

fn follow(image: &mut Image<'_>, area: &Area, visit: &mut impl Visit) -> Result<(), Broken> {
    let mut at = area.first;
    let (mut breaks, mut lost) = (0, 0);
    loop {
        match looked_at(image, area, at, visit) {
            Ok(Stop::Reached(next)) => {
                visit.keep();
                at = next;
            }
            Ok(Stop::Ended(at, ending)) => {
                visit.keep();
                visit.end(at, ending);
                return Ok(());
            }
            Err(Failed { broken, place, why }) => {
                if matches!(why, Broken::Swapped | Broken::Refused) {
                    return Err(why);
                }
                // The heap shrank, and nothing is behind its last block any more.
                if top(image, area) == Some(broken) {
                    visit.keep();
                    visit.end(broken, Ending::Top);
                    return Ok(());
                }
                visit.back_to(place);
                visit.keep();
                let most = (area.end - area.first) / MAY_BE_LOST - lost;
                let next = goes_on(image, area, place, most)?;
                breaks += 1;
                lost += next - place;
                if breaks > MOST_BREAKS {
                    return Err(why);
                }
                visit.changed(place, next);
                if next == area.end {
                    visit.end(next, Ending::Changed);
                    return Ok(());
                }
                at = next;
            }
        }
    }
}

/// Where a piece stops.
enum Stop {
    Reached(u64),
    Ended(u64, Ending),
}

/// Where headers contradict each other, and the block before, whose own may be the wrong one.
struct Failed {
    broken: u64,
    place: u64,
    why: Broken,
}

/// The piece from `from` on, read again where its headers contradict each other.
fn looked_at(
    image: &mut Image<'_>,
    area: &Area,
    from: u64,
    visit: &mut impl Visit,
) -> Result<Stop, Failed> {
    let mut outcome = piece(image, area, from, visit);
    for _ in 1..LOOKS {
        match outcome {
            Err(Failed {
                why: Broken::Layout | Broken::Absent,
                ..
            }) => {}
            _ => break,
        }
        visit.back_to(from);
        image.forget();
        outcome = piece(image, area, from, visit);
    }
    outcome
}

fn piece(
    image: &mut Image<'_>,
    area: &Area,
    from: u64,
    visit: &mut impl Visit,
) -> Result<Stop, Failed> {
    let (mut at, mut last) = (from, from);
    while at - from < PIECE {
        match step(image, at, area) {
            Ok(Step::Block { size, is_free }) => {
                visit.block(image, Block { at, size, is_free });
                last = at;
                at += size;
            }
            Ok(Step::Top) => return Ok(Stop::Ended(at, Ending::Top)),
            Ok(Step::Fence) => return Ok(Stop::Ended(at, Ending::Fence)),
            Ok(Step::Grown) => return Ok(Stop::Ended(at, Ending::Grown)),
            Err(why) => {
                return Err(Failed {
                    broken: at,
                    place: last,
                    why,
                });
            }
        }
    }
    Ok(Stop::Reached(at))
}

/// The first place behind `broken` from which blocks follow each other, or the end of the heap.
///
/// # Errors
/// If there is none within `most` bytes.
fn goes_on(image: &mut Image<'_>, area: &Area, broken: u64, most: u64) -> Result<u64, Broken> {
    image.forget();
    let last = top(image, area).filter(|top| *top < area.end);
    let end = match last {
        // It shrank meanwhile.
        Some(top) if top < broken => return within(area.end, broken, most),
        Some(top) => top,
        None => area.end,
    };
    let runs: Vec<_> = image.presence().within(broken, end).collect();
    for run in runs {
        if run.state == PageState::Swapped {
            continue;
        }
        let first = run.start.max(broken + ALIGNMENT);
        for at in (first..run.end).step_by(16) {
            if at - broken > most {
                return Err(Broken::Layout);
            }
            if follow_each_other(image, area, at) {
                return Ok(at);
            }
        }
    }
    within(end, broken, most)
}

fn within(place: u64, from: u64, most: u64) -> Result<u64, Broken> {
    match place - from <= most {
        true => Ok(place),
        false => Err(Broken::Layout),
    }
}

fn follow_each_other(image: &mut Image<'_>, area: &Area, first: u64) -> bool {
    // Most places are ruled out by one word.
    let is_size = |word: u64| (SMALLEST..area.end - first).contains(&(word & !FLAGS));
    if !image.word(first + 8).is_ok_and(is_size) {
        return false;
    }
    let mut at = first;
    for _ in 0..FOLLOWING {
        match step(image, at, area) {
            Ok(Step::Block { size, .. }) => at += size,
            Ok(Step::Top | Step::Fence | Step::Grown) => return true,
            Err(_) => return false,
        }
    }
    true
}

/// Makes tiles and sums of the blocks of a piece, once it is right.
struct Tiles<'a> {
    end: u64,
    blocks: Vec<Block>,
    /// Those of them that may hold a thread's cache.
    caches: Vec<u64>,
    /// Blocks in fastbins that are yet to come.
    fast: &'a [u64],
    /// Where the free blocks that end at the next one start.
    free_from: Option<u64>,
    walk: Walk,
    each: &'a mut dyn FnMut(Tile),
}

impl Tiles<'_> {
    /// The free blocks that end at `at` are one.
    fn close_free(&mut self, at: u64) {
        if let Some(start) = self.free_from.take() {
            (self.each)(self.walk.freed(start, at - start));
        }
    }

    fn plain(&mut self, start: u64, end: u64, state: TileState) {
        (self.each)(Tile {
            start,
            length: end - start,
            state,
        });
    }
}

impl Visit for Tiles<'_> {
    fn block(&mut self, image: &mut Image<'_>, block: Block) {
        if !block.is_free && may_be_cache(image, block.at, block.size) {
            self.caches.push(block.at);
        }
        self.blocks.push(block);
    }

    fn back_to(&mut self, at: u64) {
        let kept = self.blocks.partition_point(|block| block.at < at);
        self.blocks.truncate(kept);
        let kept = self.caches.partition_point(|block| *block < at);
        self.caches.truncate(kept);
    }

    fn keep(&mut self) {
        for block in self.caches.drain(..) {
            self.walk.may_be_cache(block);
        }
        let mut blocks = std::mem::take(&mut self.blocks);
        for block in blocks.drain(..) {
            while let Some((first, rest)) = self.fast.split_first()
                && *first < block.at
            {
                self.fast = rest;
            }
            let is_fast = self.fast.first() == Some(&block.at);
            if block.is_free || is_fast {
                self.walk.fast += if block.is_free { 0 } else { block.size };
                self.free_from.get_or_insert(block.at);
                continue;
            }
            self.close_free(block.at);
            (self.each)(self.walk.used(block.at, block.size));
        }
        self.blocks = blocks;
    }

    fn changed(&mut self, start: u64, end: u64) {
        self.close_free(start);
        self.walk.changed += end - start;
        self.plain(start, end, TileState::Changed);
    }

    fn end(&mut self, at: u64, ending: Ending) {
        self.walk.ending = ending;
        if ending == Ending::Top {
            // The last block takes in the free ones before it.
            let start = self.free_from.take().unwrap_or(at);
            (self.each)(self.walk.ended(start, at, self.end));
            return;
        }
        self.close_free(at);
        match ending {
            Ending::Fence => self.plain(at, self.end, TileState::Bookkeeping),
            Ending::Grown => (self.each)(self.walk.used(at, self.end - at)),
            Ending::Top | Ending::Changed => {}
        }
    }
}

/// What was noted of blocks in use.
struct Notes<T, F> {
    most: usize,
    noted: Vec<(u64, T)>,
    each: F,
}

impl<T, F> Visit for Notes<T, F>
where
    F: FnMut(&mut Image<'_>, u64, u64) -> Option<T>,
{
    fn block(&mut self, image: &mut Image<'_>, block: Block) {
        if block.is_free || self.noted.len() >= self.most {
            return;
        }
        let noted = (self.each)(image, block.at, block.size);
        self.noted.extend(noted.map(|note| (block.at, note)));
    }

    fn back_to(&mut self, at: u64) {
        let kept = self.noted.partition_point(|noted| noted.0 < at);
        self.noted.truncate(kept);
    }

    fn keep(&mut self) {}

    fn changed(&mut self, _: u64, _: u64) {}

    fn end(&mut self, _: u64, _: Ending) {}
}
