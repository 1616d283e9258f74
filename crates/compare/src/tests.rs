//! Simulated experiments: how often the verdict is wrong, and how often the interval contains the
//! true value.

use super::*;
use pagewise_model::quantity::percent_change;
use pagewise_model::units::Nanos;
use pagewise_stats::{Random, signed_rank};
use proptest::prelude::*;

/// A machine with drift, heavy-tailed noise and occasional stalls.
struct Machine {
    random: Random,
    round: f64,
}

impl Machine {
    fn new(seed: u64) -> Self {
        Self {
            random: Random::seeded(seed),
            round: 0.0,
        }
    }

    fn uniform(&mut self) -> f64 {
        (self.random.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Student's t with three degrees of freedom, by Bailey's polar method.
    fn heavy(&mut self) -> f64 {
        loop {
            let (a, b) = (2.0 * self.uniform() - 1.0, 2.0 * self.uniform() - 1.0);
            let square = a * a + b * b;
            if square > 0.0 && square < 1.0 {
                return a * (3.0 * (square.powf(-2.0 / 3.0) - 1.0) / square).sqrt();
            }
        }
    }

    /// One run of a program that takes a second; `speed` 2 halves it.
    fn run(&mut self, speed: f64, faults: u64) -> RunCost {
        let drift = 1.0 + 0.1 * (self.round / 7.0).sin() + 0.004 * self.round;
        let stall = if self.uniform() < 0.05 {
            1.0 + self.uniform()
        } else {
            1.0
        };
        let cpu = drift * (0.01 * self.heavy()).exp() / speed;
        RunCost {
            wall: Nanos::from_secs_f64(cpu * stall * (0.02 * self.heavy()).exp()),
            user: Nanos::from_secs_f64(cpu * 0.6),
            system: Nanos::from_secs_f64(cpu * 0.4),
            minor_faults: faults,
            max_rss: Bytes::MIB,
            ..RunCost::default()
        }
    }

    /// Pairs in shuffled order until the rule stops.
    fn experiment(&mut self, speed: f64) -> (Vec<RunCost>, Vec<RunCost>, Comparison) {
        let stopping = Stopping::default();
        let (mut baseline, mut arm) = (Vec::new(), Vec::new());
        loop {
            let mut order = [false, true];
            self.random.shuffle(&mut order);
            for is_arm in order {
                let run = self.run(
                    if is_arm { speed } else { 1.0 },
                    if is_arm { 10 } else { 5000 },
                );
                if is_arm {
                    arm.push(run)
                } else {
                    baseline.push(run)
                }
                self.round += 0.5;
            }
            let comparison = compare("arm", &baseline, &arm, &Criteria::default());
            if stopping.enough(&comparison) {
                return (baseline, arm, comparison);
            }
        }
    }
}

fn share(experiments: u64, mut holds: impl FnMut(u64) -> bool) -> f64 {
    let count = (0..experiments).filter(|seed| holds(*seed)).count();
    count as f64 / experiments as f64
}

#[test]
fn identical_programs_are_rarely_called_different() {
    // Faults do decrease here, so the verdict is based on time alone. Faster and slower are
    // one-sided errors of 2.5 % each on each clock.
    let wrong = share(400, |seed| {
        let (.., comparison) = Machine::new(seed).experiment(1.0);
        comparison.verdict == Verdict::Faster
    });
    assert!(wrong <= 0.055, "{wrong}");
}

#[test]
fn a_gain_of_five_percent_is_found() {
    let found = share(200, |seed| {
        let (.., comparison) = Machine::new(seed).experiment(1.05);
        comparison.verdict == Verdict::Faster
    });
    assert!(found >= 0.95, "{found}");
}

#[test]
fn intervals_hold_the_truth_after_sequential_stopping() {
    let held = share(400, |seed| {
        Machine::new(seed).experiment(1.3).2.cpu_speedup.covers(1.3)
    });
    assert!(held >= 0.93, "{held}");
    let held = share(400, |seed| {
        Machine::new(seed)
            .experiment(1.3)
            .2
            .wall_speedup
            .covers(1.3)
    });
    assert!(held >= 0.93, "{held}");
}

#[test]
fn many_useless_arms_do_not_make_a_winner() {
    let criteria = Criteria::default();
    let wrong = share(200, |seed| {
        let mut machine = Machine::new(seed);
        let mut arms = vec![Vec::new(); 9];
        for _ in 0..15 {
            let mut order: Vec<usize> = (0..arms.len()).collect();
            machine.random.shuffle(&mut order);
            for arm in order {
                let run = machine.run(1.0, if arm == 0 { 5000 } else { 10 });
                arms[arm].push(run);
                machine.round += 0.1;
            }
        }
        let compare = |arm: &Vec<RunCost>| compare("arm", &arms[0], arm, &criteria);
        let mut comparisons: Vec<Comparison> = arms[1..].iter().map(compare).collect();
        correct_for_many(&mut comparisons, &criteria);
        comparisons
            .iter()
            .any(|comparison| comparison.verdict == Verdict::Faster)
    });
    assert!(wrong <= 0.06, "{wrong}");
}

fn runs(seconds: &[f64], faults: u64, rss: u64) -> Vec<RunCost> {
    seconds
        .iter()
        .map(|&wall| RunCost {
            wall: Nanos::from_secs_f64(wall),
            user: Nanos::from_secs_f64(wall * 0.5),
            system: Nanos::from_secs_f64(wall * 0.4),
            minor_faults: faults,
            max_rss: Bytes(rss),
            ..RunCost::default()
        })
        .collect()
}

const STEADY: [f64; 8] = [2.00, 2.01, 1.99, 2.02, 2.00, 1.98, 2.01, 2.00];

fn halved() -> Vec<f64> {
    STEADY.iter().rev().map(|seconds| seconds / 2.0).collect()
}

#[test]
fn a_clear_gain_is_told_in_words() {
    let baseline = runs(&STEADY, 10_000, 10 << 20);
    let arm = runs(&halved(), 700, 44 << 20);
    let comparison = compare("both knobs", &baseline, &arm, &Criteria::default());
    assert_eq!(comparison.verdict, Verdict::Faster);
    assert_eq!(
        sentence(&comparison),
        "2.00× faster in CPU time (95 % interval [1.99, 2.01], 8 pairs), faults −93 %, peak memory +34.0 MiB"
    );
}

#[test]
fn a_gain_without_fewer_faults_is_not_a_cure() {
    let baseline = runs(&STEADY, 10_000, 10 << 20);
    let arm = runs(&halved(), 9_950, 10 << 20);
    let strict = compare("arm", &baseline, &arm, &Criteria::default());
    assert_eq!(strict.verdict, Verdict::NoDifference);
    let lenient = Criteria {
        fewer_faults: false,
        ..Criteria::default()
    };
    assert_eq!(
        compare("arm", &baseline, &arm, &lenient).verdict,
        Verdict::Faster
    );
}

#[test]
fn memory_beyond_the_limit_and_slower_runs_are_refused() {
    let baseline = runs(&STEADY, 10_000, 10 << 20);
    let arm = runs(&halved(), 10, 900 << 20);
    let limit = Criteria {
        max_rss: Some(Bytes(500 << 20)),
        ..Criteria::default()
    };
    assert_eq!(
        compare("arm", &baseline, &arm, &limit).verdict,
        Verdict::TooMuchMemory
    );
    let reversed = compare("arm", &arm, &baseline, &limit);
    assert_eq!(reversed.verdict, Verdict::Slower);
    assert!(
        sentence(&reversed).starts_with("2.00× slower in elapsed time (95 % interval"),
        "{reversed:?}"
    );
}

#[test]
fn too_few_runs_decide_nothing() {
    let one = runs(&[2.0], 10_000, 1 << 20);
    let none = compare("arm", &one, &[], &Criteria::default());
    assert_eq!((none.verdict, none.pairs), (Verdict::Undecided, 0));
    let single = compare("arm", &one, &runs(&[1.0], 1, 1), &Criteria::default());
    assert_eq!(single.verdict, Verdict::Undecided);
    assert_eq!(sentence(&single), "too few runs to compare");
    let message = proof::summary(&[single], None, None, true);
    assert!(
        message.starts_with("Not proved: one run with 'arm' was 2.0 times as fast in CPU time"),
        "{message}"
    );
}

#[test]
fn few_pairs_decide_only_what_is_far_beyond_noise() {
    let criteria = Criteria::default();
    let of = |seconds: &[f64], count: usize, speed: f64| {
        let seconds = &seconds[..count];
        let faster: Vec<f64> = seconds.iter().rev().map(|second| second / speed).collect();
        let baseline = runs(seconds, 100_000, 1 << 20);
        compare("arm", &baseline, &runs(&faster, 700, 1 << 20), &criteria)
    };
    assert_eq!(of(&STEADY, 2, 5.7).verdict, Verdict::Undecided);
    let noisy = [2.0, 3.1, 2.4, 1.6, 2.9, 2.2];
    for count in 3..6 {
        assert_eq!(of(&STEADY, count, 5.7).verdict, Verdict::Faster, "{count}");
        assert_eq!(of(&STEADY, count, 0.5).verdict, Verdict::Slower, "{count}");
        assert_eq!(
            of(&STEADY, count, 1.01).verdict,
            Verdict::Undecided,
            "{count}"
        );
        assert_eq!(
            of(&noisy, count, 2.0).verdict,
            Verdict::Undecided,
            "{count}"
        );
    }
    assert_eq!(of(&noisy, 6, 2.5).verdict, Verdict::Faster);
    assert_eq!(
        sentence(&of(&STEADY, 2, 5.7)),
        "probably 5.70 times as fast (2 pairs of runs; 4 more pairs would prove it), \
         faults −99.30 %, peak memory unchanged"
    );
    // With several arms, a correction that removes the proof leaves it undecided.
    let mut two = vec![of(&STEADY, 3, 5.7), of(&STEADY, 3, 5.8)];
    correct_for_many(&mut two, &criteria);
    assert!(two.iter().all(|one| one.verdict == Verdict::Undecided));
}

#[test]
fn six_pairs_are_the_fewest_for_any_number_of_arms() {
    let differences: Vec<f64> = (1..=10).map(f64::from).collect();
    let six = usize::try_from(FEWEST_PAIRS).unwrap();
    assert!(signed_rank::interval(&differences[..six - 1]).is_none());
    assert!(signed_rank::interval(&differences[..six]).is_some());
    for arms in 1_u32..=40 {
        let count = usize::try_from(fewest_pairs(arms as usize, 0.05)).unwrap();
        let corrected = |count: usize| p_value(&vec![1.0; count]) * f64::from(arms);
        assert!(corrected(count) <= 0.05, "{arms}: {count}");
        assert!(
            count == six || corrected(count - 1) > 0.05,
            "{arms}: {count}"
        );
    }
}

#[test]
fn the_gain_is_checked_against_its_cause() {
    // 9,000 faults cannot cost 0.9 s.
    let (baseline, arm) = (runs(&STEADY, 10_000, 1), runs(&halved(), 1_000, 1));
    assert!(
        causal_doubt(&baseline, &arm)
            .unwrap()
            .contains("something else changed")
    );
    // 900,000 of about 1 µs can.
    let (baseline, arm) = (runs(&STEADY, 1_000_000, 1), runs(&halved(), 100_000, 1));
    assert_eq!(causal_doubt(&baseline, &arm), None);
    // A million faults without any effect are implausible too.
    let (baseline, arm) = (runs(&STEADY, 1_000_000, 1), runs(&STEADY, 100, 1));
    assert!(
        causal_doubt(&baseline, &arm)
            .unwrap()
            .contains("came back elsewhere")
    );
}

#[test]
fn holm_multiplies_the_smallest_most_and_keeps_the_order() {
    let baseline = runs(&STEADY, 10_000, 1);
    let template = compare(
        "arm",
        &baseline,
        &runs(&halved(), 1, 1),
        &Criteria::default(),
    );
    let with = |p_adjusted| Comparison {
        p_adjusted,
        ..template.clone()
    };
    let mut three = vec![with(0.03), with(0.01), with(0.04)];
    correct_for_many(&mut three, &Criteria::default());
    let adjusted: Vec<f64> = three
        .iter()
        .map(|comparison| comparison.p_adjusted)
        .collect();
    assert_eq!(adjusted, [0.06, 0.03, 0.06]);
    assert_eq!(three[0].verdict, Verdict::Undecided);
    assert_eq!(three[1].verdict, Verdict::Faster);
}

/// Checks a promise: with this many more pairs, the gain is proved.
#[test]
fn as_many_more_runs_as_were_promised_prove_it() {
    let criteria = Criteria::default();
    let (mut promised, mut kept) = (0_u32, 0_u32);
    for seed in 0..200 {
        let mut machine = Machine::new(seed);
        let mut pairs = |count: u32, into: &mut (Vec<RunCost>, Vec<RunCost>)| {
            for _ in 0..count {
                into.0.push(machine.run(1.0, 5_000));
                into.1.push(machine.run(3.0, 10));
                machine.round += 1.0;
            }
        };
        let mut runs = (Vec::new(), Vec::new());
        pairs(3, &mut runs);
        let first = compare("arm", &runs.0, &runs.1, &criteria);
        if let Some(found) = promise(&first, 1, &criteria) {
            promised += 1;
            pairs(found.more_pairs, &mut runs);
            let later = compare("arm", &runs.0, &runs.1, &criteria);
            kept += u32::from(later.verdict == Verdict::Faster);
        }
    }
    assert!(
        promised >= 150 && kept * 10 >= promised * 9,
        "{kept} of {promised}"
    );
}

/// Equal programs are seldom reported as probably faster: at most at one end of an 80 % interval on
/// either clock, and with a gain worth naming.
#[test]
fn little_is_promised_of_programs_that_are_alike() {
    let wrong = share(300, |seed| {
        let mut machine = Machine::new(seed);
        let mut runs = (Vec::new(), Vec::new());
        for round in 0..4 {
            let first = machine.run(1.0, 5_000);
            let second = machine.run(1.0, 10);
            let (a, b) = if round % 2 == 0 {
                (first, second)
            } else {
                (second, first)
            };
            runs.0.push(a);
            runs.1.push(b);
            machine.round += 1.0;
        }
        let found = compare("arm", &runs.0, &runs.1, &Criteria::default());
        promise(&found, 1, &Criteria::default()).is_some()
    });
    assert!(wrong <= 0.15, "{wrong}");
}

proptest! {
    /// Whatever was measured, no sentence contains an unknown number.
    #[test]
    fn no_sentence_tells_what_is_no_number(
        ends in proptest::collection::vec(
            prop_oneof![
                Just(0.0), Just(f64::MAX), Just(f64::INFINITY), Just(f64::NAN), Just(1.0),
                Just(-1.0), Just(1e-300), 0.01f64..20.0,
            ],
            9,
        ),
        pairs in 0u32..12,
        verdict in 0usize..5,
    ) {
        let of = |at: usize| Estimate { value: ends[at], low: ends[at + 1], high: ends[at + 2] };
        let verdicts = [
            Verdict::Faster, Verdict::NoDifference, Verdict::Slower, Verdict::TooMuchMemory,
            Verdict::Undecided,
        ];
        let comparison = Comparison {
            arm: "arm".to_owned(),
            wall_speedup: of(0),
            cpu_speedup: of(3),
            fault_ratio: of(6),
            rss_change_bytes: ends[2],
            p_adjusted: 1.0,
            pairs,
            verdict: verdicts[verdict],
        };
        let text = sentence(&comparison);
        for wrong in ["inf", "NaN", "∞", "[0.00", "179769"] {
            prop_assert!(!text.contains(wrong), "{text}");
        }
    }
}

#[test]
fn changes_in_words_do_not_round_to_all_or_nothing() {
    assert_eq!(percent_change(0.07), "−93 %");
    assert_eq!(percent_change(0.0002), "−99.98 %");
    assert_eq!(percent_change(1.0), "±0 %");
    assert_eq!(percent_change(1.042), "+4.2 %");
    assert_eq!(bytes_change(-2.0 * 1024.0 * 1024.0), "−2.00 MiB");
    assert_eq!(bytes_change(4096.0), "unchanged");
}

proptest! {
    #[test]
    fn a_slower_clock_and_swapped_arms_change_nothing_else(
        times in proptest::collection::vec((1_000u32..9_000_000, 1_000u32..9_000_000), 2..20),
        factor in 2u64..50,
    ) {
        let side = |scale: u64, of: fn(&(u32, u32)) -> u32| -> Vec<RunCost> {
            times.iter().map(|pair| {
                let time = Nanos(u64::from(of(pair)) * 1_000 * scale);
                RunCost { wall: time, user: time, minor_faults: 7, ..RunCost::default() }
            }).collect()
        };
        let (a, b) = (side(1, |p| p.0), side(1, |p| p.1));
        let criteria = Criteria::default();
        let plain = compare("arm", &a, &b, &criteria);
        let scaled = compare("arm", &side(factor, |p| p.0), &side(factor, |p| p.1), &criteria);
        let close = |x: f64, y: f64| (x / y - 1.0).abs() < 1e-9;
        prop_assert!(close(plain.wall_speedup.low, scaled.wall_speedup.low));
        prop_assert!(close(plain.wall_speedup.high, scaled.wall_speedup.high));
        let swapped = compare("arm", &b, &a, &criteria);
        prop_assert!(close(plain.wall_speedup.value, 1.0 / swapped.wall_speedup.value));
        prop_assert!(close(plain.wall_speedup.low, 1.0 / swapped.wall_speedup.high));
        prop_assert!(close(plain.p_adjusted, swapped.p_adjusted));
        prop_assert!(plain.wall_speedup.covers(plain.wall_speedup.value));
    }
}
