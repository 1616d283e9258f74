//! The engines compared with the plain one, over random machines, mappings and accesses.

use super::*;
use proptest::prelude::*;

fn replacement() -> impl Strategy<Value = Replacement> {
    prop_oneof![
        Just(Replacement::Lru),
        Just(Replacement::TreePlru),
        Just(Replacement::Fifo),
        Just(Replacement::Random),
    ]
}

/// An array with few entries, so that short runs fill it.
fn array(holds: &'static [machine::Size], wide: bool) -> impl Strategy<Value = Array> {
    let ways = if wide {
        prop_oneof![
            Just(1_u32),
            Just(3),
            Just(4),
            Just(8),
            Just(12),
            Just(16),
            Just(24),
            Just(32)
        ]
        .boxed()
    } else {
        prop_oneof![Just(1_u32), Just(2), Just(3), Just(4)].boxed()
    };
    (ways, 0_u32..3, replacement(), 0_u32..2, any::<bool>()).prop_map(
        move |(ways, sets, replacement, pairs, is_xor)| {
            let sets = if ways > 16 { 0 } else { sets };
            let replacement = if ways.is_power_of_two() || replacement != Replacement::TreePlru {
                replacement
            } else {
                Replacement::Lru
            };
            Array {
                holds: holds.to_vec(),
                entries: ways << sets,
                ways,
                replacement,
                pages_per_entry: 1 << pairs,
                index: if is_xor {
                    machine::Index::Xor
                } else {
                    machine::Index::Linear
                },
            }
        },
    )
}

fn arrays(wide: bool) -> impl Strategy<Value = Vec<Array>> {
    use machine::Size::{Huge, Small};
    prop_oneof![
        array(&[Small, Huge], wide).prop_map(|both| vec![both]),
        (array(&[Small], wide), array(&[Huge], wide)).prop_map(|(small, huge)| vec![small, huge]),
        (array(&[Huge], wide), array(&[Small], wide)).prop_map(|(huge, small)| vec![huge, small]),
    ]
}

fn a_machine() -> impl Strategy<Value = Machine> {
    let levels = prop::collection::vec((arrays(false), any::<bool>()), 0..2);
    let walk = (0_u32..4, 1_u32..5, any::<bool>(), 0_u32..3);
    (
        levels,
        arrays(true),
        any::<bool>(),
        any::<bool>(),
        walk,
        2_u32..5,
    )
        .prop_map(
            |(upper, last, is_inclusive, is_apart, (caches, entries, through, nested), levels)| {
                let mut upper: Vec<Level> = upper
                    .into_iter()
                    .map(|(arrays, is_inclusive)| Level {
                        name: "upper".to_owned(),
                        hit_ns: 0.0,
                        is_inclusive,
                        arrays,
                    })
                    .collect();
                upper.push(Level {
                    name: "last".to_owned(),
                    hit_ns: 1.0,
                    is_inclusive,
                    arrays: last,
                });
                Machine {
                    name: "random".to_owned(),
                    small_page: 4096,
                    huge_page: 4096 * 8,
                    stages: if is_apart {
                        Stages::Separate
                    } else {
                        Stages::Product
                    },
                    levels: upper,
                    walk: Walk {
                        small_ns: 1.0,
                        huge_ns: 1.0,
                        reference_ns: 1.0,
                        levels,
                        caches: (1..levels.min(caches + 1))
                            .map(|remaining| WalkCache { remaining, entries })
                            .collect(),
                        nested_levels_cached: 1,
                        nested_entries: nested,
                        tables_need_second_stage: through,
                    },
                    change: machine::Change::default(),
                }
            },
        )
}

fn size() -> impl Strategy<Value = PageSize> {
    prop_oneof![Just(PageSize::Small), Just(PageSize::Huge)]
}

fn a_space() -> impl Strategy<Value = Space> {
    (size(), prop::option::of(size()), prop::bool::weighted(0.8)).prop_map(
        |(first, second, is_aligned)| Space {
            first,
            second,
            is_aligned,
        },
    )
}

/// An event in a simulation.
#[derive(Clone, Debug)]
enum Act {
    Access(u16, Vec<u64>),
    Remap(u16, Stage, u64, PageSize),
}

