use std::collections::{BTreeMap, VecDeque};

use proptest::prelude::*;

use super::*;
use pagewise_policy::catalogue::{Config, by_name, eviction};
use pagewise_policy::page::Span;
use pagewise_policy::replay::Replay;
use pagewise_policy::trace::{Reference, ReferenceKind};

const ALL: [&str; 8] = [
    "fifo",
    "clock",
    "2q",
    "s3fifo",
    "prefetch+fifo",
    "prefetch+s3fifo",
    "prefetch",
    "csr",
];

fn trace_of(uses: impl IntoIterator<Item = (u32, ReferenceKind)>) -> Trace {
    let references: Vec<_> = uses
        .into_iter()
        .map(|(page, kind)| Reference {
            page,
            region: 0,
            thread: 1,
            kind,
        })
        .collect();
    let count = references.iter().map(|one| one.page + 1).max().unwrap_or(0);
    let regions = BTreeMap::from([(0, Span { first: 0, count })]);
    Trace {
        references,
        regions,
        budget_pages: 10,
        page_bytes: 4096,
        ..Trace::default()
    }
}

fn reads(pages: impl IntoIterator<Item = u32>) -> Trace {
    trace_of(pages.into_iter().map(|page| (page, ReferenceKind::Read)))
}

fn outcome(trace: &Trace, name: &str, pages: u32) -> Outcome {
    let config = Config {
        pages: trace.pages(),
        budget: pages,
    };
    let policy = match eviction(name, &config) {
        Some(bare) => bare,
        None => by_name(name, &config, |_| Err(String::new())).expect("a policy"),
    };
    run(trace, &*policy, Memory::new(pages))
}

fn uses() -> impl Strategy<Value = Vec<(u32, ReferenceKind)>> {
    let kind = prop_oneof![
        Just(ReferenceKind::Read),
        Just(ReferenceKind::Read),
        Just(ReferenceKind::Write),
        Just(ReferenceKind::Write),
        Just(ReferenceKind::Write),
        Just(ReferenceKind::Remove),
    ];
    prop::collection::vec((0u32..60, kind), 1..800)
}

/// Refaults of first-in first-out, written directly from its definition.
fn naive_fifo(trace: &Trace, pages: usize) -> u64 {
    let mut queue = VecDeque::new();
    let mut stored = std::collections::HashSet::new();
    let mut refaults = 0;
    for reference in &trace.references {
        let page = reference.page;
        if reference.kind == ReferenceKind::Remove {
            queue.retain(|one| *one != page);
            stored.remove(&page);
        } else if !queue.contains(&page) {
            if queue.len() == pages {
                stored.insert(queue.pop_front().expect("full"));
            }
            refaults += u64::from(stored.remove(&page));
            queue.push_back(page);
        }
    }
    refaults
}

/// The minimum number of refaults, found by trying every victim.
fn exhaustive(uses: &[u32], resident: &mut Vec<u32>, seen: u64, pages: usize) -> u64 {
    let Some((page, rest)) = uses.split_first() else {
        return 0;
    };
    if resident.contains(page) {
        return exhaustive(rest, resident, seen, pages);
    }
    let refault = seen >> page & 1;
    let seen = seen | 1 << page;
    if resident.len() < pages {
        resident.push(*page);
        let least = exhaustive(rest, resident, seen, pages);
        resident.pop();
        return refault + least;
    }
    let least = (0..resident.len()).map(|victim| {
        let old = std::mem::replace(&mut resident[victim], *page);
        let refaults = exhaustive(rest, resident, seen, pages);
        resident[victim] = old;
        refaults
    });
    refault + least.min().expect("a full memory")
}

proptest! {
    #[test]
    fn every_policy_keeps_its_books(uses in uses(), pages in 2u32..40) {
        let trace = trace_of(uses);
        let bound = min(&trace, Memory { pages, batch: 1 });
        for name in ALL {
            let outcome = outcome(&trace, name, pages);
            prop_assert_eq!(outcome.uses, bound.uses);
            prop_assert_eq!(outcome.first_touches, bound.first_touches);
            prop_assert_eq!(outcome.pages_read, outcome.refaults + outcome.read_early);
            prop_assert!(outcome.pages_read >= bound.pages_read, "{} beats the bound", name);
            prop_assert!(outcome.pages_written <= outcome.evictions);
        }
    }

    #[test]
    fn fifo_is_first_in_first_out(uses in prop::collection::vec((0u32..30, any::<bool>()), 1..400), pages in 2usize..15) {
        let trace = trace_of(uses.into_iter().map(|(page, write)| {
            (page, if write { ReferenceKind::Write } else { ReferenceKind::Read })
        }));
        let expected = naive_fifo(&trace, pages);
        let memory = u32::try_from(pages).expect("small");
        prop_assert_eq!(outcome(&trace, "fifo", memory).refaults, expected);
    }

    #[test]
    fn min_is_optimal(uses in prop::collection::vec(0u32..6, 1..14), pages in 1usize..4) {
        let bound = min(&reads(uses.clone()), Memory { pages: u32::try_from(pages).expect("small"), batch: 1 });
        prop_assert_eq!(bound.refaults, exhaustive(&uses, &mut Vec::new(), 0, pages));
    }
}

