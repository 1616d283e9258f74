//! Fastbins of made-up heaps.

use super::*;

const BLOCKS: u64 = 5_000;
const SIZE: u64 = 0x40;
const TOP: u64 = DATA + 0x560;

/// A heap of equal blocks, and a block in use before the end.
fn heap() -> (Fake, [MapsEntry; 2], Vec<u64>) {
    let mut fake = Fake::default();
    let length = (BLOCKS * SIZE + PAGE).next_multiple_of(PAGE);
    let sizes: Vec<_> = (0..BLOCKS).map(|_| (SIZE, true)).collect();
    let top = fake.blocks(HEAP, &sizes, 0);
    fake.header(top, HEAP + length - top, (0, true));
    fake.arena(TOP, top, length);
    let maps = [entry(HEAP, HEAP + length, "[heap]"), libc_data()];
    let blocks = (0..BLOCKS).map(|place| HEAP + place * SIZE).collect();
    (fake, maps, blocks)
}

/// Links the blocks to one list, the last one to `end`.
fn list(fake: &mut Fake, blocks: &[u64], end: u64) {
    let head = TOP - 80 + 8 * ((SIZE - 0x20) / 0x10);
    fake.put(head, blocks.first().copied().unwrap_or(0));
    for (place, block) in blocks.iter().enumerate() {
        let next = blocks.get(place + 1).copied().unwrap_or(end);
        fake.put(block + 16, next ^ ((block + 16) >> 12));
    }
}

/// All blocks but each `step`th, in an order that jumps through the heap.
fn freed(blocks: &[u64], step: usize) -> Vec<u64> {
    let count = blocks.len();
    let order = (0..count).map(|place| (place * 7_919) % count);
    let wanted = order.filter(|place| place % step != step - 1);
    wanted.map(|place| blocks[place]).collect()
}

fn bytes(count: usize) -> Bytes {
    Bytes(count as u64 * SIZE)
}

#[test]
fn neighbours_in_fastbins_are_one_free_block() {
    // Few enough to be followed one by one, and too many.
    for all in [1_000, BLOCKS] {
        let (mut fake, maps, mut blocks) = heap();
        blocks.truncate(usize::try_from(all).unwrap());
        let freed = freed(&blocks, 100);
        list(&mut fake, &freed, 0);
        let (found, tiles) = read(&fake, &maps);
        let main = &found.heaps[0].heap;
        assert_eq!(main.check, HeapCheck::Counter);
        assert_eq!((main.free_blocks, main.broken_lists), (all / 100, 0));
        assert_eq!(main.free, bytes(freed.len()));
        assert_eq!(main.in_fastbins, main.free);
        assert_eq!(main.in_use, Bytes(BLOCKS * SIZE - main.free.0));
        let sizes: Vec<u64> = tiles
            .iter()
            .filter(|tile| matches!(tile.state, TileState::Free { .. }))
            .map(|tile| tile.length)
            .collect();
        assert_eq!(sizes, vec![99 * SIZE; sizes.len()]);
    }
}

#[test]
fn a_circular_fastbin_ends_where_it_began() {
    for all in [500, 4_900] {
        let (mut fake, maps, blocks) = heap();
        let listed = &blocks[..all];
        list(&mut fake, listed, listed[all / 2]);
        let (found, _) = read(&fake, &maps);
        let main = &found.heaps[0].heap;
        assert_eq!((main.in_fastbins, main.broken_lists), (bytes(all), 1));
    }
}

#[test]
fn a_fastbin_that_leads_out_of_the_heap_ends_there() {
    for all in [500, 4_900] {
        for end in [MAPPED, HEAP + SIZE / 2, HEAP + 8, u64::MAX] {
            let (mut fake, maps, blocks) = heap();
            list(&mut fake, &blocks[..all], end);
            let (found, _) = read(&fake, &maps);
            let main = &found.heaps[0].heap;
            assert_eq!(main.broken_lists, 1, "{end:x}");
            // The block with the wrong link may count or not.
            assert!(main.in_fastbins >= bytes(all - 1));
        }
    }
}

#[test]
fn a_head_that_leads_to_no_block_is_no_fastbin() {
    let (mut fake, maps, blocks) = heap();
    for head in [MAPPED, blocks[3] + 8, 0x10, u64::MAX] {
        list(&mut fake, &[], 0);
        fake.put(TOP - 80 + 16, head);
        let (found, _) = read(&fake, &maps);
        let main = &found.heaps[0].heap;
        assert_eq!((main.in_fastbins, main.broken_lists), (Bytes(0), 0));
    }
}

#[test]
fn fastbins_of_a_threads_arena_are_joined_too() {
    let mut fake = Fake::default();
    let maps = thread_arena(&mut fake, 0x30);
    let arena = THREAD + 0x30;
    // The block of 0x50 behind the free one of 0x1000.
    let block = (arena + 0x898).next_multiple_of(16) + 0x290 + 0x1000;
    fake.put(arena + 96 - 80 + 8 * 3, block);
    fake.put(block + 16, (block + 16) >> 12);
    let (found, _) = read(&fake, &maps);
    let threads = &found.heaps[0].heap;
    assert_eq!(
        (threads.free, threads.in_fastbins, threads.free_blocks),
        (Bytes(0x1050), Bytes(0x50), 1)
    );
}
