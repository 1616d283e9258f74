use super::*;
use std::collections::HashSet;

fn take(workload: &mut dyn Workload, count: usize) -> Vec<u64> {
    let mut out = vec![0; count];
    workload.fill(&mut out);
    out
}

#[test]
fn each_generator_repeats_itself_and_stays_in_its_memory() {
    let extra = ["mcf-sweep", "mcf-heap"];
    for name in NAMES.iter().map(|(name, _)| *name).chain(extra) {
        let mut one = named(name, None, 5).unwrap();
        let mut other = named(name, None, 5).unwrap();
        assert_eq!(one.name(), name);
        let accesses = take(one.as_mut(), 50_000);
        // Taken in pieces, the stream is the same.
        let mut pieces = take(other.as_mut(), 12_345);
        pieces.extend(take(other.as_mut(), 50_000 - 12_345));
        assert!(accesses == pieces, "{name}");
        let memory = one.memory();
        for address in accesses {
            let is_inside = memory
                .iter()
                .any(|(start, bytes)| (*start..start + bytes).contains(&address));
            assert!(is_inside, "{name}: {address:#x} is outside of {memory:x?}");
        }
    }
}

#[test]
fn a_sweep_of_mcf_touches_every_huge_page_but_few_small_ones() {
    let mut mcf = Mcf::only(McfPhase::Sweep, 1);
    let group = take(&mut mcf, 900);
    let arcs: Vec<u64> = group.into_iter().step_by(3).collect();
    let huge: HashSet<u64> = arcs.iter().map(|a| a >> 25).collect();
    let small: HashSet<u64> = arcs.iter().map(|a| a >> 14).collect();
    assert_eq!((small.len(), huge.len()), (300, 52));
}

#[test]
fn a_chase_visits_every_line_once_a_round() {
    let mut chase = PointerChase::new("chase", 1 << 20, 9);
    let round = take(&mut chase, (1 << 20) / 64);
    let lines: HashSet<u64> = round.iter().map(|a| a / 64).collect();
    assert_eq!(lines.len(), (1 << 20) / 64);
}

#[test]
fn zipf_is_steep() {
    let mut random = pagewise_stats::Random::seeded(1);
    let ranks: Vec<u64> = (0..100_000)
        .map(|_| key_value::zipf(&mut random, 1 << 20))
        .collect();
    let top = ranks.iter().filter(|&&rank| rank < 1 << 10).count();
    // The first thousandth of a million keys has half of the mass: ln(2^10) / ln(2^20).
    assert!((45_000..56_000).contains(&top), "{top}");
}

fn replay(name: &str, addresses: &[u64]) -> Option<Replay> {
    let mut visits = Vec::new();
    addresses.iter().for_each(|&a| Visit::push(&mut visits, a));
    Replay::new(name, visits)
}

#[test]
fn a_replay_tells_its_visits_or_every_access_over_and_over() {
    let mut one = replay("a", &[0x1000, 0x1008, 0x2000]).unwrap();
    assert_eq!(one.round(), Some(3));
    let pages: Vec<u64> = take(&mut one, 8).iter().map(|a| a >> 12).collect();
    assert_eq!(pages, [1, 1, 2, 1, 1, 2, 1, 1]);
    let mut other = replay("a", &[0x1000, 0x1008, 0x2000]).unwrap();
    let mut visits = [Visit::default(); 3];
    other.visits(&mut visits);
    let found = visits.map(|visit| (visit.address(), visit.accesses()));
    assert_eq!(found, [(0x1000, 2), (0x2000, 1), (0x1000, 2)]);
}

#[test]
fn a_mix_runs_its_parts_in_turn() {
    let parts: Vec<(Box<dyn Workload>, u64)> = vec![
        (Box::new(replay("a", &[0x1000, 0x2000]).unwrap()), 3),
        (Box::new(replay("b", &[0x9000]).unwrap()), 2),
    ];
    let mut mix = Mix::new(parts);
    let pages: Vec<u64> = take(&mut mix, 11).iter().map(|a| a >> 12).collect();
    assert_eq!(pages, [1, 2, 1, 9, 9, 2, 1, 2, 9, 9, 1]);
    assert_eq!(mix.name(), "a+b");
}

#[test]
fn a_footprint_is_joined_to_stretches() {
    let mut footprint = Footprint::default();
    footprint.add([0x1_0000, 0x2_0008, 0x9_0000]);
    assert_eq!(
        footprint.pieces(),
        [(0x1_0000, 0x2_0000), (0x9_0000, 0x1_0000)]
    );
}
