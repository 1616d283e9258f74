use super::*;
use pagewise_model::memory::PageState;
use proptest::prelude::*;

const PAGE: u64 = 64;
const BASE: u64 = 0x1000;

/// Byte by byte, without any run of pages or tile taken at once.
fn naive(presence: &Presence, tiles: &[Tile]) -> ExtentSums {
    let mut sums = ExtentSums::default();
    for tile in tiles {
        for at in tile.start..tile.start + tile.length {
            let page = at / PAGE * PAGE;
            let Some(run) = presence.at(page) else {
                continue;
            };
            let is_resident = run.state.is_resident();
            let has_page = |from: u64| from <= page && page + PAGE <= tile.start + tile.length;
            match tile.state {
                TileState::Live { .. } => sums.live.add(1, is_resident),
                TileState::Bookkeeping => sums.bookkeeping.add(1, is_resident),
                TileState::Changed => sums.changed.add(1, is_resident),
                TileState::Free { kept } => match has_page(tile.start + kept) {
                    true => sums.freed.add(1, is_resident),
                    false => sums.pinned.add(1, is_resident),
                },
                TileState::Reserve { kept } => {
                    sums.reserve.add(1, is_resident);
                    if has_page(tile.start + kept) {
                        sums.reserve_pages.add(1, is_resident);
                    }
                }
            }
        }
    }
    sums
}

fn fast(presence: &Presence, tiles: &[Tile]) -> Vec<Extent> {
    let mut extents = Extents::new(presence, PAGE);
    extents.start(tiles.first().map_or(BASE, |tile| tile.start));
    for &tile in tiles {
        extents.tile(tile);
    }
    extents.finish(true);
    extents.into_seen().extents
}

fn tile_state() -> impl Strategy<Value = TileState> {
    prop_oneof![
        (1_u64..5).prop_map(|words| TileState::Live { block: 16 * words }),
        (0_u64..3).prop_map(|words| TileState::Free { kept: 16 * words }),
        (0_u64..3).prop_map(|words| TileState::Reserve { kept: 16 * words }),
        Just(TileState::Bookkeeping),
        Just(TileState::Changed),
    ]
}

fn page_state() -> impl Strategy<Value = Option<PageState>> {
    prop_oneof![
        Just(None),
        Just(Some(PageState::Anonymous)),
        Just(Some(PageState::HugeAnonymous)),
        Just(Some(PageState::Swapped)),
    ]
}

proptest! {
    #[test]
    fn tiles_and_runs_give_the_same_as_byte_by_byte(
        first in 0_u64..5,
        lengths in prop::collection::vec((1_u64..40, tile_state()), 1..40),
        pages in prop::collection::vec((1_u64..4, page_state()), 0..60),
    ) {
        let mut at = BASE + 16 * first;
        let tiles: Vec<Tile> = lengths
            .into_iter()
            .map(|(words, state)| {
                let tile = Tile { start: at, length: 16 * words, state };
                at += tile.length;
                tile
            })
            .collect();
        let mut page = BASE;
        let mut runs = Vec::new();
        for (count, state) in pages {
            let end = page + count * PAGE;
            runs.extend(state.map(|state| PageRun { start: page, end, state }));
            page = end;
        }
        let presence = Presence::new(runs);
        let found = fast(&presence, &tiles);
        prop_assert_eq!(found[0].sums, naive(&presence, &tiles));
        prop_assert_eq!(found[0].end, at);
    }
}

#[test]
fn a_heap_that_was_read_wrong_leaves_nothing() {
    let presence = Presence::new(vec![PageRun {
        start: BASE,
        end: BASE + 4 * PAGE,
        state: PageState::Anonymous,
    }]);
    let live = |start: u64| Tile {
        start,
        length: PAGE,
        state: TileState::Live { block: PAGE },
    };
    let mut extents = Extents::new(&presence, PAGE);
    extents.start(BASE);
    extents.tile(live(BASE));
    extents.finish(false);
    extents.start(BASE);
    extents.tile(live(BASE));
    extents.start(BASE + PAGE);
    extents.tile(live(BASE + PAGE));
    extents.finish(true);
    let found = extents.into_seen().extents;
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].start, BASE + PAGE);
    assert_eq!(found[0].sums.total().resident, PAGE);
}
