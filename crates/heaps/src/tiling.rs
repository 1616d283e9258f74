//! Tiles of allocators that cut areas into blocks of one size.

use pagewise_model::memory::{Tile, TileSink, TileState};

/// Passes tiles on by address, as extents without a gap.
pub(super) struct Tiling<'a> {
    sink: &'a mut dyn TileSink,
    end: Option<u64>,
    starts: Vec<u64>,
}

impl<'a> Tiling<'a> {
    /// No tiles yet.
    pub fn new(sink: &'a mut dyn TileSink) -> Self {
        Self {
            sink,
            end: None,
            starts: Vec::new(),
        }
    }

    /// The next tile: behind the last one, or after a gap.
    pub fn tile(&mut self, start: u64, length: u64, state: TileState) {
        if length == 0 {
            return;
        }
        if self.end != Some(start) {
            self.close();
            self.sink.start(start);
            self.starts.push(start);
        }
        self.sink.tile(Tile {
            start,
            length,
            state,
        });
        self.end = Some(start + length);
    }

    /// `count` blocks of `size` bytes from `start` on. Neighbours of one state become one tile. A
    /// free block stays where it is: its pages go back only with the whole area.
    pub fn blocks(&mut self, start: u64, size: u64, count: u64, is_free: impl Fn(u64) -> bool) {
        let mut first = 0;
        while first < count {
            let free = is_free(first);
            let mut behind = first + 1;
            while behind < count && is_free(behind) == free {
                behind += 1;
            }
            let length = (behind - first) * size;
            let state = match free {
                true => TileState::Free { kept: length },
                false => TileState::Live { block: size },
            };
            self.tile(start + first * size, length, state);
            first = behind;
        }
    }

    /// Where the extents start.
    pub fn finish(mut self) -> Vec<u64> {
        self.close();
        self.starts
    }

    fn close(&mut self) {
        if self.end.take().is_some() {
            self.sink.finish(true);
        }
    }
}
