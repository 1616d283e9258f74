use super::super::{Image, Source};
use super::*;
use pagewise_model::address_space::Mapping;
use pagewise_model::memory::{PageRun, PageState, Presence};
use std::collections::BTreeMap;
use std::io;

const DATA: u64 = 0x5000_0000;
const HEAP: u64 = 0x6000_0000;
/// Not a multiple of a pool's size: the arena has one pool less.
const ARENA: u64 = 0x7f00_0000_1000;
const SIZE: u64 = 1 << 20;
const POOL: u64 = 16 << 10;

#[derive(Default)]
struct Fake(BTreeMap<u64, u64>);

impl Source for Fake {
    fn read(&self, address: u64, into: &mut [u8]) -> io::Result<()> {
        for (bytes, place) in into.chunks_exact_mut(8).zip(0_u64..) {
            let word = self.0.get(&(address + 8 * place)).copied();
            bytes.copy_from_slice(&word.unwrap_or(0).to_le_bytes());
        }
        Ok(())
    }
}

#[derive(Default)]
struct Sum(Vec<Tile>, bool);

impl TileSink for Sum {
    fn start(&mut self, _: u64) {
        self.0.clear();
    }
    fn tile(&mut self, tile: Tile) {
        self.0.push(tile);
    }
    fn finish(&mut self, is_right: bool) {
        self.1 = is_right;
    }
}

fn entry(start: u64, end: u64, path: &str) -> MapsEntry {
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

/// Third entry of the array: three pools, of which the second is empty; 60 pools are fresh.
fn interpreter() -> Fake {
    let mut fake = Fake::default();
    let mut put = |address: u64, word: u64| fake.0.insert(address, word);
    put(DATA + 0x100, HEAP + 0x40);
    let first = ARENA.next_multiple_of(POOL);
    let place = HEAP + 0x40 + 2 * ENTRY;
    put(place, ARENA);
    put(place + 8, first + 3 * POOL);
    put(place + 16, 63 << 32 | 61);
    // Blocks of 512 bytes, 31 in a pool: ten were used, two of them are free again.
    for (pool, count, free) in [(first, 8, true), (first + 2 * POOL, 31, false)] {
        put(pool, count);
        put(pool + 32, 31 << 32 | 2);
        put(pool + 40, HEADER + 512 * if free { 10 } else { 31 });
        if free {
            put(pool + 8, pool + HEADER + 512);
            put(pool + HEADER + 512, pool + HEADER + 4 * 512);
        }
    }
    fake
}

fn read(fake: &Fake) -> (HeapsRead, Sum) {
    let ranges = [
        (DATA, DATA + 4096),
        (HEAP, HEAP + 4096),
        (ARENA, ARENA + SIZE),
    ];
    let run = |(start, end)| PageRun {
        start,
        end,
        state: PageState::Anonymous,
    };
    let presence = Presence::new(ranges.map(run).to_vec());
    let maps = [
        entry(DATA, DATA + 4096, "/usr/bin/python3.11"),
        entry(HEAP, HEAP + 4096, "[heap]"),
        entry(ARENA, ARENA + SIZE, "//anon"),
    ];
    let mut image = Image::new(fake, &presence, 4096);
    let mut sum = Sum::default();
    let found = Cpython.read(&maps, &mut image, &mut sum);
    (found, sum)
}

#[test]
fn blocks_and_pools_of_an_arena_add_up_to_it() {
    let (found, sum) = read(&interpreter());
    let heap = &found.heaps[0].heap;
    assert_eq!((heap.in_use, heap.blocks), (Bytes(39 * 512), 39));
    assert_eq!(heap.free, Bytes(23 * 512 + POOL));
    assert_eq!(heap.reserve, Bytes(60 * POOL));
    let of = |live: bool| -> u64 {
        let tiles = sum
            .0
            .iter()
            .filter(|tile| (tile.state == TileState::Live) == live);
        tiles.map(|tile| tile.length).sum()
    };
    assert_eq!((of(true), of(false)), (39 * 512, SIZE - 39 * 512));
    assert!(sum.1);
}

#[test]
fn an_arena_whose_counts_contradict_each_other_gives_no_figure() {
    let first = ARENA.next_multiple_of(POOL);
    let wrongs = [
        // One block more in use than the list leaves; a circle; one free pool less.
        (first, 9),
        (first + HEADER + 4 * 512, first + HEADER + 512),
        (HEAP + 0x40 + 2 * ENTRY + 16, 63 << 32 | 60),
    ];
    for (address, word) in wrongs {
        let mut fake = interpreter();
        fake.0.insert(address, word);
        let (found, sum) = read(&fake);
        assert!(found.heaps.is_empty() && !sum.1, "{address:x}");
        assert_eq!(found.unread, [(ARENA, ARENA + SIZE, Unread::Changed)]);
    }
}

#[test]
fn an_arena_that_names_another_place_in_the_array_is_none() {
    let mut fake = interpreter();
    let first = ARENA.next_multiple_of(POOL);
    fake.0.insert(first + 32, 31 << 32 | 3);
    assert_eq!(read(&fake).0, HeapsRead::default());
}