/// A working set used repeatedly, with a scan in between each time.
fn scans() -> Trace {
    let mut state = 1u64;
    let mut random = move |below: u32| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        u32::try_from(state >> 33).expect("31 bits") % below
    };
    let mut pages: Vec<u32> = (0..20_000).collect();
    for round in 0..20 {
        pages.extend((0..6000).map(|_| random(2000)));
        pages.extend((0..1000).map(|page| 2000 + round * 800 + page));
    }
    reads(pages)
}

#[test]
fn scan_resistance_pays_where_scans_are() {
    let trace = scans();
    let [fifo, two_queue, s3fifo] =
        ["fifo", "2q", "s3fifo"].map(|name| outcome(&trace, name, 2400).refaults);
    assert!(s3fifo * 10 < fifo * 8, "s3fifo {s3fifo}, fifo {fifo}");
    assert!(two_queue * 10 < fifo * 8, "2q {two_queue}, fifo {fifo}");
}

#[test]
fn prefetching_a_sequence_leaves_few_waits() {
    let trace = reads((0..4).flat_map(|_| 0..20_000));
    let plain = outcome(&trace, "fifo", 10_000);
    let early = outcome(&trace, "prefetch+fifo", 10_000);
    assert_eq!(plain.refaults, 60_000);
    assert!(early.refaults < 600, "{}", early.refaults);
    assert!(early.read_in_vain < 600, "{}", early.read_in_vain);
}

/// A small PageRank: each edge page in order, and for each some vertex pages without order.
fn sweeps(vertices: u32, edges: u32, rounds: u32) -> Trace {
    let mut state = 7u64;
    let mut references = Vec::new();
    let mut touch = |page, region| {
        references.push(Reference {
            page,
            region,
            thread: 1,
            kind: ReferenceKind::Read,
        });
    };
    (0..vertices).for_each(|page| touch(page, 0));
    for _ in 0..rounds {
        for edge in 0..edges {
            touch(vertices + edge, 1);
            for _ in 0..4 {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                touch(u32::try_from(state >> 33).expect("31 bits") % vertices, 0);
            }
        }
    }
    let regions = BTreeMap::from([
        (
            0,
            Span {
                first: 0,
                count: vertices,
            },
        ),
        (
            1,
            Span {
                first: vertices,
                count: edges,
            },
        ),
    ]);
    Trace {
        references,
        regions,
        budget_pages: 10,
        page_bytes: 4096,
        ..Trace::default()
    }
}

#[test]
fn csr_keeps_vertices_and_part_of_the_edges() {
    let trace = sweeps(2000, 12_000, 8);
    let [two_queue, prefetch, csr] =
        ["2q", "prefetch+2q", "csr"].map(|name| outcome(&trace, name, 6000));
    assert!(
        csr.refaults * 20 < two_queue.refaults,
        "{csr:?} {two_queue:?}"
    );
    assert!(
        csr.refaults < prefetch.refaults * 11 / 10,
        "{csr:?} {prefetch:?}"
    );
    assert!(
        csr.pages_read * 10 < prefetch.pages_read * 8,
        "{csr:?} {prefetch:?}"
    );
}

fn replayed(recorded: &Trace, run_on: &Trace, pages: u32) -> Outcome {
    let config = Config {
        pages: run_on.pages(),
        budget: pages,
    };
    let inner = eviction("fifo", &config).expect("a policy");
    run(
        run_on,
        &Replay::new(recorded, inner, pages),
        Memory::new(pages),
    )
}

fn walk(seed: u64, length: usize) -> Vec<u32> {
    let mut state = seed;
    let mut page = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        u32::try_from(state >> 33).expect("31 bits") % 20_000
    };
    (0..length).map(|_| page()).collect()
}

#[test]
fn replay_reads_what_no_stride_foretells() {
    let all: Vec<u32> = (0..20_000).chain(walk(5, 60_000)).collect();
    let trace = reads(all);
    let plain = outcome(&trace, "fifo", 5000);
    let replay = replayed(&trace, &trace, 5000);
    assert!(
        replay.refaults * 10 < plain.refaults,
        "{replay:?} {plain:?}"
    );
}

#[test]
fn replay_of_the_run_itself_promises_little_in_another_order() {
    // A server's set of 7,000 pages, used ten times, each time in another order.
    let mut random = pagewise_stats::Random::seeded(9);
    let rounds = (0..10).flat_map(|_| {
        let mut set: Vec<u32> = (0..7000).collect();
        random.shuffle(&mut set);
        set
    });
    let trace = reads((0..20_000).chain(rounds));
    let plain = outcome(&trace, "2q", 5000).refaults;
    let same = replayed(&trace, &trace, 5000).refaults;
    let other = replayed(&in_another_order(&trace, 5000), &trace, 5000).refaults;
    assert!(same * 10 < plain, "{same} of {plain}");
    assert!(other * 10 > plain * 8, "{other} of {plain}");
}

