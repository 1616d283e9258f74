//! What a setting gained in programs of a kind decides whether it is advised before a run.

use super::*;
use pagewise_model::account::{ALLOCATOR, COLLECTOR};

/// A run of 2 s with this share of its time in code of this kind, by a process of this name.
fn spending(part: &str, share: f64, kind: AllocatorKind, name: &str) -> Findings {
    let mut findings = run(1900, 100, 2_000);
    findings.allocators = vec![allocator(kind, "22.11.0")];
    findings.by_thread[0].comm = name.into();
    let time = Estimate {
        value: share * 2e9,
        low: share * 1.8e9,
        high: share * 2.2e9,
    };
    findings.account.cpu = vec![
        TimePart::plain(
            "own",
            "the program's own code",
            Estimate::exact((0.97 - share) * 2e9),
        ),
        TimePart::plain(part, "", time),
    ];
    findings
}

fn with_mimalloc(findings: Findings) -> Findings {
    let around = Surroundings {
        libraries: vec![(AllocatorKind::Mimalloc, "/lib/other.so".into())],
        ..Surroundings::default()
    };
    conclude(findings, &Rules::shipped().expect("shipped rules"), &around)
}

fn advised(answer: &Findings) -> Vec<&str> {
    let advice = answer.advice.iter();
    let with_settings = advice.filter(|one| !one.settings.0.is_empty());
    with_settings.map(|one| &*one.rule).collect()
}

#[test]
fn what_helped_nearly_all_programs_of_a_kind_is_advised_at_small_shares() {
    for share in [0.105, 0.13, 0.16, 0.3] {
        let answer = concluded(spending(COLLECTOR, share, AllocatorKind::Go, "server"));
        assert!(
            answer.verdict.contains("times as fast"),
            "{}",
            answer.verdict
        );
        assert_eq!(advised(&answer), ["go.rarer-collections"], "{share}");
        let one = &answer.advice[0];
        let caveat = one.caveat.as_deref().unwrap_or_default();
        assert!(
            caveat.contains("such programs that were measured"),
            "{caveat}"
        );
        assert!(
            one.predicted_speedup.covers(1.3),
            "{:?}",
            one.predicted_speedup
        );
    }
}

#[test]
fn a_short_run_gains_by_what_helped_nearly_all() {
    let of = |millis: u64| {
        let mut findings = spending(COLLECTOR, 0.15, AllocatorKind::Go, "server");
        let part = millis as f64 / 2000.0;
        findings.cost = run(millis * 19 / 20, millis / 20, 200).cost;
        for one in &mut findings.account.cpu {
            one.time = one.time.scaled(part);
        }
        advised(&concluded(findings)).join(" ")
    };
    assert_eq!(of(250), "go.rarer-collections", "38 ms in its collector");
    assert_eq!(of(120), "");
}

#[test]
fn what_helped_some_programs_of_a_kind_alone_is_tried() {
    for share in [0.16, 0.3, 0.5] {
        let answer = concluded(spending(COLLECTOR, share, AllocatorKind::V8, "node"));
        assert!(advised(&answer).is_empty(), "{:?}", answer.advice);
        let message = &answer.verdict;
        assert!(message.contains("--prove tries"), "{message}");
    }
}

#[test]
fn a_kind_is_that_of_the_process_where_enough_were_measured() {
    let of = |name: &str| {
        let findings = spending(ALLOCATOR, 0.2, AllocatorKind::Glibc, name);
        advised(&with_mimalloc(findings)).join(" ")
    };
    assert_eq!(of("perl"), "speed.mimalloc");
    // Of six Lua programs two gained less than a tenth.
    assert_eq!(of("lua5.4"), "");
    assert_eq!(of("python3"), "");
}

/// Small objects of a Python that was told to take them from malloc: 17 % in malloc and free, ×1.23 without.
#[test]
fn python_is_given_its_own_allocator_back() {
    let with = |value: Option<&str>| {
        let mut findings = spending(ALLOCATOR, 0.17, AllocatorKind::Cpython, "python3");
        let glibc = allocator(AllocatorKind::Glibc, "2.36");
        findings.allocators.insert(0, glibc);
        let settings = &mut findings.allocators[1].settings;
        settings.extend(value.map(|value| ("PYTHONMALLOC".to_owned(), value.to_owned())));
        with_mimalloc(findings)
    };
    let answer = with(Some("malloc"));
    assert_eq!(advised(&answer), ["python.own-allocator"]);
    let words = "One setting, no rebuild: about 1.2";
    assert!(answer.verdict.contains(words), "{}", answer.verdict);
    for decided in [None, Some("mimalloc"), Some("pymalloc")] {
        assert!(advised(&with(decided)).is_empty(), "{decided:?}");
    }
}
