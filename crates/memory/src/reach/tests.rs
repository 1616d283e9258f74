use super::*;

const HEAP: u64 = 0x5555_0000_0000;
const SIZE: u64 = 0x40;

/// A heap with blocks of 64 bytes, all in use.
fn graph(blocks: u64, allocator: AllocatorKind, freed: &[u64]) -> Graph {
    let mut live = LiveBlocks::default();
    live.start(HEAP);
    for number in 0..blocks {
        live.tile(Tile {
            start: HEAP + number * SIZE,
            length: SIZE,
            state: TileState::Live { block: SIZE },
        });
    }
    live.finish(true);
    live.are_of(Some(allocator));
    live.into_graph(freed.iter().map(|one| HEAP + one * SIZE).collect())
        .unwrap()
}

/// Where the program's bytes of a block of glibc are.
fn user(number: u64) -> u64 {
    HEAP + number * SIZE + 16
}

/// Gives the heap with these words in it.
fn fill(graph: &mut Graph, blocks: u64, words: &[(u64, u64)]) {
    let mut memory = vec![0_u8; usize::try_from(blocks * SIZE).unwrap()];
    for (at, word) in words {
        let at = usize::try_from(at - HEAP).unwrap();
        memory[at..at + 8].copy_from_slice(&word.to_le_bytes());
    }
    graph.memory(HEAP, &memory);
}

fn lost(graph: Graph) -> Vec<u64> {
    let unreached = graph.into_unreached().unwrap();
    let numbers = unreached
        .blocks()
        .iter()
        .map(|one| (one.start - HEAP) / SIZE);
    numbers.collect()
}

#[test]
fn what_leads_on_from_a_root_is_reached_and_a_ring_is_lost() {
    let mut graph = graph(6, AllocatorKind::Glibc, &[]);
    graph.root(user(0));
    let words = [
        (user(0) + 8, user(2)),
        (user(2), user(4)),
        // Lost blocks that point to each other, and to one in use.
        (user(1), user(3)),
        (user(3), user(1)),
        (user(5), user(0)),
    ];
    fill(&mut graph, 6, &words);
    assert_eq!(lost(graph), [1, 3, 5]);
}

#[test]
fn the_last_word_of_a_glibc_block_is_in_the_next_ones_header() {
    let mut graph = graph(4, AllocatorKind::Glibc, &[]);
    graph.root(user(1));
    fill(&mut graph, 4, &[(user(1) + SIZE - 16, user(3))]);
    assert_eq!(lost(graph), [0, 2]);
}

#[test]
fn pointers_behind_the_end_and_with_tags_reach_a_block() {
    let mut graph = graph(5, AllocatorKind::Glibc, &[]);
    graph.root(user(1) + SIZE - 8);
    graph.root(user(3) | 0x7ff8 << 48);
    fill(&mut graph, 5, &[]);
    // An address behind the end of one is also in the next.
    assert_eq!(lost(graph), [0, 4]);
}

#[test]
fn blocks_in_caches_are_not_lost_and_lead_nowhere() {
    let mut graph = graph(3, AllocatorKind::Glibc, &[0]);
    fill(&mut graph, 3, &[(user(0), user(1))]);
    assert_eq!(lost(graph), [1, 2]);
}

#[test]
fn heaps_of_collectors_are_roots() {
    let mut live = LiveBlocks::default();
    let tile = |start| Tile {
        start,
        length: SIZE,
        state: TileState::Live { block: SIZE },
    };
    live.start(HEAP);
    live.tile(tile(HEAP));
    live.finish(true);
    live.are_of(Some(AllocatorKind::Cpython));
    let other = HEAP + (1 << 20);
    live.start(other);
    live.tile(tile(other));
    live.tile(tile(other + SIZE));
    live.finish(true);
    live.are_of(Some(AllocatorKind::Jemalloc));
    let mut graph = live.into_graph(Vec::new()).unwrap();
    graph.memory(HEAP, &other.to_le_bytes());
    let unreached = graph.into_unreached().unwrap();
    let blocks: Vec<u64> = unreached.blocks().iter().map(|one| one.start).collect();
    assert_eq!(blocks, [other + SIZE]);
}

#[test]
fn pointers_into_the_middle_alone_are_a_doubt() {
    let mut graph = graph(3, AllocatorKind::Glibc, &[]);
    graph.root(user(0));
    graph.root(user(1) + 16);
    fill(&mut graph, 3, &[]);
    let unreached = graph.into_unreached().unwrap();
    assert_eq!(unreached.bytes(0), (SIZE, SIZE, 2 * SIZE));
}

#[test]
fn two_snapshots_agree_and_unseen_caches_lower_the_bound() {
    let snapshot = |root| {
        let mut graph = graph(20, AllocatorKind::Glibc, &[]);
        graph.root(user(root));
        fill(&mut graph, 20, &[]);
        graph.into_unreached().unwrap()
    };
    let both = snapshot(0).and(&snapshot(1));
    assert_eq!(both.bytes(0).0, 18 * SIZE);
    assert_eq!(both.bytes(1).0, 11 * SIZE);
    assert_eq!(both.bytes(3).0, 0);
}

#[test]
fn a_heap_that_is_dropped_leaves_no_blocks() {
    let mut live = LiveBlocks::default();
    let tile = Tile {
        start: HEAP,
        length: SIZE,
        state: TileState::Live { block: SIZE },
    };
    live.start(HEAP);
    live.tile(tile);
    live.finish(false);
    live.start(HEAP);
    live.tile(tile);
    // Read again from its start.
    live.start(HEAP);
    live.tile(tile);
    live.finish(true);
    live.are_of(Some(AllocatorKind::Glibc));
    assert_eq!(live.into_graph(Vec::new()).unwrap().size(), (SIZE, 1));
}
