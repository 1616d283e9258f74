//! Time in the allocator's own code.

use super::*;
use pagewise_model::account::ALLOCATOR;
use pagewise_model::proof::Arm;

/// A run of 2 s with this share of allocator time.
fn allocating(share: f64) -> Findings {
    let mut findings = run(1900, 100, 2_000);
    let time = Estimate {
        value: share * 2e9,
        low: share * 1.9e9,
        high: share * 2.1e9,
    };
    findings.account.cpu = vec![TimePart {
        places: vec!["_int_malloc".into(), "_int_free".into()],
        ..TimePart::plain(ALLOCATOR, "", time)
    }];
    findings
}

fn with_library(findings: Findings, library: AllocatorKind) -> Findings {
    let around = Surroundings {
        libraries: vec![(library, "/lib/other.so".into())],
        ..Surroundings::default()
    };
    conclude(findings, &Rules::shipped().expect("shipped rules"), &around)
}

#[test]
fn a_hot_allocator_is_told_and_another_is_tried() {
    let answer = with_library(allocating(0.5), AllocatorKind::Mimalloc);
    assert_eq!(answer.diagnoses[0].id, "allocator.hot");
    assert_eq!(answer.diagnoses[0].severity, Severity::Severe);
    let best = &answer.advice[0];
    assert_eq!(best.rule, "speed.mimalloc");
    assert_eq!(
        best.settings.0,
        [Setting::Preload {
            path: "/lib/other.so".into()
        }]
    );
    let gain = best.predicted_speedup;
    assert!(
        gain.low > 1.0 && gain.covers(1.3) && gain.high < 3.5,
        "{gain:?}"
    );
    assert_eq!(best.faults_avoided, 0.0);
}

#[test]
fn without_another_allocator_one_is_to_be_installed() {
    let answer = concluded(allocating(0.5));
    assert_eq!(answer.advice[0].rule, "speed.install");
    assert!(answer.advice[0].settings.0.is_empty());
}

#[test]
fn a_cheap_or_other_allocator_is_left_alone() {
    let little = with_library(allocating(0.06), AllocatorKind::Mimalloc);
    assert!(little.advice.is_empty(), "{:?}", little.advice);
    let grave = |one: &Diagnosis| one.severity >= Severity::Costly;
    assert!(
        !little.diagnoses.iter().any(grave),
        "{:?}",
        little.diagnoses
    );
    let mut of_jemalloc = allocating(0.5);
    of_jemalloc.allocators = vec![allocator(AllocatorKind::Jemalloc, "5.3.0")];
    let answer = with_library(of_jemalloc, AllocatorKind::Mimalloc);
    assert!(answer.advice.is_empty(), "{:?}", answer.advice);
    assert_eq!(answer.diagnoses[0].id, "allocator.hot");
}

/// Its extensions free with libc memory that a preloaded allocator returned: it would crash.
#[test]
fn php_is_given_no_other_allocator() {
    let mut of_php = allocating(0.5);
    of_php.allocators.push(allocator(AllocatorKind::Php, "8.2"));
    for answer in [
        with_library(of_php.clone(), AllocatorKind::Mimalloc),
        concluded(of_php),
    ] {
        assert_eq!(answer.diagnoses[0].id, "allocator.hot");
        let mut rules = answer.advice.iter().map(|one| &one.rule);
        assert!(rules.all(|rule| !rule.starts_with("speed.")), "{answer:?}");
    }
}

#[test]
fn what_the_command_fails_with_is_no_advice_any_more() {
    let advised = with_library(allocating(0.5), AllocatorKind::Mimalloc);
    let name = advised.advice[0].name();
    let proof = Proof {
        arms: vec![Arm {
            name: name.clone(),
            settings: advised.advice[0].settings.clone(),
            runs: Vec::new(),
            failed: Some("the command is killed by signal 11".into()),
        }],
        comparisons: Vec::new(),
        winner: None,
        confirmation: None,
        summary: "Not proved".into(),
        notes: Vec::new(),
    };
    let answer = proved(advised, proof);
    assert!(answer.advice.is_empty(), "{:?}", answer.advice);
    let message = format!("With '{name}', the command fails; see the proof.");
    assert!(answer.verdict.ends_with(&message), "{}", answer.verdict);
}

#[test]
fn a_cheap_allocators_rival_is_tried_and_not_promised() {
    let answer = with_library(allocating(0.12), AllocatorKind::Mimalloc);
    assert_eq!(answer.diagnoses[0].id, "allocator.hot");
    assert!(answer.advice.is_empty(), "{:?}", answer.advice);
    let tries = "No setting is sure to fix that; pagewise doctor --prove tries 'mimalloc'.";
    assert!(answer.verdict.ends_with(tries), "{}", answer.verdict);
}

#[test]
fn threads_that_share_musls_lock_are_told_to_link_another_allocator() {
    let mut findings = allocating(0.5);
    findings.allocators = vec![Allocator {
        is_static: true,
        ..allocator(AllocatorKind::Musl, "1.2.3")
    }];
    let answer = with_library(findings, AllocatorKind::Mimalloc);
    assert_eq!(answer.diagnoses[0].id, "allocator.hot");
    assert_eq!(answer.advice[0].rule, "musl.relink-for-speed");
    assert!(
        answer.verdict.contains("manual fixes are listed below"),
        "{}",
        answer.verdict
    );
}

#[test]
fn another_allocator_is_only_tried_where_the_current_one_may_take_little() {
    for share in [0.17, 0.21] {
        let answer = with_library(allocating(share), AllocatorKind::Mimalloc);
        assert_eq!(answer.diagnoses[0].id, "allocator.hot");
        assert!(answer.advice.is_empty(), "{:?}", answer.advice);
        let tries = "pagewise doctor --prove tries 'mimalloc'.";
        assert!(answer.verdict.ends_with(tries), "{}", answer.verdict);
    }
}
