//! Memory of processes that never ran, for tests of readers.

use super::{AllocatorReader, HeapsRead, Image, Source};
use pagewise_linux::proc::MapsEntry;
use pagewise_model::address_space::Mapping;
use pagewise_model::memory::{PageRun, PageState, Presence, Tile, TileSink};
use std::collections::BTreeMap;
use std::io;

/// Words by address; all others are 0.
#[derive(Default)]
pub(super) struct Memory(pub BTreeMap<u64, u64>);

impl Source for Memory {
    fn read(&self, address: u64, into: &mut [u8]) -> io::Result<()> {
        for (bytes, place) in into.chunks_exact_mut(8).zip(0_u64..) {
            let word = self.0.get(&(address + 8 * place)).copied();
            bytes.copy_from_slice(&word.unwrap_or(0).to_le_bytes());
        }
        Ok(())
    }
}

/// Tiles of all extents, and how often one was found right.
#[derive(Default)]
pub(super) struct Tiles {
    pub all: Vec<Tile>,
    pub right: usize,
    finished: usize,
}

impl TileSink for Tiles {
    fn start(&mut self, _: u64) {
        // What was not finished is read again.
        self.all.truncate(self.finished);
    }

    fn tile(&mut self, tile: Tile) {
        self.all.push(tile);
    }

    fn finish(&mut self, is_right: bool) {
        match is_right {
            true => {
                self.right += 1;
                self.finished = self.all.len();
            }
            false => self.all.truncate(self.finished),
        }
    }
}

impl Memory {
    /// Writes a word.
    pub fn put(&mut self, address: u64, word: u64) {
        self.0.insert(address, word);
    }

    /// What `reader` finds where these ranges are mapped, by path, and present as a whole.
    pub fn read_by(
        &self,
        reader: &dyn AllocatorReader,
        mappings: &[(u64, u64, &str)],
    ) -> (HeapsRead, Tiles) {
        let run = |&(start, end, _): &(u64, u64, &str)| PageRun {
            start,
            end,
            state: PageState::Anonymous,
        };
        let presence = Presence::new(mappings.iter().map(run).collect());
        let maps: Vec<MapsEntry> = mappings
            .iter()
            .map(|&(start, end, path)| entry(start, end, path))
            .collect();
        let mut tiles = Tiles::default();
        let found = reader.read(&maps, &mut Image::new(self, &presence, 4096), &mut tiles);
        (found, tiles)
    }
}

/// A mapping that can be written.
pub(super) fn entry(start: u64, end: u64, path: &str) -> MapsEntry {
    MapsEntry {
        mapping: Mapping {
            start,
            end,
            file_offset: 0,
            protection: 3,
            flags: 0x22,
            path: path.into(),
            build_id: None,
            file: None,
        },
        device: (0, 0),
        inode: 0,
    }
}
