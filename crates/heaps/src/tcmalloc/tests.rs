use super::super::synthetic::{Memory, Tiles};
use super::*;
use pagewise_model::memory::HeapCheck;

const DATA: u64 = 0x7f00_0000_0000;
const HEAP: u64 = 0x5555_8000_0000;
const PAGE: u64 = 8 << 10;
const LEAF: u64 = HEAP + (16 << 20);
const SPANS: u64 = HEAP + (24 << 20);
const CACHE: u64 = HEAP + (25 << 20);
const ROOT: u64 = DATA + 0x2_0000;
const LIBRARY: &str = "/usr/lib/libtcmalloc_minimal.so.4";

fn sizes() -> Vec<u64> {
    let small = (0..32).map(|class| (8 << (class / 4)) / 4 * (4 + class % 4));
    std::iter::once(0).chain(small).chain([256 << 10]).collect()
}

impl Memory {
    fn put_half(&mut self, at: u64, number: u64) {
        let place = at / 8 * 8;
        let old = self.0.get(&place).copied().unwrap_or(0);
        self.put(place, old | number << (8 * (at % 8)));
    }

    /// A span of these pages of the heap, with free objects and the number of others.
    fn span(&mut self, number: u64, (page, pages): (u64, u64), objects: u64, bits: u64) {
        let at = SPANS + 48 * number;
        let start = HEAP / PAGE + page;
        self.put(at, start);
        self.put(at + 8, pages);
        self.put(at + 32, objects);
        self.put(at + 40, bits);
        self.put(LEAF + 8 * (start & ((1 << 18) - 1)), at);
    }
}

/// A span of two pages with objects of 16 bytes, of which three are free and two in a thread's cache and a
/// batch of 32 in the central one; a block of four pages; free and returned pages.
fn process() -> Memory {
    let mut memory = Memory::default();
    let sizes = sizes();
    for (class, size) in (0_u64..).zip(&sizes) {
        memory.put_half(DATA + 0x1004 + 4 * class, 32);
        memory.put_half(DATA + 0x1004 + 512 + 4 * class, *size);
        memory.put_half(CACHE + 32 * class + 24, *size);
        if class > 0 {
            memory.put(DATA + 0x4000 + 1216 * (class - 1), class);
        }
    }
    let class = sizes.iter().position(|size| *size == 16).unwrap() as u64;
    memory.put(CACHE + 32 * class + 8, 2);
    memory.put(DATA + 0x4000 + 1216 * (class - 1) + 1144, 1);
    memory.put(DATA + 0x800, CACHE);
    memory.put(ROOT + 8 * (HEAP >> 31), LEAF);
    let objects = [5, 1, 900].map(|number| HEAP + 16 * number);
    memory.put(objects[0], objects[1]);
    memory.put(objects[1], objects[2]);
    memory.span(0, (0, 2), objects[0], 1021 | class << 16);
    memory.span(1, (2, 4), 0, 0);
    memory.span(2, (6, 10), 0, 1 << 24);
    memory.span(3, (16, 16), 0, 2 << 24);
    // What was a span before it was joined.
    memory.put(LEAF + 8 * ((HEAP / PAGE + 8) & ((1 << 18) - 1)), SPANS + 48);
    for (at, sum) in [32, 10, 16].into_iter().enumerate() {
        memory.put(DATA + 0x900 + 8 * at as u64, sum * PAGE);
    }
    memory
}

fn read(memory: &Memory) -> (HeapsRead, Tiles) {
    let mappings = [
        (HEAP, HEAP + (32 << 20), "[heap]"),
        (DATA, DATA + (2 << 20), LIBRARY),
    ];
    memory.read_by(&Tcmalloc, &mappings)
}

#[test]
fn spans_and_their_objects_fill_the_heap() {
    let (found, tiles) = read(&process());
    let heap = &found.heaps[0].heap;
    assert_eq!((heap.check, heap.count), (HeapCheck::Counter, 4));
    assert_eq!(heap.cached, Bytes(34 * 16));
    assert_eq!(heap.in_use, Bytes((1024 - 3 - 34) * 16 + 4 * PAGE));
    assert_eq!(heap.blocks, 1024 - 3 - 34 + 1);
    assert_eq!(heap.free, Bytes(3 * 16 + 10 * PAGE));
    let of_spans = tiles.all.iter().filter(|tile| tile.start < LEAF);
    assert_eq!(of_spans.map(|tile| tile.length).sum::<u64>(), 32 * PAGE);
}

#[test]
fn a_span_whose_list_contradicts_its_count_has_changed() {
    let mut memory = process();
    // A list in a circle.
    memory.put(HEAP + 16 * 900, HEAP + 16 * 5);
    let (found, _) = read(&memory);
    let heap = &found.heaps[0].heap;
    assert_eq!(heap.check, HeapCheck::Filled);
    assert_eq!(heap.changed, Bytes(2 * PAGE));
}

#[test]
fn spans_that_say_to_be_elsewhere_are_no_map() {
    let mut memory = process();
    memory.put(SPANS, HEAP / PAGE + 7);
    assert_eq!(read(&memory).0, HeapsRead::default());
}
