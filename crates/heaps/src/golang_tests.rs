use super::super::synthetic::{Memory, Tiles};
use super::*;
use pagewise_model::memory::HeapCheck;
use pagewise_model::units::Bytes;

const DATA: u64 = 0x50_0000;
const HEAP: u64 = 0xc0_0000_0000;
const OWN: u64 = 0x7f00_0000_0000;
const LIST: u64 = OWN;
const SPANS: u64 = OWN + 0x2000;
const BITS: u64 = OWN + 0x8000;

/// 64 spans of one page with 16 objects of 512 bytes, of which the first six are in use and then
/// every other one; a large object; a stack; and 30 pages that no span holds.
fn program(layout: &Layout) -> Memory {
    let mut memory = Memory::default();
    memory.put(DATA + 0x40, LIST);
    memory.put(DATA + 0x48, 66);
    memory.put(DATA + 0x50, LEAST_ROOM);
    let mut put_span = |number: u64, start: u64, pages: u64, state: u64| {
        let place = SPANS + 160 * number;
        memory.put(LIST + 8 * number, place);
        memory.put(place + START, start);
        memory.put(place + PAGES, pages);
        let objects = if pages == 1 { 16 } else { 1 };
        let (size, in_use) = (8192 * pages / objects, if pages == 1 { 11 } else { 1 });
        if state == IN_USE {
            let free_index = if pages == 1 { 6 } else { 1 };
            match layout.index_bytes {
                2 => memory.put(place + 48, free_index | objects << 16),
                _ => {
                    memory.put(place + 48, free_index);
                    memory.put(place + 56, objects);
                }
            }
            memory.put(place + layout.bits, BITS);
            memory.put(place + layout.object_size, size);
            memory.put(place + layout.limit, start + 8192 * pages);
        }
        memory.put(place + layout.counts, state << 24 | in_use);
    };
    for number in 0..64 {
        put_span(number, HEAP + 8192 * number, 1, IN_USE);
    }
    put_span(64, HEAP + 8192 * 64, 32, IN_USE);
    put_span(65, HEAP + 8192 * 96, 2, MANUAL);
    memory.put(BITS, 0xaaaa);
    memory.put(DATA + 0x200, 96 * 8192);
    memory
}

fn read(memory: &Memory) -> (HeapsRead, Tiles) {
    let mappings = [
        (DATA, DATA + 4096, "/usr/bin/server"),
        (HEAP, HEAP + 128 * 8192, "//anon"),
        (OWN, OWN + 0x9000, "//anon"),
    ];
    memory.read_by(&Golang, &mappings)
}

#[test]
fn spans_of_all_layouts_add_up_to_the_heap() {
    for layout in &LAYOUTS {
        let (found, tiles) = read(&program(layout));
        let heap = &found.heaps[0].heap;
        let (objects, large, stack) = (64 * 11 * 512, 32 * 8192, 2 * 8192);
        assert_eq!(heap.in_use, Bytes(objects + large + stack), "{layout:?}");
        assert_eq!(heap.free, Bytes(64 * 5 * 512 + 30 * 8192));
        assert_eq!(heap.check, HeapCheck::Counter);
        let all: u64 = tiles.all.iter().map(|tile| tile.length).sum();
        assert_eq!(
            (all, found.heaps[0].extents.as_slice()),
            (128 * 8192, &[HEAP][..])
        );
    }
}

#[test]
fn a_span_with_other_objects_than_it_counts_is_unread() {
    let mut memory = program(&LAYOUTS[0]);
    memory.put(SPANS + LAYOUTS[0].counts, IN_USE << 24 | 12);
    let (found, _) = read(&memory);
    assert_eq!(found.unread, [(HEAP, HEAP + 8192, Unread::Changed)]);
    let heap = &found.heaps[0].heap;
    assert_eq!(heap.blocks, 63 * 11 + 2);
    assert_eq!(heap.check, HeapCheck::Filled);
}
