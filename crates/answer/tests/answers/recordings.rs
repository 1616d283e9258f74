//! Recordings: their faults, their profile, and the differences between two of them.

use crate::held::{fixtures, holds, unpacked};
use pagewise_answer::conservation::contradictions;
use pagewise_answer::recording::{self, Analysis, Code};
use pagewise_compare::profile_diff::{DiffOptions, SettingRules, diff};
use pagewise_compare::run_diff;
use pagewise_formats::perf_data::PerfData;
use pagewise_model::contention::Contention;
use pagewise_model::event::{CpuMode, Event};
use pagewise_model::host::HostSnapshot;
use pagewise_model::loss::Losses;
use pagewise_model::profile::Profile;
use pagewise_model::stack::FrameKey;
use pagewise_model::symbol::{Name, NamedList};
use pagewise_profile::{ProfileRules, summarise};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::Path;

/// Names of functions by hexadecimal address; others are named by their address.
#[derive(Default)]
struct Named(BTreeMap<String, String>);

impl Named {
    fn new(recording: &str) -> Self {
        let bytes = unpacked(&fixtures().join("recordings/names.json.zst"));
        let mut all: BTreeMap<String, Self> = serde_json::from_slice::<BTreeMap<_, _>>(&bytes)
            .expect("names by recording")
            .into_iter()
            .map(|(name, of)| (name, Self(of)))
            .collect();
        all.remove(recording).expect("names of the recording")
    }

    /// For a caller, the address is inside its call, and the recorded one is where it returns.
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

pub fn analysed(name: &str) -> Analysis {
    let file = format!("recordings/{name}.data.zst");
    read(&fixtures().join(file), &mut Named::new(name))
}

fn read(path: &Path, code: &mut Named) -> Analysis {
    let bytes = unpacked(path);
    let data = PerfData::parse(&bytes).expect("a recording");
    recording::analyse(&data, code, |_| ())
}

fn answers(name: &str) {
    answers_of(name, &analysed(name));
}

/// The data of a profile about its run, apart from its samples.
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
    fn new(profile: &'a Profile) -> Self {
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
    assert_eq!(contradictions(&findings), [], "{name}");
    holds(name, &findings);
    let recorded = analysis.profile().map(Recorded::new);
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
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../formats/tests/fixtures");
    for name in ["plain", "stacks", "tracepoints", "pipe"] {
        let analysis = read(
            &folder.join(format!("{name}.data.zst")),
            &mut Named::default(),
        );
        answers_of(&format!("perf-{name}"), &analysis);
    }
}

/// Faults are ordinary samples if their causes are not requested.
#[test]
fn of_recordings_as_profiles() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../formats/tests/fixtures");
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
        holds(name, &Recorded::new(&profile));
    }
}

#[test]
fn of_programs_that_wait() {
    answers("pipes");
    answers("sleeps");
    answers("futex");
}

#[test]
fn of_threads_and_runtimes() {
    answers("threads");
    answers("php");
    answers("node");
}

#[test]
fn of_calls_files_and_limits() {
    for name in ["spawn", "stat", "mapped", "remap", "dontneed", "squeezed"] {
        answers(name);
    }
}

#[test]
fn of_two_runs() {
    let rules = SettingRules::shipped().expect("the rules are right");
    for (a, b) in [
        ("churn", "unprivileged"),
        ("fork", "huge"),
        ("kinds", "churn"),
        ("dontneed", "remap"),
        ("php", "node"),
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
