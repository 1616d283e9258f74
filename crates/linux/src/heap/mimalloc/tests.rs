use super::super::synthetic::{Memory, Tiles};
use super::*;
use layout::Page;

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
