//! The first line must not depend on how a run happens to measure its costs.

use super::open::computing;
use super::*;
use crate::plan::leads;
use crate::plan::wording::{When, words};
use pagewise_model::advice::Settings;

fn costs(symptom: Symptom, share: Estimate) -> Diagnosis {
    Diagnosis {
        share_of_cpu: Some(share),
        ..crate::plan::wording::words(symptom, None).found(Severity::Costly, &[], Vec::new())
    }
}

/// Findings with these costs, each known within a tenth of it.
fn found(costly: &[(Symptom, f64)]) -> Findings {
    let mut findings = run(500, 500, 0);
    let within = |share: f64| Estimate {
        value: share,
        low: 0.9 * share,
        high: 1.1 * share,
    };
    let costly = costly
        .iter()
        .map(|&(symptom, share)| costs(symptom, within(share)));
    findings.diagnoses = costly.collect();
    leads::order(&mut findings);
    findings.verdict = verdict::verdict(&findings, &[]);
    findings
}

#[test]
fn findings_of_like_size_are_named_together_in_one_order() {
    use Symptom::{ChurnMmap, FirstTouch, ForkTables, HotCollector, LockSpin, TlbFlush};
    for [low, high] in [
        [HotCollector, ChurnMmap],
        [FirstTouch, HotCollector],
        [LockSpin, ChurnMmap],
        [FirstTouch, ForkTables],
    ] {
        let one = found(&[(low, 0.24), (high, 0.20)]);
        let other = found(&[(high, 0.23), (low, 0.21)]);
        assert_eq!(one.diagnoses[0].id, other.diagnoses[0].id);
        let first = |answer: &Findings| answer.verdict[..30].to_owned();
        assert_eq!(first(&one), first(&other));
        for answer in [&one, &other] {
            assert!(
                answer.verdict.contains("About as much: "),
                "{}",
                answer.verdict
            );
            let names = |one: &Diagnosis| answer.verdict.contains(&one.headline);
            assert!(answer.diagnoses.iter().all(names), "{}", answer.verdict);
        }
    }
    let far = found(&[(FirstTouch, 0.30), (TlbFlush, 0.12)]);
    assert_eq!(far.diagnoses[0].id, "first_touch");
    assert!(!far.verdict.contains("About as much"), "{}", far.verdict);
}

#[test]
fn a_finding_leads_only_from_about_as_much_as_the_largest() {
    let first_with = |churn: f64| {
        let pair = [(Symptom::HotCollector, 0.4), (Symptom::ChurnBrk, churn)];
        found(&pair).diagnoses[0].id.clone()
    };
    assert_eq!(first_with(0.26), "collector.hot");
    assert_eq!(first_with(0.32), "churn.brk");
}

fn by_hand() -> Advice {
    concluded(touching(0.2)).advice.remove(0)
}

/// What a runtime returns to the kernel, its collector returns: the setting that keeps it leads, without one
/// the collector does. Node 20, objects that survive a little: 27 and 30 %.
#[test]
fn the_collector_leads_before_the_memory_that_it_returns_unless_a_setting_keeps_that() {
    let by_runtime = |share| Diagnosis {
        share_of_cpu: Some(Estimate::exact(share)),
        ..words(Symptom::ChurnMmap, Some(When::Runtime)).found(Severity::Costly, &[], Vec::new())
    };
    let first_with = |churn: Diagnosis, advice: Vec<Advice>| {
        let mut findings = run(500, 500, 0);
        let collector = costs(Symptom::HotCollector, Estimate::exact(0.3));
        (findings.diagnoses, findings.advice) = (vec![churn, collector], advice);
        leads::order(&mut findings);
        findings.diagnoses[0].id.clone()
    };
    assert_eq!(first_with(by_runtime(0.27), Vec::new()), "collector.hot");
    assert_eq!(first_with(by_runtime(0.33), Vec::new()), "collector.hot");
    assert_eq!(first_with(by_runtime(0.5), Vec::new()), "churn.mmap");
    let keeps = Advice {
        cures: vec!["churn.mmap".into()],
        settings: Settings(vec![Setting::Unset { name: "ANY".into() }]),
        ..by_hand()
    };
    assert_eq!(first_with(by_runtime(0.27), vec![keeps]), "churn.mmap");
    let by_malloc = costs(Symptom::ChurnMmap, Estimate::exact(0.27));
    assert_eq!(first_with(by_malloc, Vec::new()), "churn.mmap");
}

