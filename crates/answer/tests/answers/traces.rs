//! Traces of the kernel's paths: whole, in part, merged, compared.

use crate::held::{holds, unpacked};
use pagewise_formats::function_graph::{self, Summary};
use pagewise_traces::fault_paths::{
    self, Calibration, Class, Collector, Criteria, Goal, Input, Layer, Step, Sums, Total, estimate,
    layer_of,
};
use pagewise_traces::mine::CallSequences;
use std::path::Path;

fn traced(name: &str) -> (Collector, Summary) {
    traced_into(Collector::default(), name)
}

fn traced_into(mut collector: Collector, name: &str) -> (Collector, Summary) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/traces");
    let text = unpacked(&folder.join(name));
    let summary = function_graph::read(&*text, &mut collector).expect("readable");
    (collector, summary)
}

#[test]
fn of_traces_of_the_kernels_paths() {
    for (name, file) in [
        ("redis-6.1", "redis-6.1/trace.txt.zst"),
        ("tpcc-6.1", "tpcc-6.1/trace.txt.zst"),
        ("anon-4.18", "workloads-4.18/anon.txt.zst"),
        ("swap-6.1", "workloads-6.1/swap.txt.zst"),
        ("events-6.1", "workloads-6.1/events.txt.zst"),
        ("contend-6.1", "contend-6.1/contend.txt.zst"),
        ("anon-7.2", "workloads-7.2/anon.txt.zst"),
    ] {
        let (collector, summary) = traced(file);
        let calibration = estimate(&collector);
        holds(
            name,
            &fault_paths::analyse(&collector, &summary, calibration),
        );
    }
}

#[test]
fn of_two_traces() {
    let read = |file: &str| traced_into(Collector::for_comparison(), file);
    let (redis, tpcc) = (
        read("redis-6.1/trace.txt.zst"),
        read("tpcc-6.1/trace.txt.zst"),
    );
    let found = fault_paths::compare(
        side(&redis, "redis"),
        side(&tpcc, "tpcc"),
        Criteria::default(),
    );
    holds("redis-tpcc", &found);
    for (name, a, b) in [
        (
            "kernels",
            "workloads-4.18/anon.txt.zst",
            "workloads-7.2/anon.txt.zst",
        ),
        (
            "tpcc-contend",
            "tpcc-6.1/trace.txt.zst",
            "contend-6.1/contend.txt.zst",
        ),
        (
            "swap-events",
            "workloads-6.1/swap.txt.zst",
            "workloads-6.1/events.txt.zst",
        ),
    ] {
        let (a, b) = (read(a), read(b));
        let found = fault_paths::compare(side(&a, "a"), side(&b, "b"), Criteria::default());
        holds(&format!("{name}-diff"), &found);
    }
}

/// Calls of a layer, of a function inside them, of one kind of fault between two times.
#[test]
fn of_parts_of_a_trace() {
    let (whole, _) = traced("redis-6.1/trace.txt.zst");
    let calibration = estimate(&whole);
    let step = |goal: Goal| Step {
        goal,
        class: None,
        from_ns: None,
        to_ns: None,
    };
    let layer = layer_of("__alloc_pages").expect("a layer's function");
    let function = |name: &str| step(Goal::Function(name.to_owned()));
    let between = Step {
        class: Some(Class::Anonymous),
        from_ns: Some(2_000),
        to_ns: Some(20_000),
        ..step(Goal::Layer(Layer::Fault))
    };
    for (name, steps) in [
        ("layer", vec![step(Goal::Layer(layer))]),
        (
            "inside",
            vec![step(Goal::Layer(layer)), function("get_page_from_freelist")],
        ),
        ("between", vec![between.clone()]),
        (
            "function-between",
            vec![between, function("__mem_cgroup_charge")],
        ),
    ] {
        let collector = Collector::descending(steps, calibration);
        let (collector, summary) = traced_into(collector, "redis-6.1/trace.txt.zst");
        let found = fault_paths::analyse(&collector, &summary, calibration);
        assert!(found.faults > 0, "{name}");
        holds(&format!("redis-part-{name}"), &found);
    }
}

/// What the calls of faults have in common, in call order and with their callees.
#[test]
fn of_mined_calls() {
    for (name, file) in [
        ("anon-6.1", "workloads-6.1/anon.txt.zst"),
        ("anon-7.2", "workloads-7.2/anon.txt.zst"),
    ] {
        for (mut calls, suffix) in [
            (CallSequences::default(), "mined"),
            (CallSequences::with_nesting(), "mined-nested"),
        ] {
            let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/traces");
            let text = unpacked(&folder.join(file));
            let summary = function_graph::read(&*text, &mut calls).expect("readable");
            let database = calls.database(&summary.names);
            let sequences: Vec<(Vec<&str>, u64)> = database
                .sequences()
                .map(|(items, times)| {
                    (
                        items.iter().map(|&item| database.name(item)).collect(),
                        times,
                    )
                })
                .collect();
            holds(&format!("{name}-{suffix}"), &sequences);
        }
    }
}

/// Reports of two workloads, and of two kernels, merged.
#[test]
fn of_reports_put_together() {
    for (name, files) in [
        (
            "workloads",
            ["redis-6.1/trace.txt.zst", "tpcc-6.1/trace.txt.zst"],
        ),
        (
            "kernels",
            ["workloads-4.18/anon.txt.zst", "workloads-7.2/anon.txt.zst"],
        ),
    ] {
        let sums = files.map(|file| {
            let (collector, summary) = traced(file);
            Sums::new(&collector, &summary, estimate(&collector))
        });
        let costs: Vec<Calibration> = sums.iter().flat_map(|one| one.costs().to_vec()).collect();
        let mut total = Total::new(&costs);
        for one in &sums {
            total.add(one).expect("of one version");
        }
        let calibration = total.calibration();
        let (collector, summary, _) = total.finish();
        let found = fault_paths::analyse(&collector, &summary, calibration);
        holds(&format!("together-{name}"), &found);
    }
}

fn side<'a>((collector, summary): &'a (Collector, Summary), name: &'a str) -> Input<'a> {
    Input {
        name,
        label: name,
        collector,
        summary,
        calibration: estimate(collector),
    }
}
