//! Faults that may be first touches as well as churn.

use super::*;

/// First touches as they look without recorded memory calls, with little knowledge of churn.
fn hardly_told(low: f64, high: f64) -> Findings {
    let mut findings = run(500, 500, 100_000);
    findings.by_cause = vec![Share {
        faults: Estimate {
            value: 95_000.0,
            low: 95_000.0 * (1.0 - high),
            high: 96_000.0,
        },
        ..share(Cause::FirstTouch, 95_000.0)
    }];
    findings.churn.refault_ratio = Some(Estimate {
        value: low,
        low,
        high,
    });
    concluded(findings)
}

#[test]
fn what_may_be_churn_as_well_as_first_touches_is_called_neither() {
    let findings = hardly_told(0.0, 0.9);
    let message = &findings.diagnoses[0];
    assert_eq!(message.id, "fresh_memory", "{}", findings.verdict);
    assert!(
        message.evidence[0].contains("(95 %)"),
        "{:?}",
        message.evidence
    );
    assert!(findings.advice.is_empty(), "{:?}", findings.advice);
    for known in [hardly_told(0.0, 0.4), hardly_told(0.2, 0.9)] {
        assert!(known.diagnoses.iter().any(|one| one.id == "first_touch"));
    }
}

#[test]
fn more_faults_than_a_process_has_pages_are_on_returned_memory() {
    let of = |rss: u64| {
        let mut findings = churning(
            run(40, 690, 200_000),
            Cause::RefaultAfterMunmap,
            RegionKind::Anonymous,
            114_000.0,
            32 << 20,
        );
        findings.cost.max_rss = Bytes(rss);
        findings.churn.refault_ratio = Some(Estimate {
            value: 0.57,
            low: 0.06,
            high: 0.99,
        });
        concluded(findings).diagnoses[0].id.clone()
    };
    assert_eq!(of(32 << 20), "churn.mmap");
    assert_eq!(of(450 << 20), "fresh_memory");
}

#[test]
fn evidence_tells_the_interval_of_a_share_that_is_hardly_known() {
    let known = hardly_told(0.0, 0.4);
    let evidence = &known.diagnoses[0].evidence[0];
    assert!(evidence.contains("(95 % [57, 96])"), "{evidence}");
    let known = hardly_told(0.0, 0.05);
    let evidence = &known.diagnoses[0].evidence[0];
    assert!(evidence.contains("(95 %)"), "{evidence}");
}