fn an_act() -> impl Strategy<Value = Act> {
    // Some memory at low addresses, some at high ones.
    let address = prop_oneof![
        0_u64..64 * 4096,
        (0_u64..256 * 4096).prop_map(|a| a + (0x7f << 40))
    ];
    let chunk = prop_oneof![0_u64..8, (0_u64..32).prop_map(|c| c + ((0x7f << 40) >> 15))];
    let stage = prop_oneof![Just(Stage::First), Just(Stage::Second)];
    prop_oneof![
        4 => (0_u16..2, prop::collection::vec(address, 1..40)).prop_map(|(s, a)| Act::Access(s, a)),
        1 => (0_u16..2, stage, chunk, size()).prop_map(|(s, t, c, p)| Act::Remap(s, t, c, p)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn the_exact_engine_equals_the_plain_one_access_for_access(
        machine in a_machine(),
        spaces in prop::array::uniform2(a_space()),
        acts in prop::collection::vec(an_act(), 1..30),
        joined in any::<bool>(),
    ) {
        machine.check().unwrap();
        let mut exact = Exact::new(&machine);
        let mut plain = naive::Naive::new(&machine);
        for space in spaces {
            prop_assert_eq!(exact.add(space), plain.add(space));
        }
        for act in acts {
            match act {
                Act::Access(space, addresses) if joined => {
                    let mut visits = Vec::new();
                    addresses.iter().for_each(|&address| Visit::push(&mut visits, address));
                    exact.access_visits(space, &visits);
                    plain.access(space, &addresses);
                    prop_assert_eq!(exact.counts(), plain.counts());
                }
                Act::Access(space, addresses) => {
                    for address in addresses {
                        exact.access(space, &[address]);
                        plain.access(space, &[address]);
                        prop_assert_eq!(exact.counts(), plain.counts(), "at {:#x}", address);
                    }
                }
                Act::Remap(space, stage, chunk, size) => {
                    exact.remap(space, stage, chunk, size);
                    plain.remap(space, stage, chunk, size);
                }
            }
        }
    }
}

/// Accesses that mix loops, jumps and neighbours, so that real machines hit and miss.
fn mixed(seed: u64, count: usize) -> Vec<u64> {
    let mut random = pagewise_stats::Random::seeded(seed);
    let mut at = 0_u64;
    (0..count)
        .map(|index| {
            at = match random.below(4) {
                0 => random.bits() % (1 << 30),
                1 => at + 64,
                2 => (index as u64 * 40_960) % (96 << 20),
                _ => random.bits() % (1 << 22),
            };
            0x7f00_0000_0000 + at
        })
        .collect()
}

#[test]
fn shipped_machines_are_simulated_like_the_plain_engine_does() {
    let accesses = mixed(7, 4_000);
    for (name, machine) in shipped().unwrap() {
        for space in [
            Space::native(PageSize::Small),
            Space::native(PageSize::Huge),
            Space::guest(PageSize::Huge, PageSize::Small),
            Space::guest(PageSize::Huge, PageSize::Huge),
        ] {
            let mut exact = Exact::new(&machine);
            let mut plain = naive::Naive::new(&machine);
            exact.add(space);
            plain.add(space);
            for (at, part) in accesses.chunks(1_000).enumerate() {
                exact.access(0, part);
                plain.access(0, part);
                let chunk = accesses[at * 17] >> machine.huge_shift();
                exact.remap(0, Stage::First, chunk, PageSize::Small);
                plain.remap(0, Stage::First, chunk, PageSize::Small);
                assert_eq!(
                    exact.counts(),
                    plain.counts(),
                    "{name}, {space:?}, part {at}"
                );
            }
        }
    }
}

#[test]
fn every_access_is_a_hit_or_a_refill() {
    let machine = Machine::named("golden-cove").unwrap();
    let mut engine = Exact::new(&machine);
    engine.add(Space::native(PageSize::Small));
    engine.access(0, &mixed(3, 50_000));
    let counts = engine.counts();
    let answered: u64 = counts.hits.iter().sum();
    assert_eq!(answered + counts.small() + counts.huge(), 50_000);
}

#[test]
fn a_machine_that_cannot_be_is_refused_with_the_reason() {
    let good = include_str!("../../machines/zen4.toml");
    let cases = [
        ("small_page = 4096", "small_page = 5000", "powers of two"),
        ("ways = 24", "ways = 25", "power of two"),
        ("ways = 24", "ways = 192", "at most 128"),
        (
            "holds = [\"small\", \"huge\"]",
            "holds = [\"small\"]",
            "last level must hold",
        ),
        ("levels = 4", "levels = 9", "levels"),
        ("remaining = 2", "remaining = 4", "must save"),
        (
            "stages = \"product\"",
            "stages = \"both\"",
            "unknown variant",
        ),
    ];
    for (from, to, reason) in cases {
        let error = Machine::parse(&good.replace(from, to))
            .unwrap_err()
            .to_string();
        assert!(error.contains(reason), "{to}: {error}");
    }
}
