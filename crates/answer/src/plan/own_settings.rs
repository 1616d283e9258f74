//! Settings of allocators and runtimes that the user has made: named where they may be the cause, and
//! taken away as an arm of a proof.

use super::phrases;
use super::prediction::ANY_GAIN;
use super::symptom::Symptom;
use pagewise_faults::runtimes::Runtimes;
use pagewise_model::advice::{Advice, Risk, Setting, Settings};
use pagewise_model::allocator::{Allocator, AllocatorKind};
use pagewise_model::findings::Findings;
use pagewise_model::units::Bytes;
use std::collections::BTreeMap;

/// The variable of glibc's tunables; the others of a family are listed by their names.
const TUNABLES: &str = "GLIBC_TUNABLES";
/// glibc's settings each of which ends the adaptation of its thresholds (malloc/malloc.c:
/// do_set_mmap_threshold, do_set_trim_threshold, do_set_top_pad, do_set_mmaps_max).
pub(super) const FREEZING: [&str; 8] = [
    "MALLOC_MMAP_MAX_",
    "MALLOC_MMAP_THRESHOLD_",
    "MALLOC_TOP_PAD_",
    "MALLOC_TRIM_THRESHOLD_",
    "glibc.malloc.mmap_max",
    "glibc.malloc.mmap_threshold",
    "glibc.malloc.top_pad",
    "glibc.malloc.trim_threshold",
];

/// For each family, its settings taken out of the environment.
pub(super) fn without(findings: &Findings) -> Vec<Advice> {
    let found = findings.allocators.iter();
    found.filter_map(without_those_of).collect()
}

fn without_those_of(allocator: &Allocator) -> Option<Advice> {
    let (names, changes) = removals(allocator);
    (!changes.is_empty()).then(|| Advice {
        rule: format!("own.without-{}-settings", family(allocator.kind)),
        cures: vec![Symptom::Runtime.id().to_owned()],
        headline: phrases::take_away(names.join(", ")),
        reason: phrases::taken_away(),
        settings: Settings(changes),
        manual: None,
        predicted_speedup: ANY_GAIN,
        faults_avoided: 0.0,
        rss_price: Bytes(0),
        risk: Risk::Medium,
        caveat: Some(phrases::taken_away_caveat()),
    })
}

/// What to name, and the changes of variables that take the settings away.
fn removals(allocator: &Allocator) -> (Vec<String>, Vec<Setting>) {
    let settings = &allocator.settings;
    let mut names = Vec::new();
    let mut changes = Vec::new();
    let (of_malloc, others): (Vec<_>, Vec<_>) = settings
        .iter()
        .filter(|(name, _)| name.starts_with("glibc."))
        .partition(|(name, _)| name.starts_with("glibc.malloc."));
    if !of_malloc.is_empty() {
        names.extend(of_malloc.iter().map(|(name, _)| (*name).clone()));
        let left: Vec<String> = others
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        changes.push(changed(TUNABLES, &left.join(":")));
    }
    for (name, value) in variables(settings) {
        match left_of(allocator.kind, name, value) {
            Some(left) if left == *value => {}
            Some(left) => {
                names.push(name.clone());
                changes.push(changed(name, &left));
            }
            None => {
                names.push(name.clone());
                changes.push(changed(name, ""));
            }
        }
    }
    (names, changes)
}

fn changed(name: &str, value: &str) -> Setting {
    let name = name.to_owned();
    match value {
        "" => Setting::Unset { name },
        value => Setting::Env {
            name,
            value: value.to_owned(),
        },
    }
}

/// Settings that are variables of the environment; the others are tunables, options, and functions
/// that the program calls. Libraries that are preloaded are no settings of an allocator.
fn variables(settings: &BTreeMap<String, String>) -> impl Iterator<Item = (&String, &String)> {
    settings.iter().filter(|(name, _)| {
        let is_option = name.starts_with('-') || name.ends_with("()");
        !name.starts_with("glibc.") && !is_option && *name != "LD_PRELOAD"
    })
}

