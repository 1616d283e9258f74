use super::super::synthetic::{Memory, Tiles};
use super::*;
use pagewise_model::memory::HeapCheck;
use pagewise_model::units::Bytes;

const DATA: u64 = 0x40_0000;
const AREAS: u64 = 0x60_0000;
const OUTER: u64 = 0x7f00_0000_0000;
const BLOCK: u64 = 0x7f00_0100_0000;
const SECRET: u64 = 0x1234_5678_9abc_def1;
const LIBC: &str = "/lib/ld-musl-x86_64.so.1";

/// Writes descriptor `number`, whose group is at `start`.
fn describe(memory: &mut Memory, number: u64, start: u64, free: (u64, u64), rest: u64) {
    let place = AREAS + FIRST + DESCRIPTOR * number;
    memory.put(place + 16, start);
    memory.put(place + 24, free.0 | free.1 << 32);
    memory.put(place + 32, rest);
    memory.put(start, place);
}

/// A group of four slots of 1,344 bytes in two pages, of which one is free and one holds a group of seven
/// slots of 128 bytes with three free ones; a block with pages of its own.
fn process(flag: u64) -> Memory {
    let mut memory = Memory::default();
    memory.put(DATA + 0x80, SECRET);
    memory.put(DATA + 0x80 + flag, 1 | 7 << 32);
    memory.put(DATA + 0x80 + flag + HEAD, AREAS);
    memory.put(DATA + 0x80 + flag + TAIL, AREAS);
    let counts = DATA + 0x80 + flag + COUNTS;
    memory.put(counts + 8 * 21, 4);
    memory.put(counts + 8 * 7, 7);
    memory.put(AREAS, SECRET);
    memory.put(AREAS + 16, 101);
    describe(
        &mut memory,
        0,
        OUTER,
        (0b1000, 0),
        3 | 32 | 21 << 6 | 2 << 12,
    );
    let inner = OUTER + UNIT + 1344 + UNIT;
    describe(&mut memory, 2, inner, (0b11, 0b100), 6 | 32 | 7 << 6);
    describe(&mut memory, 5, BLOCK, (0, 0), ALONE << 6 | 50 << 12);
    memory
}

fn read(memory: &Memory) -> (HeapsRead, Tiles) {
    let mappings = [
        (DATA, DATA + 0x2000, LIBC),
        (AREAS, AREAS + PAGE, "[heap]"),
        (OUTER, OUTER + 2 * PAGE, "//anon"),
        (BLOCK, BLOCK + 50 * PAGE, "//anon"),
    ];
    memory.read_by(&Musl, &mappings)
}

#[test]
fn slots_of_groups_inside_groups_count_once() {
    for flag in FLAGS {
        let (found, tiles) = read(&process(flag));
        let heap = &found.heaps[0].heap;
        assert_eq!((heap.check, heap.count), (HeapCheck::Counter, 3));
        let in_use = 2 * 1344 + 4 * 128 + 50 * PAGE - UNIT;
        assert_eq!((heap.in_use, heap.blocks), (Bytes(in_use), 2 + 4 + 1));
        assert_eq!((heap.free, heap.free_blocks), (Bytes(1344 + 3 * 128), 4));
        let tiled: u64 = tiles.all.iter().map(|tile| tile.length).sum();
        assert_eq!(tiled, PAGE + 2 * PAGE + 50 * PAGE);
        let live = tiles.all.iter().filter(|tile| tile.state.is_live());
        assert_eq!(live.map(|tile| tile.length).sum::<u64>(), in_use);
    }
}

#[test]
fn slots_that_are_counted_otherwise_are_no_counter() {
    let mut memory = process(8);
    memory.put(DATA + 0x88 + COUNTS + 8 * 7, 6);
    assert_eq!(read(&memory).0.heaps[0].heap.check, HeapCheck::Filled);
}

#[test]
fn a_group_that_names_another_descriptor_gives_no_figure() {
    let mut memory = process(8);
    memory.put(BLOCK, AREAS + FIRST);
    let (found, _) = read(&memory);
    assert!(found.heaps.is_empty());
    assert_eq!(found.unread, [(0, u64::MAX, Unread::Changed)]);
}

#[test]
fn a_secret_that_no_area_has_is_none() {
    let mut memory = process(8);
    memory.put(AREAS, SECRET + 1);
    assert_eq!(read(&memory).0, HeapsRead::default());
}
