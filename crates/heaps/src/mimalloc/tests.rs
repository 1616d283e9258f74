use super::super::synthetic::{Memory, Tiles};
use super::*;
use layout::Page;
use pagewise_model::memory::HeapCheck;
use pagewise_model::units::Bytes;

const START: u64 = 0x2_0000_0000;
const BLOCK: u64 = 1024;

/// Writes the descriptor of the page from `slice` on: counts of blocks (used ever, room, in use), the size
/// of each, and the lists of free ones.
fn describe(
    memory: &mut Memory,
    layout: &Layout,
    (slice, slices): (u64, u64),
    (capacity, room, used): (u64, u64, u64),
    block: u64,
    lists: [u64; 3],
) {
    let place = START + layout.first + layout.stride * slice;
    let mut words = [0; 8];
    words[0] = slices;
    words[1] = capacity << 16 | room << 32;
    words[2] = lists[0];
    match layout.page {
        Page::Old => {
            words[3] = used | block << 32;
            words[4] = lists[1];
            words[5] = lists[2];
        }
        Page::New => {
            words[3] = lists[1];
            words[4] = used;
            words[5] = block;
            words[6] = START + slice * SLICE;
            words[7] = lists[2];
        }
    }
    for (word, at) in words.into_iter().zip(0_u64..) {
        memory.put(place + 8 * at, word);
    }
}

/// A segment whose head has one slice: a page of 10 blocks, of which one is free, another was freed by
/// another thread, and three were never used; a block of 1 MiB; and free slices.
fn process(layout: &Layout) -> Memory {
    let mut memory = Memory::default();
    memory.put(START + layout.slices, SLICES);
    memory.put(START + layout.head, 1);
    memory.put(START + layout.entries, SLICES);
    describe(&mut memory, layout, (0, 1), (0, 0, 0), 0, [0; 3]);
    let first = START + SLICE + if layout.page == Page::Old { 384 } else { 0 };
    let lists = [first + 2 * BLOCK, 0, (first + 5 * BLOCK) | 1];
    describe(&mut memory, layout, (1, 1), (7, 10, 6), BLOCK, lists);
    describe(&mut memory, layout, (2, 16), (1, 1, 1), 1 << 20, [0; 3]);
    describe(&mut memory, layout, (18, SLICES - 18), (0, 0, 0), 0, [0; 3]);
    memory
}

fn read(memory: &Memory) -> (HeapsRead, Tiles) {
    memory.read_by(&Mimalloc, &[(START, START + SEGMENT, "//anon")])
}

#[test]
fn blocks_of_pages_and_free_slices_fill_a_segment() {
    for layout in &LAYOUTS {
        let memory = process(layout);
        let (found, tiles) = read(&memory);
        let heap = &found.heaps[0].heap;
        assert_eq!((heap.check, heap.count), (HeapCheck::Counter, 1));
        assert_eq!(heap.in_use, Bytes(5 * BLOCK + (1 << 20)), "{layout:?}");
        assert_eq!(heap.blocks, 6);
        assert_eq!(heap.free, Bytes(2 * BLOCK + (SLICES - 18) * SLICE));
        assert_eq!(heap.reserve, Bytes(3 * BLOCK));
        assert_eq!(found.heaps[0].returns, Returns::Nothing);
        let tiled: u64 = tiles.all.iter().map(|tile| tile.length).sum();
        assert_eq!(tiled, SEGMENT);
    }
}

#[test]
fn a_page_whose_lists_contradict_its_counts_has_changed() {
    for layout in &LAYOUTS {
        let first = START + SLICE + if layout.page == Page::Old { 384 } else { 0 };
        // A list that leads between two blocks, and one in a circle.
        for link in [first + 3 * BLOCK + 8, first + 2 * BLOCK] {
            let mut memory = process(layout);
            memory.put(first + 2 * BLOCK, link);
            let (found, tiles) = read(&memory);
            let heap = &found.heaps[0].heap;
            assert_eq!(
                (heap.check, heap.changed),
                (HeapCheck::Filled, Bytes(SLICE))
            );
            assert_eq!(heap.in_use, Bytes(1 << 20));
            let tiled: u64 = tiles.all.iter().map(|tile| tile.length).sum();
            assert_eq!(tiled, SEGMENT);
        }
    }
}

#[test]
fn slices_that_leave_a_gap_are_no_segment() {
    for layout in &LAYOUTS {
        let mut memory = process(layout);
        memory.put(START + layout.first + 2 * layout.stride, 15);
        assert_eq!(read(&memory).0, HeapsRead::default());
    }
}

/// An arena of mimalloc 3 with a head of one slice: a page of 10 blocks, of which one is free, another was
/// freed by another thread, and three were never used; two free slices; and a block of 1 MiB in 17 slices. Another
/// block has a mapping of its own.
fn third(memory: &mut Memory, arena_words: usize) {
    let mut page =
        |slice: u64, counts: (u64, u64, u64), block: u64, lists: [u64; 3], memid: (u64, u64)| {
            let start = START + slice * SLICE;
            let words = [
                0x1234,
                lists[0],
                counts.0 | counts.1 << 16 | counts.2 << 32,
                lists[1],
                lists[2],
                block,
                start + 4096,
            ];
            for (word, at) in words.into_iter().zip(0_u64..) {
                memory.put(start + 8 * at, word);
            }
            memory.put(start + 8 * 11, memid.0);
            memory.put(start + 8 * 12, memid.1);
        };
    let first = START + SLICE + 4096;
    let lists = [first + 2 * BLOCK, 0, (first + 5 * BLOCK) | 1];
    page(1, (6, 7, 10), BLOCK, lists, (START, 1 | 1 << 32));
    page(4, (1, 1, 1), 1 << 20, [0; 3], (START, 4 | 17 << 32));
    page(
        32,
        (1, 1, 1),
        1 << 20,
        [0; 3],
        (START + 32 * SLICE, 17 * SLICE),
    );
    let head = START + 8 * arena_words as u64;
    memory.put(head, 24);
    memory.put(head + 8, 1);
}

#[test]
fn pages_and_free_slices_fill_an_arena_of_mimalloc_3() {
    // Where 3.1 has the number of slices, and where 3.2 has it.
    for arena_words in [4, 5] {
        let mut memory = Memory::default();
        third(&mut memory, arena_words);
        let mappings = [
            (START, START + 24 * SLICE, "//anon"),
            (START + 32 * SLICE, START + 49 * SLICE, "//anon"),
        ];
        let (found, tiles) = memory.read_by(&Mimalloc, &mappings);
        let heap = &found.heaps[0].heap;
        assert_eq!((heap.check, heap.count), (HeapCheck::Counter, 2));
        assert_eq!(heap.in_use, Bytes(5 * BLOCK + (2 << 20)));
        assert_eq!(heap.free, Bytes(2 * BLOCK + 5 * SLICE));
        let tiled: u64 = tiles.all.iter().map(|tile| tile.length).sum();
        assert_eq!(tiled, (24 + 17) * SLICE);
    }
}

#[test]
fn a_page_of_mimalloc_3_that_is_elsewhere_is_none() {
    let mut memory = Memory::default();
    third(&mut memory, 4);
    for slice in [1, 4, 32] {
        let place = START + slice * SLICE + 8 * 12;
        let word = memory.0[&place];
        memory.put(place, word + 2);
    }
    let mappings = [(START, START + 49 * SLICE, "//anon")];
    assert_eq!(memory.read_by(&Mimalloc, &mappings).0, HeapsRead::default());
}
