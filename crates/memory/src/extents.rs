//! From tiles of a heap to bytes on pages that are present.

use crate::draws::{Draw, Draws};
use pagewise_model::memory::{PageRun, PageState, Presence, Tile, TileSink, TileState};

/// Bytes of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageBytes {
    /// In memory.
    pub resident: u64,
    /// Swapped out.
    pub swapped: u64,
}

impl PageBytes {
    fn add(&mut self, bytes: u64, is_resident: bool) {
        match is_resident {
            true => self.resident += bytes,
            false => self.swapped += bytes,
        }
    }
}

impl std::ops::AddAssign for PageBytes {
    fn add_assign(&mut self, other: Self) {
        self.resident += other.resident;
        self.swapped += other.swapped;
    }
}

/// What the pages of a heap hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExtentSums {
    /// Blocks in use.
    pub live: PageBytes,
    /// Pages of zeros in huge pages, in blocks in use.
    pub zeros: PageBytes,
    /// Whole pages inside freed blocks.
    pub freed: PageBytes,
    /// The other bytes of freed blocks.
    pub pinned: PageBytes,
    /// The end of the heap.
    pub reserve: PageBytes,
    /// The part of it that is on whole pages of its own.
    pub reserve_pages: PageBytes,
    /// The allocator's own data.
    pub bookkeeping: PageBytes,
    /// What changed meanwhile.
    pub changed: PageBytes,
}

impl ExtentSums {
    /// All bytes.
    #[must_use]
    pub fn total(&self) -> PageBytes {
        let mut sum = self.live;
        for part in [
            self.zeros,
            self.freed,
            self.pinned,
            self.reserve,
            self.bookkeeping,
            self.changed,
        ] {
            sum += part;
        }
        sum
    }
}

impl std::ops::AddAssign for ExtentSums {
    fn add_assign(&mut self, other: Self) {
        self.live += other.live;
        self.zeros += other.zeros;
        self.freed += other.freed;
        self.pinned += other.pinned;
        self.reserve += other.reserve;
        self.reserve_pages += other.reserve_pages;
        self.bookkeeping += other.bookkeeping;
        self.changed += other.changed;
    }
}

/// A heap, or a part of one that is contiguous.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// First address.
    pub start: u64,
    /// First address after its last tile.
    pub end: u64,
    /// What it holds.
    pub sums: ExtentSums,
}

/// Bytes in a page, a power of two: blocks are put on pages by masks, since divisions would cost more than all else.
#[derive(Clone, Copy)]
struct PageSize(u64);

impl PageSize {
    fn new(bytes: u64) -> Self {
        Self(bytes.max(1).next_power_of_two())
    }

    fn bytes(self) -> u64 {
        self.0
    }

    /// Where the page of `address` starts.
    fn base(self, address: u64) -> u64 {
        address & !(self.0 - 1)
    }

    /// Where the page behind that of `address` starts.
    fn end(self, address: u64) -> u64 {
        self.base(address).saturating_add(self.0)
    }
}

/// Takes the tiles of heaps, one heap after the other.
pub struct Extents<'a> {
    presence: &'a Presence,
    page: PageSize,
    current: Option<Pages<'a>>,
    done: Vec<Extent>,
    live: Draws,
    pins: Draws,
}

/// What was seen of heaps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeapsSeen {
    /// The heaps that were found right, by address.
    pub extents: Vec<Extent>,
    /// Blocks in use, drawn by their resident bytes.
    pub live: Vec<Draw>,
    /// The smallest blocks in use of pages with free space, drawn by the bytes of that space.
    pub pins: Vec<Draw>,
}

impl<'a> Extents<'a> {
    /// No heaps yet, in a process with these pages of `page` bytes.
    #[must_use]
    pub fn new(presence: &'a Presence, page: u64) -> Self {
        Self {
            presence,
            page: PageSize::new(page),
            current: None,
            done: Vec::new(),
            live: Draws::default(),
            pins: Draws::default(),
        }
    }

