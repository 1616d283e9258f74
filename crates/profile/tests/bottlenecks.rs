//! Each rule for known bottlenecks on profiles recorded from programs with such a bottleneck
//! (tests/bottlenecks/record): it finds its own, and is silent on the others.

use pagewise_formats::{folded, perf_script};
use pagewise_model::profile::{Profile, WeightUnit};
use pagewise_profile::{ProfileRules, summarise};
use std::path::{Path, PathBuf};

/// The expected findings in each recording; anything else is a false alarm.
const EXPECTED: [(&str, &[&str]); 14] = [
    ("io_scheduler.cpu", &["io_scheduler"]),
    // A loop device cannot be polled under any scheduler.
    ("io_scheduler.blocked", &["polling_absent"]),
    ("polling_absent.blocked", &["polling_absent"]),
    ("spinning.cpu", &["spinning"]),
    ("page_faults.cpu", &["page_faults"]),
    ("mmap_lock.blocked", &["mmap_lock"]),
    // Each mapping is touched.
    ("mmap_lock.cpu", &["page_faults"]),
    ("reclaim.cpu", &["reclaim"]),
    ("cpu_throttling.runnable", &["cpu_throttling"]),
    ("writeback.blocked", &["writeback"]),
    ("network_copy.cpu", &["network_copy"]),
    ("softirq.cpu", &["softirq"]),
    ("lockstep", &["lockstep"]),
    ("hot_cpu", &["hot_cpu"]),
];

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/bottlenecks")
}

/// Folded stacks after comments with the event and the host's settings.
fn stacks(text: &str) -> Profile {
    let (comments, stacks): (Vec<&str>, Vec<&str>) =
        text.lines().partition(|line| line.starts_with("# "));
    let mut profile = folded::read(stacks.join("\n").as_bytes()).expect("folded stacks");
    for comment in comments {
        if let Some(name) = comment.strip_prefix("# event ") {
            name.clone_into(&mut profile.events[0].name);
            profile.events[0].unit = WeightUnit::Nanoseconds;
        } else if let Some(setting) = comment.strip_prefix("# setting ") {
            let (name, value) = setting.split_once(" = ").expect("a value");
            let settings = &mut profile.host.settings;
            settings.insert(name.to_owned(), value.to_owned());
        }
    }
    profile
}

/// Times and CPUs, as perf script prints them: the text does not contain the frequency.
fn times(name: &str, text: &str) -> Profile {
    let mut profile = perf_script::read(text.as_bytes()).expect("perf script's text");
    profile.events[0].unit = WeightUnit::Nanoseconds;
    profile.events[0].frequency = Some(if name == "lockstep" { 100 } else { 99 });
    profile
}

fn recorded(name: &str) -> Profile {
    let read = |extension: &str| {
        std::fs::read_to_string(fixtures().join(format!("{name}.{extension}"))).ok()
    };
    match (read("folded"), read("script")) {
        (Some(text), _) => stacks(&text),
        (None, Some(text)) => times(name, &text),
        (None, None) => panic!("{name} was not recorded"),
    }
}

fn found(name: &str) -> Vec<String> {
    let rules = ProfileRules::shipped().expect("rules");
    let findings = summarise(&recorded(name), &rules);
    let ids = findings.diagnoses.into_iter();
    let mut ids: Vec<String> = ids.map(|d| d.id.replace("profile.", "")).collect();
    ids.sort();
    ids
}

/// Names of all recordings.
fn recordings() -> Vec<String> {
    let files = std::fs::read_dir(fixtures()).expect("recordings");
    let stem = |path: PathBuf| Some(path.file_stem()?.to_str()?.to_owned());
    let mut names: Vec<String> = files.filter_map(|file| stem(file.ok()?.path())).collect();
    names.sort();
    names
}

fn expected(name: &str) -> &'static [&'static str] {
    let known = EXPECTED.iter().find(|(known, _)| *known == name);
    known.map_or(&[], |(_, expected)| expected)
}

#[test]
fn each_bottleneck_is_found_only_where_it_was_recorded() {
    let names = recordings();
    let mut wrong: Vec<String> = names
        .iter()
        .map(|name| (name, found(name), expected(name)))
        .filter(|(_, found, expected)| found != expected)
        .map(|(name, found, expected)| format!("{name}: {found:?} instead of {expected:?}"))
        .collect();
    let missing = EXPECTED
        .iter()
        .filter(|(name, _)| !names.iter().any(|n| n == name));
    wrong.extend(missing.map(|(name, _)| format!("{name} is missing")));
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn every_rule_has_a_recording() {
    let text = std::fs::read_to_string(
        Path::new(env!("CARGO_MANIFEST_DIR")).join("rules/bottlenecks.toml"),
    )
    .expect("the rules");
    let ids = text.lines().filter_map(|line| {
        let id = line.strip_prefix("id = ")?;
        Some(id.trim_matches('"').to_owned())
    });
    let unseen: Vec<String> = ids
        .filter(|id| {
            !EXPECTED
                .iter()
                .any(|(_, expected)| expected.contains(&&**id))
        })
        .collect();
    assert!(unseen.is_empty(), "no recording shows {unseen:?}");
}
