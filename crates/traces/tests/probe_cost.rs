//! Finds the tracer's cost in simulated traces, for which it is known.

use pagewise_formats::function_graph::{Summary, read_bytes};
use pagewise_traces::fault_paths::{
    Calibration, Collector, FaultPaths, Misfit, Refusal, Source, Sums, Total, analyse, calibrate,
    estimate,
};
use proptest::prelude::*;
use std::fmt::Write;

/// A generator without external state.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

/// The tracing cost of a call, ns.
#[derive(Clone, Copy, Debug)]
struct Cost {
    inside: u64,
    outside: u64,
}

/// How a simulated machine deviates from a constant cost per call.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Noise {
    None,
    /// By up to this many per cent either way, and ten times as much in one call of a hundred.
    Percent(u64),
    /// In this percentage of the faults every call costs two fifths.
    CheapFaults(u64),
}

const LEAVES: u64 = 12;
const CALLERS: u64 = 8;

struct Simulation {
    cost: Cost,
    noise: Noise,
    random: Random,
    text: String,
    /// Time of each fault in a root-only trace, ns.
    plain: Vec<u64>,
    /// Prefix of the functions' names: another kernel has other functions.
    prefix: &'static str,
}

impl Simulation {
    fn new(cost: Cost, noise: Noise, seed: u64) -> Self {
        Self {
            cost,
            noise,
            random: Random(seed),
            text: String::new(),
            plain: Vec::new(),
            prefix: "f",
        }
    }

    fn faults(mut self, count: u64) -> Self {
        for _ in 0..count {
            self.fault();
        }
        self
    }

    fn fault(&mut self) {
        let cheap =
            matches!(self.noise, Noise::CheapFaults(percent) if self.random.below(100) < percent);
        let mut inner = String::new();
        let (mut traced, mut real) = (0, 0);
        for _ in 0..5 + self.random.below(6) {
            let caller = self.random.below(CALLERS);
            // A caller's work does not depend on how often it calls.
            let mut work = 4 + caller * caller * 9;
            real += work;
            let mut leaves = String::new();
            for _ in 0..1 + self.random.below(3) {
                let leaf = self.random.below(LEAVES);
                let own = 2 + leaf * leaf * 5;
                let (inside, outside) = self.cost_of_call(cheap);
                real += own;
                work += own + inside + outside;
                line(
                    &mut leaves,
                    Some(own + inside),
                    &format!("    {}_leaf{leaf}();", self.prefix),
                );
            }
            let (inside, outside) = self.cost_of_call(cheap);
            line(
                &mut inner,
                None,
                &format!("  {}_caller{caller}() {{", self.prefix),
            );
            inner += &leaves;
            line(&mut inner, Some(work + inside), "  }");
            traced += work + inside + outside;
        }
        let own = 300 + self.random.below(200);
        line(&mut self.text, None, "handle_mm_fault() {");
        self.text += &inner;
        let root = own + self.cost.inside;
        line(&mut self.text, Some(root + traced), "}");
        self.plain.push(root + real);
    }

    fn cost_of_call(&mut self, cheap: bool) -> (u64, u64) {
        let Cost { inside, outside } = self.cost;
        let percent = match self.noise {
            Noise::Percent(most) => {
                let odd = if self.random.below(100) == 0 { 10 } else { 1 };
                100 - most + self.random.below(2 * most * odd + 1)
            }
            _ if cheap => 40,
            _ => 100,
        };
        (inside * percent / 100, outside * percent / 100)
    }

    fn read(&self) -> (Collector, Summary) {
        collected(&self.text)
    }

    fn root_only(&self) -> Collector {
        let mut text = String::new();
        for ns in &self.plain {
            line(&mut text, Some(*ns), "handle_mm_fault();");
        }
        collected(&text).0
    }

    fn median(&self) -> f64 {
        let mut sorted = self.plain.clone();
        sorted.sort_unstable();
        sorted[sorted.len() / 2] as f64
    }

    fn per_call(&self) -> f64 {
        (self.cost.inside + self.cost.outside) as f64
    }
}

fn line(text: &mut String, ns: Option<u64>, call: &str) {
    let span = ns.map_or(" ".repeat(12), |ns| {
        format!("{:12}", format!("{}.{:03} us", ns / 1000, ns % 1000))
    });
    writeln!(text, " 0)  a-1   | {span} |  {call}").expect("a string");
}

