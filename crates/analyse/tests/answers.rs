//! All that is said of recordings and traces in the repository, field by field: a change of an
//! answer shows here, wanted or not.
//!
//! `UPDATE_GOLDEN=1 cargo test -p pagewise-analyse --test answers` writes `fixtures/answers` anew.
//! Names of code are those that it had when it was recorded (`fixtures/recordings/names.json.zst`);
//! where it had none, they are made of addresses, for the files that ran are not there.

use pagewise_analyse::fault_paths::{
    self, Calibration, Class, Collector, Criteria, Goal, Input, Layer, Step, Sums, Total, estimate,
    layer_of,
};
use pagewise_analyse::profile::diff::{DiffOptions, SettingRules, diff};
use pagewise_analyse::profile::{ProfileRules, summarise};
use pagewise_analyse::recording::{self, Analysis, Code};
use pagewise_analyse::run_diff;
use pagewise_model::contention::Contention;
use pagewise_model::event::{CpuMode, Event};
use pagewise_model::formats::function_graph::{self, Summary};
use pagewise_model::formats::perf_data::PerfData;
use pagewise_model::host::HostSnapshot;
use pagewise_model::loss::Losses;
use pagewise_model::profile::Profile;
use pagewise_model::stack::FrameKey;
use pagewise_model::symbol::{Name, NamedList};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")
}

fn unpacked(path: &Path) -> Vec<u8> {
    let packed = std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    zstd::decode_all(&*packed).expect("it unpacks")
}

/// Where numbers differ by less, sums were added up in another order.
const SAME: f64 = 1e-9;

/// The first places where two documents differ.
fn differences(at: &str, now: &Value, then: &Value, found: &mut Vec<String>) {
    match (now, then) {
        (Value::Object(now), Value::Object(then)) => {
            let names: std::collections::BTreeSet<&String> =
                now.keys().chain(then.keys()).collect();
            for name in names {
                let of = |map: &serde_json::Map<String, Value>| map.get(name).cloned();
                let (now, then) = (of(now).unwrap_or_default(), of(then).unwrap_or_default());
                differences(&format!("{at}.{name}"), &now, &then, found);
            }
        }
        (Value::Array(now), Value::Array(then)) if now.len() == then.len() => {
            for (number, (now, then)) in now.iter().zip(then).enumerate() {
                differences(&format!("{at}[{number}]"), now, then, found);
            }
        }
        (Value::Number(a), Value::Number(b)) => {
            let (a, b) = (a.as_f64().unwrap_or(0.0), b.as_f64().unwrap_or(0.0));
            if (a - b).abs() > SAME * a.abs().max(b.abs()) {
                found.push(format!("{at}: {a}, was {b}"));
            }
        }
        _ if now == then => {}
        _ => found.push(format!("{at}: {now:.200}, was {then:.200}")),
    }
}

/// Holds a document against the one that was kept.
fn holds(name: &str, document: &impl Serialize) {
    let now = serde_json::to_value(document).expect("documents serialise");
    let file = fixtures().join(format!("answers/{name}.json.zst"));
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        let text = serde_json::to_vec(&now).expect("it is a document");
        let packed = zstd::encode_all(&*text, 19).expect("it packs");
        std::fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
        std::fs::write(&file, packed).expect("it is written");
    }
    let then: Value = serde_json::from_slice(&unpacked(&file)).expect("a document");
    let mut found = Vec::new();
    differences(name, &now, &then, &mut found);
    let first: Vec<&String> = found.iter().take(12).collect();
    assert!(
        found.is_empty(),
        "{} places differ (UPDATE_GOLDEN=1 where this is wanted): {first:#?}",
        found.len()
    );
}

/// Names of functions by address in hexadecimals; others are named by their address.
#[derive(Default)]
struct Named(BTreeMap<String, String>);

impl Named {
    fn of(recording: &str) -> Self {
        let bytes = unpacked(&fixtures().join("recordings/names.json.zst"));
        let mut all: BTreeMap<String, Self> = serde_json::from_slice::<BTreeMap<_, _>>(&bytes)
            .expect("names by recording")
            .into_iter()
            .map(|(name, of)| (name, Self(of)))
            .collect();
        all.remove(recording).expect("names of the recording")
    }

    /// Of a caller, the address is in its call and what was written down is where it returns.
    fn name(&self, address: u64) -> Option<&String> {
        let known = [address, address.wrapping_add(1)];
        known.iter().find_map(|at| self.0.get(&format!("{at:x}")))
    }
}

impl Code for Named {
    fn follow(&mut self, _: &Event<'_>) -> Option<Vec<u64>> {
        None
    }

