use super::super::{AllocatorReader, Image, Source};
use super::*;
use pagewise_model::address_space::Mapping;
use pagewise_model::memory::{PageRun, PageState, Presence, Tile, TileState};
use proptest::prelude::*;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;

const PAGE: u64 = 4096;
const HEAP: u64 = 0x5555_0000_0000;
const DATA: u64 = 0x7fff_f000_0000;
const THREAD: u64 = 0x7fff_e000_0000;
const MAPPED: u64 = 0x7fff_e800_0000;

/// A process made of words.
#[derive(Default)]
struct Fake {
    words: BTreeMap<u64, u64>,
}

impl Fake {
    fn put(&mut self, address: u64, word: u64) {
        self.words.insert(address, word);
    }

    /// Blocks from `start`: size, and whether each is in use. Returns the address after the last.
    fn blocks(&mut self, start: u64, blocks: &[(u64, bool)], flags: u64) -> u64 {
        let mut at = start;
        let mut before = (0, true);
        for &(size, in_use) in blocks {
            self.header(at, size | flags, before);
            before = (size, in_use);
            at += size;
        }
        at
    }

    fn header(&mut self, at: u64, word: u64, (size, in_use): (u64, bool)) {
        if !in_use {
            self.put(at, size);
        }
        self.put(at + 8, word | u64::from(in_use));
    }

    /// An arena whose `top` is at `place`.
    fn arena(&mut self, place: u64, top: u64, system_mem: u64) {
        self.put(place, top);
        for list in 0..127 {
            let head = place + 16 * list;
            self.put(head + 16, head);
            self.put(head + 24, head);
        }
        self.put(place + 2088, system_mem);
        self.put(place + 2096, system_mem);
    }
}

impl Source for Fake {
    fn read(&self, address: u64, into: &mut [u8]) -> io::Result<()> {
        for (bytes, place) in into.chunks_exact_mut(8).zip(0_u64..) {
            let word = self.words.get(&(address + 8 * place)).copied();
            bytes.copy_from_slice(&word.unwrap_or(0).to_le_bytes());
        }
        Ok(())
    }
}

#[derive(Default)]
struct Tiles {
    current: Vec<Tile>,
    kept: Vec<Tile>,
}

impl TileSink for Tiles {
    fn start(&mut self, _: u64) {
        self.current.clear();
    }

    fn tile(&mut self, tile: Tile) {
        self.current.push(tile);
    }