#[test]
fn what_is_unexplained_leads_alone_only() {
    let pair = [(Symptom::KernelUnexplained, 0.4), (Symptom::ChurnBrk, 0.2)];
    let answer = found(&pair);
    assert_eq!(answer.diagnoses[0].id, "churn.brk");
    assert!(
        !answer.verdict.contains("something other"),
        "{}",
        answer.verdict
    );
    let alone = found(&pair[..1]);
    assert_eq!(alone.diagnoses[0].id, "kernel.unexplained");
}

#[test]
fn a_kill_is_told_alone() {
    let mut findings = found(&[(Symptom::FirstTouch, 0.3)]);
    let killed = Diagnosis::named("limit.killed", Severity::Severe);
    findings.diagnoses.insert(0, killed);
    leads::order(&mut findings);
    let names: Vec<&str> = leads::named(&findings).map(|one| &*one.id).collect();
    assert_eq!(names, ["limit.killed"]);
    assert_eq!(findings.diagnoses[0].id, "limit.killed");
}

/// A program that computes, with first touches of this share of its 10 s.
fn touching(share: f64) -> Findings {
    let mut findings = computing(
        Estimate::exact(0.99 - share),
        &[("fault", "page faults", share)],
    );
    let nanos = Nanos::from_secs_f64(10.0 * share);
    findings.cost.system = nanos;
    findings.cost.user = Nanos(10_000_000_000) - nanos;
    findings.cost.minor_faults = 500_000;
    findings.by_cause = vec![Share {
        time: Some(nanos),
        ..super::share(Cause::FirstTouch, 500_000.0)
    }];
    findings.time.total_ns = Some(Estimate::exact(1e10 * share));
    concluded(findings)
}

#[test]
fn what_takes_little_of_a_program_that_computes_stands_beside_it() {
    for share in [0.051, 0.07, 0.095] {
        let answer = touching(share);
        let verdict = &answer.verdict;
        assert!(verdict.starts_with("Compute-bound: "), "{verdict}");
        assert!(verdict.contains("First use of new memory"), "{verdict}");
        assert_eq!(answer.diagnoses[0].id, "computing", "{verdict}");
    }
    assert!(touching(0.03).verdict.starts_with("Compute-bound: "));
    let large = touching(0.2).verdict;
    assert!(large.starts_with("First use of new memory"), "{large}");
}

/// A tree built and dropped with musl's allocator, 147 ms: no part costs 50 ms, all of it is memory's.
#[test]
fn what_takes_much_of_a_short_program_leads() {
    for (symptom, headline) in [
        (
            Symptom::HotAllocator,
            "Much time goes into the memory allocator",
        ),
        (Symptom::FirstTouch, "First use of new memory"),
    ] {
        let with = |share: f64, cpu: u64| {
            let mut findings = run(60, 90, 20_000);
            findings.cost.user = Nanos(cpu * 1_000_000);
            findings.cost.system = Nanos(0);
            let within = Estimate {
                value: share,
                low: 0.8 * share,
                high: 1.2 * share,
            };
            findings.diagnoses = vec![
                Diagnosis::named("open", Severity::Note),
                Diagnosis {
                    severity: Severity::Note,
                    ..costs(symptom, within)
                },
            ];
            leads::order(&mut findings);
            findings.verdict = verdict::verdict(&findings, &[]);
            findings
        };
        let answer = with(0.33, 147);
        let verdict = &answer.verdict;
        assert!(verdict.starts_with(headline), "{verdict}");
        assert!(
            verdict.ends_with("It used 147 ms of CPU time in all."),
            "{verdict}"
        );
        assert_eq!(answer.diagnoses[0].id, symptom.id());
        assert!(!with(0.33, 40).verdict.contains(headline));
        assert!(!with(0.1, 147).verdict.contains(headline));
    }
}