fn collected(text: &str) -> (Collector, Summary) {
    let mut collector = Collector::default();
    let summary = read_bytes(text.as_bytes(), &mut collector);
    (collector, summary)
}

fn report(simulation: &Simulation) -> FaultPaths {
    let (faults, summary) = simulation.read();
    analyse(&faults, &summary, estimate(&faults))
}

/// Whether the corrected median is within a tenth of the true one, or its interval contains it.
fn is_told(findings: &FaultPaths, truth: f64) -> bool {
    let found = findings.latency.corrected.p50_ns as f64;
    let near = (found - truth).abs() <= truth / 10.0;
    // A bucket of the histogram is one hundredth wide.
    let (low, high) = findings.latency.bounds.expect("corrected").p50_ns;
    near || (low as f64 * 0.99..=high as f64 * 1.01).contains(&truth)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    /// For any part of the cost inside the call: 4.18 has a tenth there, 6.1 half.
    #[test]
    fn the_cost_is_found_whichever_part_of_it_lands_inside(
        inside in 80_u64..1500, outside in 80_u64..1500, seed in any::<u64>()
    ) {
        let simulation = Simulation::new(Cost { inside, outside }, Noise::None, seed).faults(400);
        let found = estimate(&simulation.read().0);
        prop_assert_eq!(found.source, Source::OwnTrace);
        let apart = (found.per_call_ns - simulation.per_call()).abs();
        prop_assert!(apart <= found.error_ns, "{:?} against {}", found, simulation.per_call());
        prop_assert!(is_told(&report(&simulation), simulation.median()));
    }

    #[test]
    fn noise_widens_the_interval_and_leaves_the_truth_in_it(
        inside in 300_u64..1500, outside in 300_u64..1500, percent in 1_u64..15, seed in any::<u64>()
    ) {
        let simulation = Simulation::new(Cost { inside, outside }, Noise::Percent(percent), seed).faults(400);
        let found = report(&simulation);
        if found.calibration.corrects() {
            prop_assert!(is_told(&found, simulation.median()), "{:?}", found.calibration);
        }
    }

    #[test]
    fn a_cost_that_changes_is_withdrawn(
        inside in 300_u64..1500, outside in 300_u64..1500, percent in 15_u64..45, seed in any::<u64>()
    ) {
        let simulation = Simulation::new(Cost { inside, outside }, Noise::CheapFaults(percent), seed).faults(400);
        let found = report(&simulation);
        prop_assert_eq!(found.calibration.source, Source::Withdrawn);
        prop_assert_eq!(&found.latency.corrected, &found.latency.raw);
        prop_assert!(found.latency.bounds.is_none());
    }
}

const COST: Cost = Cost {
    inside: 670,
    outside: 670,
};

#[test]
fn faults_that_would_take_no_time_are_the_reason() {
    let found = report(&Simulation::new(COST, Noise::CheapFaults(41), 7).faults(500));
    let why = found.calibration.withdrawn.expect("withdrawn").misfit;
    assert!(
        matches!(why, Misfit::Clamped(share) if (0.3..0.5).contains(&share)),
        "{why:?}"
    );
}

#[test]
fn a_measure_of_the_same_workload_covers_the_estimate() {
    let simulation = Simulation::new(COST, Noise::None, 3).faults(500);
    let (faults, _) = simulation.read();
    let found = calibrate(&faults, &simulation.root_only()).expect("the same faults");
    assert_eq!(found.source, Source::RootOnly);
    assert!(
        (found.per_call_ns - 1340.0).abs() <= found.error_ns,
        "{found:?}"
    );
    let own = estimate(&faults).per_call_ns;
    assert!(
        (found.per_call_ns - own).abs() <= found.error_ns,
        "{found:?}"
    );
}

/// With `max_graph_depth = 1`, calls below the root still cost a sixth.
#[test]
fn a_trace_of_depth_one_is_no_measure() {
    let simulation = Simulation::new(COST, Noise::None, 3).faults(500);
    let mut depth = Simulation::new(COST, Noise::None, 3).faults(500);
    depth.plain = simulation.plain.iter().map(|ns| ns + 22 * 236).collect();
    let refused = calibrate(&simulation.read().0, &depth.root_only());
    assert!(
        matches!(refused, Err(Refusal::Disagrees { .. })),
        "{refused:?}"
    );
}