/// What is left of a variable that holds other things as well; `None` if it is all about memory.
fn left_of(kind: AllocatorKind, name: &str, value: &str) -> Option<String> {
    let words = |keep: &dyn Fn(&str) -> bool| {
        let left = value.split_whitespace().filter(|word| keep(word));
        left.collect::<Vec<_>>().join(" ")
    };
    match kind {
        AllocatorKind::Jvm => Some(words(&|word| {
            !["-XX:", "-Xm", "-Xss"]
                .iter()
                .any(|start| word.starts_with(start))
        })),
        AllocatorKind::V8 => Some(words(&|word| {
            !word.contains("-space") && !word.contains("_space")
        })),
        AllocatorKind::Go if name == "GODEBUG" => Some(value.to_owned()),
        _ => None,
    }
}

fn family(kind: AllocatorKind) -> String {
    let runtimes = Runtimes::shipped();
    let name = runtimes.name(kind).map(str::to_lowercase);
    name.unwrap_or_else(|| format!("{kind:?}").to_lowercase())
}

/// Lines for a finding about the memory of these allocators: what the user has set for them.
pub(super) fn evidence(allocators: &[&Allocator]) -> Vec<String> {
    let mut lines = Vec::new();
    for allocator in allocators {
        let set = allocator.settings.iter();
        let set = set.filter(|(name, _)| *name != "LD_PRELOAD");
        let message: Vec<String> = set
            .map(|(name, value)| match value.as_str() {
                "" => name.clone(),
                value => format!("{name}={value}"),
            })
            .collect();
        if message.is_empty() {
            continue;
        }
        lines.push(phrases::in_force(message.join(", ")));
        let mut names = allocator.settings.keys();
        if names.any(|name| FREEZING.contains(&name.as_str())) {
            lines.push(phrases::adaptation_is_off());
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allocator(kind: AllocatorKind, settings: &[(&str, &str)]) -> Allocator {
        let settings = settings.iter();
        let settings = settings.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Allocator {
            kind,
            version: None,
            evidence: String::new(),
            settings: settings.collect(),
            is_static: false,
            ..Default::default()
        }
    }

    fn changes(kind: AllocatorKind, settings: &[(&str, &str)]) -> Vec<(String, Option<String>)> {
        let change = |setting: &Setting| match setting {
            Setting::Env { name, value } => (name.clone(), Some(value.clone())),
            Setting::Unset { name } => (name.clone(), None),
            other => panic!("{other:?}"),
        };
        removals(&allocator(kind, settings))
            .1
            .iter()
            .map(change)
            .collect()
    }

    fn change(name: &str, value: Option<&str>) -> (String, Option<String>) {
        (name.to_owned(), value.map(str::to_owned))
    }

    #[test]
    fn only_what_is_about_memory_is_taken_away() {
        let own = [
            ("MALLOC_TRIM_THRESHOLD_", "65536"),
            ("glibc.cpu.x86_rep_movsb_threshold", "4096"),
            ("glibc.malloc.perturb", "85"),
            ("LD_PRELOAD", "/time.so"),
        ];
        assert_eq!(
            changes(AllocatorKind::Glibc, &own),
            [
                change(
                    "GLIBC_TUNABLES",
                    Some("glibc.cpu.x86_rep_movsb_threshold=4096")
                ),
                change("MALLOC_TRIM_THRESHOLD_", None)
            ]
        );
        let java = [("JAVA_TOOL_OPTIONS", "-Xmx24m -Dx=y"), ("-Xmx", "24m")];
        assert_eq!(
            changes(AllocatorKind::Jvm, &java),
            [change("JAVA_TOOL_OPTIONS", Some("-Dx=y"))]
        );
        let go = [
            ("GODEBUG", "gctrace=1"),
            ("GOGC", "off"),
            ("GOMEMLIMIT", "22MiB"),
        ];
        assert_eq!(
            changes(AllocatorKind::Go, &go),
            [change("GOGC", None), change("GOMEMLIMIT", None)]
        );
        assert!(changes(AllocatorKind::V8, &[("NODE_OPTIONS", "--no-warnings")]).is_empty());
    }

    #[test]
    fn a_threshold_that_the_user_set_is_named() {
        let found = allocator(AllocatorKind::Glibc, &[("MALLOC_TRIM_THRESHOLD_", "65536")]);
        let lines = evidence(&[&found]);
        assert!(
            lines[0].contains("MALLOC_TRIM_THRESHOLD_=65536"),
            "{lines:?}"
        );
        assert!(lines[1].contains("adapt"), "{lines:?}");
        assert!(evidence(&[&allocator(AllocatorKind::Go, &[])]).is_empty());
    }
}