#[test]
fn pages_of_a_file_are_waited_for_and_never_written() {
    let mut trace = reads((0..3).flat_map(|_| 0..1000));
    trace.files.insert(0);
    let bound = min(&trace, Memory::new(500));
    assert_eq!((bound.first_touches, bound.pages_written), (0, 0));
    // All of a first round, and what does not fit in each other.
    let least = 1000 + 2 * 500;
    assert!((least..least + 10).contains(&bound.refaults), "{bound:?}");
    for name in ALL {
        let outcome = outcome(&trace, name, 500);
        assert_eq!(outcome.first_touches, 0, "{name}");
        assert_eq!(outcome.pages_written, 0, "{name}");
        assert!(
            outcome.pages_read >= bound.pages_read,
            "{name}: {outcome:?}"
        );
    }
    let alone = outcome(&trace, "alone+2q", 500);
    assert_eq!((alone.read_early, alone.refaults), (0, alone.pages_read));
}

#[test]
fn replay_survives_a_run_that_goes_another_way() {
    let recorded = reads((0..20_000).chain(walk(5, 30_000)));
    let other = reads((0..20_000).chain(walk(99, 10_000)).chain(walk(5, 30_000)));
    let plain = outcome(&other, "fifo", 5000);
    let replay = replayed(&recorded, &other, 5000);
    // The first walk gains nothing and may cost a little; the second is recognised again.
    assert!(
        replay.refaults * 10 < plain.refaults * 6,
        "{replay:?} {plain:?}"
    );
    assert!(replay.read_in_vain < 10_000, "{replay:?}");
}

#[test]
fn a_sweep_that_comes_again_finds_a_part_of_itself() {
    let trace = reads((0..6).flat_map(|_| 0..8000));
    let [plain, streaming] =
        ["prefetch+2q", "prefetch"].map(|name| outcome(&trace, name, 4000).pages_read);
    // Each of five rounds reads all pages, or those that do not stay resident.
    assert!(plain >= 5 * 8000, "{plain}");
    assert!(streaming < 5 * 8000 * 65 / 100, "{streaming}");
}

#[test]
fn a_sweep_that_fits_takes_the_place_of_what_is_used_no_more() {
    let old = 10_000..14_000;
    let rounds = 12;
    let trace = reads(
        (0..3000)
            .chain(old)
            .chain((0..rounds).flat_map(|_| 0..3000)),
    );
    let read = outcome(&trace, "prefetch", 4000).pages_read;
    assert!(read < 3 * 3000, "{read} of {}", rounds * 3000);
}

/// One thread uses `hot` pages without order, another sweeps over `swept` others at the same time,
/// at `steps` pages per use of a hot one; all were filled in order before.
fn hot_set_beside_a_sweep(hot: u32, swept: u32, steps: u32, uses: u32) -> Trace {
    let mut state = 3u64;
    let mut trace = reads(0..hot + swept);
    let mut touch = |page, thread| {
        trace.references.push(Reference {
            page,
            region: 0,
            thread,
            kind: ReferenceKind::Read,
        });
    };
    for step in 0..steps * uses {
        touch(hot + step % swept, 1);
        if step % steps == 0 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            touch(u32::try_from(state >> 33).expect("31 bits") % hot, 2);
        }
    }
    trace
}

#[test]
fn a_hot_set_stays_beside_a_sweep_however_fast_that_is() {
    let uses = 16_000;
    for steps in [1, 4, 16] {
        let trace = hot_set_beside_a_sweep(2000, 6000, steps, uses);
        let [two_queue, prefetch] = ["2q", "prefetch"].map(|name| outcome(&trace, name, 4000));
        // These include the sweep's own waits.
        let waits = prefetch.refaults;
        assert!(waits * 10 < u64::from(uses), "{steps}: {prefetch:?}");
        assert!(waits * 20 < two_queue.refaults, "{steps}: {two_queue:?}");
    }
}

#[test]
fn a_hot_set_comes_in_blocks_and_scattered_pages_do_not() {
    let outcomes = |hot| {
        let trace = hot_set_beside_a_sweep(hot, 30_000, 4, 4000);
        ["prefetch+2q", "prefetch"].map(|name| outcome(&trace, name, 4000))
    };
    let [alone, blocks] = outcomes(2000);
    assert!(blocks.refaults * 4 < alone.refaults, "{blocks:?} {alone:?}");
    let [alone, blocks] = outcomes(200_000);
    assert!(
        blocks.pages_read * 10 < alone.pages_read * 13,
        "{blocks:?} {alone:?}"
    );
}