#[test]
fn a_trace_of_another_workload_is_no_measure() {
    let simulation = Simulation::new(COST, Noise::None, 3).faults(500);
    let mut other = Simulation::new(COST, Noise::None, 3).faults(500);
    for factor in [0, 5] {
        other.plain = simulation
            .plain
            .iter()
            .map(|ns| ns * factor + 400)
            .collect();
        let refused = calibrate(&simulation.read().0, &other.root_only());
        assert!(refused.is_err(), "{factor}: {refused:?}");
    }
}

#[test]
fn a_trace_with_calls_is_no_measure() {
    let (faults, _) = Simulation::new(COST, Noise::None, 3).faults(500).read();
    let refused = calibrate(&faults, &faults);
    assert!(
        matches!(refused, Err(Refusal::CallsInside(_))),
        "{refused:?}"
    );
}

fn stored(simulation: &Simulation) -> Sums {
    let (faults, summary) = simulation.read();
    Sums::new(&faults, &summary, estimate(&faults))
}

fn merged(parts: &[&Sums]) -> (FaultPaths, Sums) {
    let costs: Vec<Calibration> = parts
        .iter()
        .flat_map(|part| part.costs())
        .copied()
        .collect();
    let mut total = Total::new(&costs);
    for part in parts {
        total.add(part).expect("sums of this version");
    }
    let calibration = total.calibration();
    let (collector, summary, _) = total.finish();
    let findings = analyse(&collector, &summary, calibration);
    (findings, Sums::new(&collector, &summary, calibration))
}

/// Two kernels: tracing costs half as much again on the second.
fn kernels() -> [Simulation; 2] {
    let slow = Cost {
        inside: 900,
        outside: 1100,
    };
    let mut second = Simulation::new(slow, Noise::None, 5);
    second.prefix = "g";
    [
        Simulation::new(COST, Noise::None, 3).faults(300),
        second.faults(500),
    ]
}

#[test]
fn reports_of_two_kernels_are_each_corrected_by_their_own_cost() {
    let kernels = kernels();
    let (found, _) = merged(&[&stored(&kernels[0]), &stored(&kernels[1])]);
    assert_eq!(found.calibration.source, Source::Several);
    let mut plain = [&kernels[0].plain[..], &kernels[1].plain].concat();
    plain.sort_unstable();
    let truth = plain[plain.len() / 2] as f64;
    let median = found.latency.corrected.p50_ns as f64;
    assert!(
        (median - truth).abs() < truth / 10.0,
        "{median} against {truth}"
    );
    let alone: u64 = kernels
        .iter()
        .map(|kernel| report(kernel).latency.corrected.sum_ns)
        .sum();
    assert_eq!(found.latency.corrected.sum_ns, alone);
    let map: u64 = found
        .call_map
        .nodes
        .iter()
        .map(|node| node.corrected_self_ns)
        .sum();
    let maps = kernels.iter().map(|kernel| {
        let nodes = report(kernel).evidence.call_map.nodes;
        nodes.iter().map(|node| node.corrected_self_ns).sum::<u64>()
    });
    assert!(
        map.abs_diff(maps.sum()) < 100,
        "each path is corrected by its source's cost"
    );
    let roots = found
        .call_map
        .nodes
        .iter()
        .filter(|node| node.parent.is_none());
    assert_eq!(roots.count(), 1, "one root for the paths of both");
}

#[test]
fn merging_in_any_order_and_in_steps_adds_up_the_same() {
    let [a, b] = kernels().map(|kernel| stored(&kernel));
    let c = stored(&Simulation::new(COST, Noise::None, 11).faults(200));
    let figures = |(found, _): (FaultPaths, Sums)| {
        (
            found.faults,
            found.losses.clone(),
            found.latency.raw.clone(),
            found.latency.corrected.p50_ns,
        )
    };
    let flat = figures(merged(&[&a, &b, &c]));
    assert_eq!(figures(merged(&[&c, &b, &a])), flat);
    let first = merged(&[&b, &c]).1;
    assert_eq!(figures(merged(&[&a, &first])), flat);
    assert_eq!(figures(merged(&[&first, &a])), flat);
}