    /// What was seen of the heaps that were found right.
    #[must_use]
    pub fn into_seen(mut self) -> HeapsSeen {
        self.done.sort_by_key(|extent| extent.start);
        let mut live = self.live.into_draws();
        let presence = self.presence;
        live.retain(|draw| {
            let run = presence.at(draw.at);
            run.is_some_and(|run| run.state.is_resident() && run.state != PageState::HugeZeros)
        });
        HeapsSeen {
            extents: self.done,
            live,
            pins: self.pins.into_draws(),
        }
    }

    /// Forgets what the present heap has drawn, if it is dropped.
    fn drop_draws(&mut self) {
        if self.current.take().is_some() {
            self.live.undo();
            self.pins.undo();
        }
    }
}

impl TileSink for Extents<'_> {
    fn start(&mut self, address: u64) {
        self.drop_draws();
        self.live.mark();
        self.pins.mark();
        self.current = Some(Pages::new(self.presence, self.page, address));
    }

    fn tile(&mut self, tile: Tile) {
        let Some(pages) = &mut self.current else {
            return;
        };
        pages.add(tile, &mut self.pins);
        if let TileState::Live { block } = tile.state {
            self.live
                .count(tile.length, |offset| block_at(tile, block, offset));
        }
    }

    fn finish(&mut self, is_right: bool) {
        match self.current.take_if(|_| is_right) {
            Some(pages) => self.done.push(pages.finish(&mut self.pins)),
            None => self.drop_draws(),
        }
    }
}

/// The block with the byte at `offset` of a tile.
fn block_at(tile: Tile, block: u64, offset: u64) -> Draw {
    let size = block.clamp(1, tile.length.max(1));
    Draw {
        block: tile.start + offset / size * size,
        size,
        at: tile.start + offset,
        of: size,
    }
}

/// Bytes of tiles on the page that is filled at present.
#[derive(Clone, Copy, Default)]
struct Shares {
    live: u64,
    free: u64,
    reserve: u64,
    bookkeeping: u64,
    changed: u64,
    /// The smallest block in use.
    smallest: Option<Draw>,
}

/// The pages of one heap, filled from its start to its end.
struct Pages<'a> {
    runs: &'a [PageRun],
    page: PageSize,
    start: u64,
    /// Where the next tile starts.
    at: u64,
    shares: Shares,
    sums: ExtentSums,
}

impl<'a> Pages<'a> {
    fn new(presence: &'a Presence, page: PageSize, start: u64) -> Self {
        let first = presence.first_after(start);
        Self {
            runs: presence.runs().get(first..).unwrap_or_default(),
            page,
            start,
            at: start,
            shares: Shares::default(),
            sums: ExtentSums::default(),
        }
    }

    fn add(&mut self, tile: Tile, pins: &mut Draws) {
        let end = tile.start.saturating_add(tile.length);
        let at = tile.start.max(self.at);
        if at >= end {
            return;
        }
        if self.page.base(at) != self.page.base(self.at) {
            self.close_page(pins);
        }
        self.at = at;
        let page_end = self.page.end(at);
        let is_page_start = self.page.base(at) == at;
        if end < page_end || (!is_page_start && end == page_end) {
            self.share(tile, end - at);
        } else {
            let first_whole = match is_page_start {
                true => at,
                false => page_end,
            };
            if !is_page_start {
                self.share(tile, first_whole - at);
                self.close_page(pins);
            }
            let last = self.page.base(end);
            self.at = first_whole;
            self.whole(tile, first_whole, last);
            self.at = last;
            if last < end {
                self.share(tile, end - last);
            }
        }
        self.at = end;
        if self.page.base(end) == end {
            self.at = end - 1;
            self.close_page(pins);
            self.at = end;
        }
    }