    fn names(&mut self, keys: &[FrameKey]) -> NamedList {
        let mut named = NamedList::default();
        for key in keys {
            let module = match key.mode {
                CpuMode::Kernel => "[kernel]",
                _ => "program",
            };
            let by_address = || format!("at_{:x}", key.address >> 7);
            let name = Name::Known {
                functions: vec![
                    self.name(key.address)
                        .map_or_else(by_address, String::clone),
                ],
                module: module.to_owned(),
            };
            let name = named.names.intern(name);
            named.of.push(name);
        }
        named
    }

    fn note(&self) -> Option<String> {
        None
    }
}

fn analysed(name: &str) -> Analysis {
    let file = format!("recordings/{name}.data.zst");
    read(&fixtures().join(file), &mut Named::of(name))
}

fn read(path: &Path, code: &mut Named) -> Analysis {
    let bytes = unpacked(path);
    let data = PerfData::parse(&bytes).expect("a recording");
    recording::analyse(&data, code, |_| ())
}

fn answers(name: &str) {
    answers_of(name, &analysed(name));
}

/// What a profile says of its run beside its samples.
#[derive(Serialize)]
struct Recorded<'a> {
    command: &'a [String],
    observed: String,
    contention: Option<Contention>,
    host: &'a HostSnapshot,
    losses: &'a Losses,
    notes: &'a [String],
    counters: usize,
}

impl<'a> Recorded<'a> {
    fn of(profile: &'a Profile) -> Self {
        Self {
            command: &profile.command,
            observed: format!("{:?}", profile.observed),
            contention: profile.contention,
            host: &profile.host,
            losses: &profile.losses,
            notes: &profile.notes,
            counters: profile.counters.iter().map(|one| one.points.len()).sum(),
        }
    }
}

fn answers_of(name: &str, analysis: &Analysis) {
    let findings = analysis.findings().expect("the rules are right");
    holds(name, &findings);
    let recorded = analysis.profile().map(Recorded::of);
    holds(&format!("{name}-recorded"), &recorded);
    let rules = ProfileRules::shipped().expect("the rules are right");
    let profile = analysis.profile().map(|profile| summarise(profile, &rules));
    holds(&format!("{name}-profile"), &profile);
}

#[test]
fn of_each_kind_of_fault() {
    answers("kinds");
}

#[test]
fn of_memory_that_comes_and_goes() {
    answers("churn");
    answers("each");
    answers("unprivileged");
}

#[test]
fn of_allocators_huge_pages_and_forks() {
    answers("allocator");
    answers("huge");
    answers("fork");
}

#[test]
fn of_recordings_by_perf() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../model/tests/fixtures");
    for name in ["plain", "stacks", "tracepoints", "pipe"] {
        let analysis = read(
            &folder.join(format!("{name}.data.zst")),
            &mut Named::default(),
        );
        answers_of(&format!("perf-{name}"), &analysis);
    }
}

/// Faults are samples like any others where nobody asks for their causes.
#[test]
fn of_recordings_as_profiles() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../model/tests/fixtures");
    for (name, file) in [
        (
            "churn-as-profile",
            fixtures().join("recordings/churn.data.zst"),
        ),
        ("perf-plain-as-profile", folder.join("plain.data.zst")),
    ] {
        let bytes = unpacked(&file);
        let data = PerfData::parse(&bytes).expect("a recording");
        let profile = recording::profile(&data, &mut Named::default(), |_| ());
        holds(name, &Recorded::of(&profile));
    }
}

#[test]
fn of_programs_that_wait() {
    answers("pipes");
    answers("sleeps");
}

#[test]
fn of_two_runs() {
    let rules = SettingRules::shipped().expect("the rules are right");
    for (a, b) in [
        ("churn", "unprivileged"),
        ("fork", "huge"),
        ("kinds", "churn"),
    ] {
        let (one, other) = (analysed(a), analysed(b));
        let findings = |analysis: &Analysis| {
            let found = analysis.findings();
            found.expect("the rules are right")
        };
        let (fa, fb) = (findings(&one), findings(&other));
        let run = |name, findings| run_diff::Run {
            name,
            findings,
            contended: 1.0,
        };
        let runs = run_diff::compare(run(a, &fa), run(b, &fb), &rules);
        holds(&format!("{a}-{b}-runs"), &runs);
        let (Some(one), Some(other)) = (one.profile(), other.profile()) else {
            continue;
        };
        let options = DiffOptions {
            names: (a.to_owned(), b.to_owned()),
            event: None,
            shares: false,
            seed: 1,
        };
        let found = diff(one, other, &options, &rules).map_err(|error| error.to_string());
        holds(&format!("{a}-{b}-profiles"), &found);
    }
}

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

/// Reports of two workloads, and of two kernels, put together.
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
            Sums::of(&collector, &summary, estimate(&collector))
        });
        let costs: Vec<Calibration> = sums.iter().flat_map(|one| one.costs().to_vec()).collect();
        let mut total = Total::of(&costs);
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
