use super::super::synthetic::{Memory, Tiles};
use super::array::ENTRY;
use super::pools::HEADER;
use super::*;
use pagewise_model::memory::TileState;

const DATA: u64 = 0x5000_0000;
const HEAP: u64 = 0x6000_0000;
/// Not a multiple of a pool's size: the arena has one pool less.
const ARENA: u64 = 0x7f00_0000_1000;
const SIZE: u64 = 1 << 20;
const POOL: u64 = 16 << 10;

/// Third entry of the array: three pools, of which the second is empty; 60 pools are fresh.
fn interpreter() -> Memory {
    let mut fake = Memory::default();
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

fn read(fake: &Memory) -> (HeapsRead, Tiles) {
    let mappings = [
        (DATA, DATA + 4096, "/usr/bin/python3.11"),
        (HEAP, HEAP + 4096, "[heap]"),
        (ARENA, ARENA + SIZE, "//anon"),
    ];
    fake.read_by(&Cpython, &mappings)
}

#[test]
fn blocks_and_pools_of_an_arena_add_up_to_it() {
    let (found, sum) = read(&interpreter());
    let heap = &found.heaps[0].heap;
    assert_eq!((heap.in_use, heap.blocks), (Bytes(39 * 512), 39));
    assert_eq!(heap.free, Bytes(23 * 512 + POOL));
    assert_eq!(heap.reserve, Bytes(60 * POOL));
    let of = |live: bool| -> u64 {
        let tiles = sum.all.iter().filter(|tile| tile.state.is_live() == live);
        tiles.map(|tile| tile.length).sum()
    };
    assert_eq!((of(true), of(false)), (39 * 512, SIZE - 39 * 512));
    assert_eq!(sum.right, 1);
}

#[test]
fn a_pool_that_contradicts_itself_is_a_share_of_its_own() {
    let first = ARENA.next_multiple_of(POOL);
    // One block more in use than the list leaves; a circle.
    let wrongs = [(first, 9), (first + HEADER + 4 * 512, first + HEADER + 512)];
    for (address, word) in wrongs {
        let mut fake = interpreter();
        fake.0.insert(address, word);
        let (found, sum) = read(&fake);
        let heap = &found.heaps[0].heap;
        assert_eq!((heap.changed, heap.check), (Bytes(POOL), HeapCheck::Filled));
        assert_eq!((heap.in_use, heap.blocks), (Bytes(31 * 512), 31));
        let changed = sum
            .all
            .iter()
            .filter(|tile| tile.state == TileState::Changed);
        assert_eq!(changed.map(|tile| tile.length).sum::<u64>(), POOL);
    }
}

#[test]
fn another_count_of_free_pools_is_no_counter() {
    let mut fake = interpreter();
    let place = HEAP + 0x40 + 2 * ENTRY + 16;
    fake.0.insert(place, 63 << 32 | 60);
    let (found, _) = read(&fake);
    assert_eq!(found.heaps[0].heap.check, HeapCheck::Filled);
}

#[test]
fn an_arena_that_is_mapped_later_hides_none_behind_it() {
    let mut fake = interpreter();
    // The array is a block of malloc with room for five entries.
    fake.0.insert(HEAP + 0x38, (5 * ENTRY + 16) | 1);
    let place = HEAP + 0x40 + 2 * ENTRY;
    let entry = [0, 8, 16].map(|at| fake.0[&(place + at)]);
    let later = 0x7e00_0000_0000;
    for (at, word) in [(0, later), (8, later + POOL), (16, 64 << 32 | 63)] {
        fake.0.insert(place + ENTRY + at, word);
    }
    let second = ARENA + SIZE;
    for (at, word) in [0, 8, 16].into_iter().zip(entry) {
        let moved = if at == 16 { word } else { word + SIZE };
        fake.0.insert(place + 2 * ENTRY + at, moved);
    }
    let first = second.next_multiple_of(POOL);
    fake.0.insert(first + 32, 31 << 32 | 4);
    let mappings = [
        (DATA, DATA + 4096, "/usr/bin/python3.11"),
        (HEAP, HEAP + 4096, "[heap]"),
        (ARENA, ARENA + 2 * SIZE, "//anon"),
    ];
    let (found, _) = fake.read_by(&Cpython, &mappings);
    assert_eq!(found.heaps[0].heap.count, 2);
}

#[test]
fn an_arena_that_names_another_place_in_the_array_is_none() {
    let mut fake = interpreter();
    let first = ARENA.next_multiple_of(POOL);
    fake.0.insert(first + 32, 31 << 32 | 3);
    assert_eq!(read(&fake).0, HeapsRead::default());
}