    /// Adds the next bytes of a tile to the page that several tiles fill.
    fn share(&mut self, tile: Tile, bytes: u64) {
        let shares = &mut self.shares;
        if let TileState::Live { block } = tile.state {
            let found = block_at(tile, block, self.at.saturating_sub(tile.start));
            let is_smaller = |known: Draw| found.size < known.size;
            if shares.smallest.is_none_or(is_smaller) {
                shares.smallest = Some(found);
            }
        }
        *match tile.state {
            TileState::Live { .. } => &mut shares.live,
            TileState::Free { .. } => &mut shares.free,
            TileState::Reserve { .. } => &mut shares.reserve,
            TileState::Bookkeeping => &mut shares.bookkeeping,
            TileState::Changed => &mut shares.changed,
        } += bytes;
    }

    /// Adds the shares of the page that contains `at`, which several tiles have filled.
    fn close_page(&mut self, pins: &mut Draws) {
        let shares = std::mem::take(&mut self.shares);
        let base = self.page.base(self.at);
        let Some(is_resident) = self.state_of(base) else {
            return;
        };
        self.sums.live.add(shares.live, is_resident);
        self.sums.pinned.add(shares.free, is_resident);
        self.sums.reserve.add(shares.reserve, is_resident);
        self.sums.bookkeeping.add(shares.bookkeeping, is_resident);
        self.sums.changed.add(shares.changed, is_resident);
        if let Some(smallest) = shares.smallest.filter(|_| is_resident) {
            let of = shares.free;
            pins.count(of, |_| Draw { of, ..smallest });
        }
    }

    /// Whether the page at `base` is resident (true) or swapped (false); `None` if it is absent.
    fn state_of(&mut self, base: u64) -> Option<bool> {
        self.skip_to(base);
        let run = self.runs.first()?;
        (run.start <= base).then(|| run.state.is_resident())
    }

    /// Forgets the runs that end at or before `address`.
    fn skip_to(&mut self, address: u64) {
        while let Some((first, rest)) = self.runs.split_first()
            && first.end <= address
        {
            self.runs = rest;
        }
    }

    /// Adds pages that belong to one tile alone.
    fn whole(&mut self, tile: Tile, start: u64, end: u64) {
        let kept = match tile.state {
            TileState::Free { kept } | TileState::Reserve { kept } => kept,
            TileState::Live { .. } | TileState::Bookkeeping | TileState::Changed => 0,
        };
        let free_from = tile
            .start
            .saturating_add(kept)
            .checked_next_multiple_of(self.page.bytes())
            .unwrap_or(end)
            .clamp(start, end.max(start));
        let mut at = start;
        while at < end {
            self.skip_to(at);
            let Some(run) = self.runs.first() else {
                return;
            };
            let (from, to) = (run.start.max(at), run.end.min(end));
            if from >= to {
                return;
            }
            let is_resident = run.state.is_resident();
            let behind = to.saturating_sub(from.max(free_from));
            let sums = &mut self.sums;
            match tile.state {
                TileState::Live { .. } if run.state == PageState::HugeZeros => {
                    sums.zeros.add(to - from, is_resident);
                }
                TileState::Live { .. } => sums.live.add(to - from, is_resident),
                TileState::Bookkeeping => sums.bookkeeping.add(to - from, is_resident),
                TileState::Changed => sums.changed.add(to - from, is_resident),
                TileState::Free { .. } => {
                    sums.freed.add(behind, is_resident);
                    sums.pinned.add(to - from - behind, is_resident);
                }
                TileState::Reserve { .. } => {
                    sums.reserve.add(to - from, is_resident);
                    sums.reserve_pages.add(behind, is_resident);
                }
            }
            at = to;
        }
    }

    fn finish(mut self, pins: &mut Draws) -> Extent {
        let end = self.at;
        if self.page.base(end) != end {
            self.close_page(pins);
        }
        Extent {
            start: self.start,
            end,
            sums: self.sums,
        }
    }
}

#[cfg(test)]
mod tests;
