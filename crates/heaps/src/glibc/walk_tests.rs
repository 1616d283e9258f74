//! Heaps that change while they are read.

use super::*;
use std::cell::Cell;

const BLOCKS: u64 = 20_000;
const SIZE: u64 = 0x40;
const TOP: u64 = DATA + 0x560;

/// A heap of equal blocks, of which each tenth is free, and where its last block is.
fn heap() -> (Fake, [MapsEntry; 2], u64) {
    let mut fake = Fake::default();
    let length = (BLOCKS * SIZE + 4 * PAGE).next_multiple_of(PAGE);
    let sizes: Vec<_> = (0..BLOCKS).map(|number| (SIZE, number % 10 != 5)).collect();
    let top = fake.blocks(HEAP, &sizes, 0);
    fake.header(top, HEAP + length - top, (0, true));
    fake.arena(TOP, top, length);
    let maps = [entry(HEAP, HEAP + length, "[heap]"), libc_data()];
    (fake, maps, top)
}

fn main_heap_of(found: &HeapsRead) -> &Heap {
    &found.heaps[0].heap
}

#[test]
fn a_heap_that_grew_meanwhile_is_read_up_to_its_old_end() {
    let (mut fake, maps, top) = heap();
    let end = maps[0].mapping.end;
    // A block goes on behind the end, and the last one is far behind it.
    fake.put(top + 8, (end - top + 0x5000) | 1);
    fake.put(TOP, end + 0x20_0000);
    let (found, _) = read(&fake, &maps);
    let main = main_heap_of(&found);
    assert_eq!((main.check, main.changed), (HeapCheck::Filled, Bytes(0)));
    assert_eq!(main.free, Bytes(BLOCKS / 10 * SIZE));
    assert_eq!(main.in_use, Bytes(end - HEAP - BLOCKS / 10 * SIZE));
}

#[test]
fn a_heap_that_shrank_meanwhile_ends_with_its_last_block() {
    let (mut fake, maps, top) = heap();
    // The last block ends a page further down, where there are no headers any more.
    fake.put(top + 8, (maps[0].mapping.end - PAGE - top) | 1);
    let (found, tiles) = read(&fake, &maps);
    let main = main_heap_of(&found);
    assert_eq!(main.reserve, Bytes(maps[0].mapping.end - top));
    assert_eq!(main.in_use, Bytes(BLOCKS / 10 * 9 * SIZE));
    let tiled: u64 = tiles.iter().map(|tile| tile.length).sum();
    assert_eq!(tiled, maps[0].mapping.end - HEAP);
}

#[test]
fn a_walk_goes_on_behind_headers_that_are_damaged() {
    let (mut fake, maps, _) = heap();
    let broken = [100, 7_000, 7_001, 15_555];
    for number in broken {
        fake.put(HEAP + number * SIZE + 8, 0x1234_5678);
    }
    let (found, tiles) = read(&fake, &maps);
    let main = main_heap_of(&found);
    // Each break costs the block before it, too.
    assert!(
        main.changed > Bytes(0) && main.changed <= Bytes(3 * 4 * SIZE),
        "{main:?}"
    );
    assert!(main.blocks >= BLOCKS / 10 * 9 - 12);
    let tiled: u64 = tiles.iter().map(|tile| tile.length).sum();
    assert_eq!(tiled, maps[0].mapping.end - HEAP);
}

#[test]
fn a_size_that_leads_too_far_hides_only_its_own_block() {
    let (mut fake, maps, _) = heap();
    // It leads to the middle of a later block, whose words are zeros.
    fake.put(HEAP + 3_000 * SIZE + 8, (5_000 * SIZE + 0x10) | 1);
    let (found, _) = read(&fake, &maps);
    let main = main_heap_of(&found);
    assert!(main.changed <= Bytes(3 * SIZE), "{main:?}");
    assert!(main.blocks >= BLOCKS / 10 * 9 - 3);
}

/// Memory of which a part reads as zeros the first few times.
struct Torn {
    fake: Fake,
    part: (u64, u64),
    times: Cell<u32>,
}

impl Source for Torn {
    fn read(&self, address: u64, into: &mut [u8]) -> io::Result<()> {
        self.fake.read(address, into)?;
        let end = address + into.len() as u64;
        if address < self.part.1 && self.part.0 < end && self.times.get() > 0 {
            self.times.set(self.times.get() - 1);
            let from = self.part.0.max(address) - address;
            let to = self.part.1.min(end) - address;
            let [from, to] = [from, to].map(|at| usize::try_from(at).unwrap());
            into[from..to].fill(0);
        }
        Ok(())
    }
}

#[test]
fn what_is_torn_once_is_read_again_and_costs_nothing() {
    let (fake, maps, _) = heap();
    let part = (HEAP + 9_000 * SIZE, HEAP + 9_100 * SIZE);
    let torn = Torn {
        fake,
        part,
        times: Cell::new(2),
    };
    let range = |entry: &MapsEntry| (entry.mapping.start, entry.mapping.end);
    let presence = present(&maps.each_ref().map(range));
    let mut tiles = Tiles::default();
    let found = Glibc.read(&maps, &mut Image::new(&torn, &presence, PAGE), &mut tiles);
    let main = main_heap_of(&found);
    assert_eq!((main.check, main.changed), (HeapCheck::Counter, Bytes(0)));
    assert_eq!(main.blocks, BLOCKS / 10 * 9);
    assert_eq!(torn.times.get(), 0);
}

#[test]
fn what_holds_no_blocks_is_another_allocators() {
    let mut fake = Fake::default();
    for word in 0..4 * PAGE / 8 {
        fake.put(
            HEAP + 8 * word,
            0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(word),
        );
    }
    let (found, tiles) = read(&fake, &[entry(HEAP, HEAP + 4 * PAGE, "[heap]")]);
    assert_eq!((found.heaps, tiles), (Vec::new(), Vec::new()));
    assert_eq!(found.unread, []);
}