    fn finish(&mut self, is_right: bool) {
        if is_right {
            self.kept.append(&mut self.current);
        }
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

fn present(ranges: &[(u64, u64)]) -> Presence {
    let run = |&(start, end): &(u64, u64)| PageRun {
        start,
        end,
        state: PageState::Anonymous,
    };
    Presence::new(ranges.iter().map(run).collect())
}

fn read(source: &dyn Source, maps: &[MapsEntry]) -> (HeapsRead, Vec<Tile>) {
    let ranges: Vec<_> = maps
        .iter()
        .map(|entry| (entry.mapping.start, entry.mapping.end))
        .collect();
    let presence = present(&ranges);
    let mut image = Image::new(source, &presence, PAGE);
    let mut tiles = Tiles::default();
    let found = Glibc.read(maps, &mut image, &mut tiles);
    (found, tiles.kept)
}

/// Blocks that fill `length` bytes up to a last one; no two free ones are next to each other.
fn filling(sizes: Vec<(u64, bool)>, length: u64) -> Vec<(u64, bool)> {
    let mut blocks: Vec<(u64, bool)> = Vec::new();
    let mut used = 0;
    for (size, in_use) in sizes {
        if used + size + 0x20 > length {
            break;
        }
        let after_free = blocks.last().is_some_and(|(_, in_use)| !in_use);
        blocks.push((size, in_use || after_free));
        used += size;
    }
    // Blocks before the last one are joined with it when they are freed.
    if let Some(last) = blocks.last_mut() {
        last.1 = true;
    }
    blocks.push((length - used, true));
    blocks
}

fn sizes() -> impl Strategy<Value = Vec<(u64, bool)>> {
    let size = prop_oneof![
        (2_u64..20).prop_map(|units| 16 * units),
        (2_u64..2000).prop_map(|units| 16 * units),
    ];
    prop::collection::vec((size, any::<bool>()), 0..200)
}

#[path = "fastbins_tests.rs"]
mod fastbins;

proptest! {
    #[test]
    fn any_heap_is_read_block_by_block_as_it_was_laid_out(sizes in sizes()) {
        let length = 64 * PAGE;
        let blocks = filling(sizes, length);
        let mut fake = Fake::default();
        fake.blocks(HEAP, &blocks, 0);
        let (found, tiles) = read(&fake, &[entry(HEAP, HEAP + length, "[heap]")]);
        let (last, others) = blocks.split_last().unwrap();
        let sum = |wanted: bool| -> u64 {
            others.iter().filter(|(_, in_use)| *in_use == wanted).map(|(size, _)| size).sum()
        };
        let heap = &found.heaps[0].heap;
        prop_assert_eq!(heap.in_use, Bytes(sum(true)));
        prop_assert_eq!(heap.free, Bytes(sum(false)));
        prop_assert_eq!(heap.reserve, Bytes(last.0));
        prop_assert_eq!(tiles.len(), blocks.len());
        for (tile, (size, in_use)) in tiles.iter().zip(others) {
            prop_assert_eq!(tile.length, *size);
            prop_assert_eq!(tile.state.is_live(), *in_use);
        }
    }

    #[test]
    fn whatever_the_heap_holds_the_walk_ends_and_never_exceeds_it(
        words in prop::collection::vec(any::<u64>(), 0..600),
    ) {
        let mut fake = Fake::default();
        for (word, place) in words.iter().zip(0_u64..) {
            // Small enough to be taken for sizes.
            fake.put(HEAP + 8 * place, word & 0x3ff);
        }
        let (found, tiles) = read(&fake, &[entry(HEAP, HEAP + 4 * PAGE, "[heap]")]);
        let tiled: u64 = tiles.iter().map(|tile| tile.length).sum();
        prop_assert_eq!(tiled, if found.heaps.is_empty() { 0 } else { 4 * PAGE });
    }
}

const LIBC: &str = "/lib/x86_64-linux-gnu/libc.so.6";

fn main_heap(fake: &mut Fake) -> MapsEntry {
    let blocks = [
        (0x290, true),
        (0x40, true),
        (0x500, false),
        (0x30, true),
        (0x30, true),
    ];
    let used: u64 = blocks.iter().map(|(size, _)| size).sum();
    let length = 4 * PAGE;
    let end = fake.blocks(HEAP, &blocks, 0);
    fake.header(end, length - used, (0, true));
    fake.arena(DATA + 0x560, HEAP + used, length);
    // `mapped`, its maximum, `sbrk_base`; the threshold rose to 1 MiB (2.35 and later).
    let parameters = DATA + 0x200;
    fake.put(parameters - 80, 1 << 20);
    fake.put(parameters, HEAP);
    entry(HEAP, HEAP + length, "[heap]")
}

fn libc_data() -> MapsEntry {
    MapsEntry {
        inode: 7,
        ..entry(DATA, DATA + 2 * PAGE, LIBC)
    }
}

#[test]
fn the_main_heap_is_checked_against_its_arenas_counter() {
    let mut fake = Fake::default();
    let heap = main_heap(&mut fake);
    let (found, _) = read(&fake, &[heap.clone(), libc_data()]);
    let main = &found.heaps[0].heap;
    assert_eq!(main.check, HeapCheck::Counter);
    assert_eq!(main.raised_mmap_threshold, Some(Bytes::MIB));
    assert_eq!((main.in_use, main.free), (Bytes(0x330), Bytes(0x500)));
    fake.put(DATA + 0x560 + 2088, 3 * PAGE);
    let (found, _) = read(&fake, &[heap, libc_data()]);
    assert_eq!(found.heaps[0].heap.check, HeapCheck::Filled);
}

#[test]
fn blocks_in_a_threads_cache_and_in_fastbins_are_not_in_use() {
    for masked in [true, false] {
        let mut fake = Fake::default();
        let heap = main_heap(&mut fake);
        let mask = |place: u64, link: u64| match masked {
            true => link ^ (place >> 12),
            false => link,
        };
        // The block of 0x40 is in the cache's third list: one count of 16 bits, then 64 heads.
        let cached = HEAP + 0x290 + 16;
        fake.put(HEAP + 16, 1 << 32);
        fake.put(HEAP + 16 + 128 + 16, cached);
        fake.put(cached, mask(cached, 0));
        // Those of 0x30 are in the second fastbin.
        let first = HEAP + 0x290 + 0x40 + 0x500;
        fake.put(DATA + 0x560 - 80 + 8, first + 0x30);
        fake.put(first + 0x30 + 16, mask(first + 0x30 + 16, first));
        fake.put(first + 16, mask(first + 16, 0));
        let (found, _) = read(&fake, &[heap, libc_data()]);
        let main = &found.heaps[0].heap;
        assert_eq!(main.cached, Bytes(0x40), "{masked}");
        assert_eq!((main.in_use, main.blocks), (Bytes(0x290), 1));
        // Those in fastbins join the free block before them and the end of the heap behind them.
        assert_eq!((main.in_fastbins, main.free), (Bytes(0x60), Bytes(0)));
        assert_eq!(main.reserve, Bytes(4 * PAGE - 0x290 - 0x40));
    }
}

/// The program's own blocks of the size of a cache are ruled out without being read again, and however
/// many there are, the cache behind them is found.
#[test]
fn a_cache_behind_many_blocks_of_its_size_is_found_in_one_pass() {
    const OTHERS: usize = (1 << 16) + 64;
    let mut fake = Fake::default();
    let own = vec![(0x290, true); OTHERS];
    let cache = fake.blocks(HEAP, &own, 0);
    for block in (HEAP..cache).step_by(0x290) {
        fake.put(block + 0x90 + 16, 0x0101_0101_0101_0101);
    }
    let cached = fake.blocks(cache, &[(0x290, true)], 0);
    let top = fake.blocks(cached, &[(0x40, true)], 0);
    let end = (top + PAGE).next_multiple_of(PAGE);
    fake.put(top + 8, (end - top) | 1);
    fake.put(cache + 16, 1 << 32);
    fake.put(cache + 16 + 128 + 16, cached + 16);
    fake.put(cached + 16, (cached + 16) >> 12);
    fake.arena(DATA + 0x560, top, end - HEAP);
    let heap = entry(HEAP, end, "[heap]");
    let counted = Counted {
        of: fake,
        read: RefCell::default(),
    };
    let (found, _) = read(&counted, &[heap, libc_data()]);
    assert_eq!(found.heaps[0].heap.cached, Bytes(0x40));
    let read = *counted.read.borrow();
    let heap = end - HEAP;
    assert!(read < heap / 5 * 6, "{read} of {heap}");
}

/// Counts the bytes that are read.
struct Counted {
    of: Fake,
    read: RefCell<u64>,
}

impl Source for Counted {
    fn read(&self, address: u64, into: &mut [u8]) -> io::Result<()> {
        *self.read.borrow_mut() += into.len() as u64;
        self.of.read(address, into)
    }
}

#[test]
fn a_block_that_only_looks_like_a_cache_stays_in_use() {
    let mut fake = Fake::default();
    let heap = main_heap(&mut fake);
    fake.put(HEAP + 16, 1 << 32);
    // The list leads to a block of another size.
    fake.put(HEAP + 16 + 128 + 16, HEAP + 0x290 + 0x40 + 16);
    let (found, _) = read(&fake, &[heap, libc_data()]);
    assert_eq!(found.heaps[0].heap.cached, Bytes(0));
}

/// A thread's arena of two heaps, the first one full, with heads of this size.
fn thread_arena(fake: &mut Fake, head: u64) -> Vec<MapsEntry> {
    let arena = THREAD + head;
    let second = THREAD + (64 << 20);
    let (full, size) = (8 * PAGE, 2 * PAGE);
    let first = (arena + 0x898).next_multiple_of(16);
    let blocks = [(0x290, true), (0x1000, false), (0x50, true)];
    let used: u64 = blocks.iter().map(|(size, _)| size).sum();
    let rest = THREAD + full - first - used - 0x20;
    let end = fake.blocks(first, &blocks, 4);
    let end = fake.blocks(end, &[(rest, true), (0x10, true), (0, true)], 0);
    assert_eq!(end + 0x10, THREAD + full);
    let top = fake.blocks(second + head, &[(0x100, true)], 4);
    fake.header(top, second + size - top, (0, true));
    for (heap, size) in [(THREAD, full), (second, size)] {
        fake.put(heap, arena);
        fake.put(heap + 16, size);
        fake.put(heap + 24, size);
    }
    fake.arena(arena + 96, top, full + size);
    vec![
        entry(THREAD, THREAD + full, "//anon"),
        entry(second, second + size, "//anon"),
    ]
}

#[test]
fn heaps_of_a_threads_arena_are_read_in_both_layouts() {
    for head in [0x20, 0x30] {
        let mut fake = Fake::default();
        let maps = thread_arena(&mut fake, head);
        let (found, tiles) = read(&fake, &maps);
        assert_eq!(found.unread, []);
        let threads = &found.heaps[0].heap;
        assert_eq!((threads.part, threads.count), (HeapPart::Threads, 1));
        assert_eq!(threads.check, HeapCheck::Counter);
        assert_eq!(
            (threads.free, threads.size),
            (Bytes(0x1000), Bytes(10 * PAGE))
        );
        let tiled: u64 = tiles.iter().map(|tile| tile.length).sum();
        assert_eq!(tiled, 10 * PAGE);
    }
}

#[test]
fn a_block_that_was_read_torn_is_a_share_of_its_own() {
    let mut fake = Fake::default();
    let maps = thread_arena(&mut fake, 0x30);
    let block = (THREAD + 0x30 + 0x898).next_multiple_of(16) + 0x290;
    // The free block's size is not the one at its end.
    fake.put(block + 0x1000, 0xff0);
    let (found, tiles) = read(&fake, &maps);
    let threads = &found.heaps[0].heap;
    assert_eq!(threads.check, HeapCheck::Filled);
    // With the block before it, whose own header may be the wrong one.
    assert_eq!(threads.changed, Bytes(0x1290));
    assert_eq!(threads.free, Bytes(0));
    let tiled: u64 = tiles.iter().map(|tile| tile.length).sum();
    assert_eq!((tiled, found.unread), (10 * PAGE, Vec::new()));
}

#[path = "walk_tests.rs"]
mod walk;

#[test]
fn mapped_blocks_are_found_by_their_counter_behind_other_memory() {
    let mut fake = Fake::default();
    let heap = main_heap(&mut fake);
    let end = MAPPED + 12 * PAGE;
    // Two pages of something else, a block of 4 pages, an aligned one of 2, then something else.
    fake.put(MAPPED + 8, 99);
    fake.put(MAPPED + 2 * PAGE + 8, (4 * PAGE) | 2);
    let aligned = MAPPED + 6 * PAGE + 0x30;
    fake.put(aligned, 0x30);
    fake.put(aligned + 8, (2 * PAGE - 0x30) | 2);
    let parameters = DATA + 0x200;
    fake.put(parameters - 16, 6 * PAGE);
    fake.put(parameters - 8, 6 * PAGE);
    let maps = [heap, entry(MAPPED, end, "//anon"), libc_data()];
    let (found, _) = read(&fake, &maps);
    let mapped = &found.heaps[1].heap;
    assert_eq!((mapped.part, mapped.count), (HeapPart::Mapped, 2));
    assert_eq!(
        (mapped.in_use, mapped.check),
        (Bytes(6 * PAGE), HeapCheck::Counter)
    );
    // More than the counter says: something else looks like a block.
    fake.put(parameters - 16, 5 * PAGE);
    let (found, _) = read(&fake, &maps);
    assert_eq!(found.heaps.len(), 1);
}

#[test]
fn a_heap_whose_headers_are_swapped_out_says_so() {
    let mut fake = Fake::default();
    let heap = main_heap(&mut fake);
    let presence = Presence::new(vec![PageRun {
        start: HEAP,
        end: HEAP + 4 * PAGE,
        state: PageState::Swapped,
    }]);
    let mut image = Image::new(&fake, &presence, PAGE);
    let found = Glibc.read(&[heap], &mut image, &mut Tiles::default());
    assert_eq!(found.unread, [(HEAP, HEAP + 4 * PAGE, Unread::Swapped)]);
}
