use super::super::synthetic::{Memory, Tiles};
use super::*;
use pagewise_model::memory::TileState;
use pagewise_model::units::Bytes;

const DATA: u64 = 0x5000_0000;
const ROOT: u64 = DATA + 0x40;
/// In the first GiB, so that the root's elements are in one page of variables.
const HEAP: u64 = 0x4000_0000;
const BASE: u64 = 0x6000_0000;
const LEAF: u64 = BASE + 0x1000;
const EXTENTS: u64 = BASE + 0x20_1000;

/// A slab of 8 blocks of 512 bytes with three free ones, a large block of 16 KiB with the page that
/// varies its start, and twenty freed pages, as version 5.3 describes them.
fn program() -> Memory {
    let mut memory = Memory::default();
    memory.put(ROOT + 8 * (HEAP >> 30), LEAF);
    memory.put(BASE, 4 << 20);
    memory.put(BASE + 24, BASE + 0x3000);
    let mut put = |number: u64, page: u64, pages: u64, bits: u64, leaf: u64| {
        let place = EXTENTS + 128 * number;
        memory.put(place, bits);
        memory.put(place + 8, HEAP + page * PAGE);
        memory.put(place + 16, (pages * PAGE) | 7);
        for at in [page, page + pages - 1] {
            memory.put(LEAF + 8 * at, place | leaf);
        }
    };
    put(0, 0, 1, 3 << 28 | 16 << 20 | IS_SLAB, 16 << 48 | 1);
    put(1, 1, 5, 36 << 20, 36 << 48);
    // Freed: the map still has the class of its last use, and inside what was there before.
    put(2, 6, 20, 1 << 17 | 232 << 20, 20 << 48 | 1 << 2 | 1);
    for page in 7..25 {
        memory.put(LEAF + 8 * page, EXTENTS | 16 << 48 | 1);
    }
    memory.put(EXTENTS + 64, 0b1000_0110);
    memory
}

const IS_SLAB: u64 = 1 << 12;

fn read(memory: &Memory) -> (HeapsRead, Tiles) {
    let mappings = [
        (HEAP, HEAP + 8 * PAGE, "//anon"),
        (DATA, DATA + 0x1000, "/usr/lib/libjemalloc.so.2"),
        (BASE, BASE + (4 << 20), "//anon"),
    ];
    memory.read_by(&Jemalloc, &mappings)
}

#[test]
fn extents_are_read_through_the_map_of_pages() {
    let (found, tiles) = read(&program());
    assert_eq!(found.unread, []);
    let heap = &found.heaps[0].heap;
    assert_eq!((heap.in_use, heap.blocks), (Bytes(5 * 512 + 16384), 6));
    assert_eq!(
        (heap.free, heap.free_blocks),
        (Bytes(3 * 512 + 20 * PAGE), 4)
    );
    let of = |test: fn(&TileState) -> bool| -> u64 {
        let tiles = tiles.all.iter().filter(|tile| test(&tile.state));
        tiles.map(|tile| tile.length).sum()
    };
    assert_eq!(of(|state| state.is_live()), 5 * 512 + 5 * PAGE);
    assert_eq!(of(|state| *state == TileState::Free { kept: 0 }), 20 * PAGE);
    assert_eq!(of(|state| *state == TileState::Bookkeeping), 4 << 20);
}

#[test]
fn a_slab_whose_bitmap_and_count_differ_gives_no_figure() {
    let mut memory = program();
    memory.put(EXTENTS + 64, 0b1000_0111);
    let (found, _) = read(&memory);
    assert!(found.heaps.is_empty());
    assert_eq!(found.unread, [(HEAP, HEAP + PAGE, Unread::Changed)]);
}

#[test]
fn freed_extents_do_not_decide_about_the_version() {
    let mut memory = program();
    // More of them than extents in use: version 5.2 has them as muzzy, 5.0 as retained.
    for number in 3..40 {
        let (place, page) = (EXTENTS + 128 * number, 26 + number);
        memory.put(place, 1 << 17 | 232 << 20);
        memory.put(place + 8, HEAP + page * PAGE);
        memory.put(place + 16, PAGE);
        memory.put(LEAF + 8 * page, place | 1 << 2);
    }
    let (found, _) = read(&memory);
    assert_eq!(found.heaps[0].heap.blocks, 6);
}
