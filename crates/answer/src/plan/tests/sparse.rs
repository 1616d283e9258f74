//! Blocks that are hardly touched: what keeping them costs.

use super::*;

const BLOCK: u64 = 64 << 20;

/// A thousand blocks of 64 MiB, requested in this way, of which `faults` pages are touched.
fn blocks(faults: f64, request: Option<&str>) -> Findings {
    let mut findings = churning(
        run(30, 600, 540_000),
        Cause::RefaultAfterMunmap,
        RegionKind::MmappedChunk,
        faults,
        BLOCK,
    );
    findings.churn.allocator_blocks = Some(1.0);
    findings.churn.regrow_sites = request
        .map(|function| Site {
            stack: ["main", function, "sysmalloc", "__mmap"]
                .map(str::to_owned)
                .to_vec(),
            culprit: "main".to_owned(),
            faults,
            main_cause: Cause::RefaultAfterMunmap,
        })
        .into_iter()
        .collect();
    concluded(findings)
}

fn thresholds(answer: &Findings) -> Option<&Advice> {
    let mut advice = answer.advice.iter();
    advice.find(|one| one.rule == "glibc.keep-freed-memory")
}

#[test]
fn blocks_of_calloc_that_are_hardly_touched_are_not_kept() {
    for function in ["__libc_calloc", "calloc", "__GI___libc_calloc"] {
        let answer = blocks(500_000.0, Some(function));
        assert_eq!(thresholds(&answer), None, "{}", answer.verdict);
    }
    // Used whole, or not known to be zeroed, they are.
    assert!(thresholds(&blocks(500_000.0, None)).is_some());
    assert!(thresholds(&blocks(1_000.0 * 16_384.0, Some("calloc"))).is_some());
    assert!(thresholds(&blocks(500_000.0, Some("malloc"))).is_some());
}

#[test]
fn kept_blocks_may_hold_what_one_use_does_not_touch() {
    let kept = |faults: f64| {
        let answer = blocks(faults, Some("malloc"));
        thresholds(&answer).expect("thresholds").rss_price.0
    };
    assert!(kept(500_000.0) > BLOCK * 9 / 10, "{}", kept(500_000.0));
    assert!(kept(1_000.0 * 16_384.0) < BLOCK / 2);
}
