//! Which trials the first line names.

use super::*;

/// A Java program that touches fresh memory, or memory of another kind, where huge pages come on request.
fn of_java(cause: Cause) -> Findings {
    let mut findings = run(530, 280, 183_165);
    findings.by_cause = vec![share(cause, 183_000.0)];
    findings.allocators = vec![
        allocator(AllocatorKind::Glibc, "2.36"),
        allocator(AllocatorKind::Jvm, "17"),
    ];
    let huge_pages = ("thp.enabled".into(), "always [madvise] never".into());
    findings.host.settings.extend([huge_pages]);
    concluded(findings)
}

/// The C library's and Java's huge pages have one name.
#[test]
fn no_two_trials_have_one_name() {
    for cause in [Cause::FirstTouch, Cause::RefaultAfterDontneed] {
        let answer = of_java(cause);
        let rules = Rules::shipped().expect("shipped rules");
        let tried = trials(&answer, &rules, &Surroundings::default());
        let names: Vec<String> = tried.iter().map(Advice::name).collect();
        let mut unique = names.clone();
        unique.sort();
        unique.dedup();
        assert_eq!(unique.len(), names.len(), "{names:?}");
        let named = answer.verdict.matches("'huge pages'").count();
        assert!(named <= 1, "{}", answer.verdict);
    }
}

#[test]
fn settings_of_a_heap_are_not_named_for_memory_outside_of_it() {
    let verdict = of_java(Cause::FirstTouch).verdict;
    assert!(verdict.contains("'serial collector'"), "{verdict}");
    for cause in [Cause::Shared, Cause::FileCopy, Cause::FileMinor] {
        let verdict = of_java(cause).verdict;
        for of_heap in ["'one size'", "'serial collector'"] {
            assert!(!verdict.contains(of_heap), "{verdict}");
        }
    }
}
