//! What `doctor` says of huge pages: an observed process's page sizes, and the verdict of a proof.

use super::balance::percent;
use crate::prove::Candidate;
use pagewise_linux::hugepages::actuator::Target;
use pagewise_linux::hugepages::map::PageSizes;
use pagewise_linux::hugepages::transparent;
use pagewise_linux::proc::ProcRoot;
use pagewise_model::advice::{Setting, Settings};
use pagewise_model::findings::{Diagnosis, Findings, Severity};
use pagewise_model::proof::{Comparison, Proof, Verdict};
use pagewise_model::units::Bytes;
use std::path::Path;

/// Programs that never hold more than this are within reach of any TLB's second level, or nearly
/// (1536 entries of 4 KiB are 6 MiB; walks of some tens of MiB stay in the caches).
const SMALL: Bytes = Bytes(64 << 20);

/// A note on huge pages for a program that holds enough memory; `None` for a small one. A process
/// that still runs is looked at.
pub fn note(findings: &Findings, pid: Option<i32>) -> Option<Diagnosis> {
    if findings.cost.max_rss < SMALL && pid.is_none() {
        return None;
    }
    let looked = pid.and_then(pages_of);
    let small = looked.as_ref().is_some_and(|pages| pages.memory < SMALL);
    if small {
        return None;
    }
    let mode = transparent(Path::new("/sys"))?.enabled;
    let whom = pid.map_or_else(|| "-- CMD".to_owned(), |pid| format!("-p {pid}"));
    let mut evidence = vec![format!("transparent_hugepage/enabled is '{mode}'")];
    let headline = match &looked {
        Some(pages) => {
            evidence.push(format!(
                "all of it in huge pages would add {}",
                pages.growth
            ));
            format!(
                "Huge pages map {} of the {} that they could",
                Bytes(pages.huge),
                pages.memory
            )
        }
        None => format!(
            "It held up to {}: page size may matter",
            findings.cost.max_rss
        ),
    };
    Some(Diagnosis {
        id: "huge_pages.unmeasured".to_owned(),
        severity: Severity::Note,
        headline,
        explanation: format!(
            "Faults do not tell what TLB misses cost. 'pagewise huge balance {whom}' measures it in \
             the running program; --prove compares runs."
        ),
        evidence,
        share_of_cpu: None,
    })
}

struct PagesOf {
    huge: u64,
    memory: Bytes,
    growth: Bytes,
}

fn pages_of(pid: i32) -> Option<PagesOf> {
    let sizes = PageSizes::of(Path::new("/sys")).ok()?;
    let target = Target::open(&ProcRoot::default(), pid, sizes).ok()?;
    let sum = target.map().ok()?.summary();
    let huge = sum.huge * sizes.huge.0;
    Some(PagesOf {
        huge,
        memory: Bytes(huge) + sum.small_bytes,
        growth: sum.growth,
    })
}

/// Name of the arm that gives huge pages.
const WITH: &str = "huge pages";
/// Name of the arm that takes them away.
const WITHOUT: &str = "no huge pages";

/// The other page size as an arm of a proof, for a program that holds enough memory.
pub fn candidate(findings: &Findings) -> Option<Candidate> {
    if findings.cost.max_rss < SMALL {
        return None;
    }
    let (name, setting) = match transparent(Path::new("/sys"))?.enabled.as_str() {
        "always" => (
            WITHOUT,
            Setting::Thp {
                mode: "never".into(),
            },
        ),
        // glibc asks by madvise(2) for what malloc hands out (2.35).
        "madvise" => (
            WITH,
            Setting::GlibcTunable {
                name: "glibc.malloc.hugetlb".into(),
                value: "1".into(),
            },
        ),
        _ => return None,
    };
    Some(Candidate {
        name: name.to_owned(),
        settings: Settings(vec![setting]),
        fewer_faults: false,
    })
}

/// "Huge pages would help: −31 % … −28 % CPU, +12 MiB", where a proof compared page sizes.
pub fn verdict(proof: &Proof) -> Option<String> {
    let found = proof
        .comparisons
        .iter()
        .find(|one| (one.arm == WITH || one.arm == WITHOUT) && one.pairs > 0)?;
    // The arm's gain, seen from huge pages.
    let is_with = found.arm == WITH;
    let change = |speedup: f64| match is_with {
        true => 1.0 / speedup - 1.0,
        false => speedup - 1.0,
    };
    let (one, other) = (
        change(found.cpu_speedup.low),
        change(found.cpu_speedup.high),
    );
    let effect = match (found.verdict, is_with) {
        (Verdict::Faster | Verdict::TooMuchMemory, true) | (Verdict::Slower, false) => "help",
        (Verdict::Slower, true) | (Verdict::Faster | Verdict::TooMuchMemory, false) => "hurt",
        _ => "make no measurable difference to",
    };
    let verb = match (is_with, effect) {
        (true, effect) => format!("Huge pages would {effect}"),
        (false, "help") => "Huge pages help".to_owned(),
        (false, "hurt") => "Huge pages hurt".to_owned(),
        (false, effect) => format!("Huge pages {effect}"),
    };
    Some(format!(
        "{verb} this program: {} … {} CPU, {} of resident memory.",
        percent(one.min(other)),
        percent(one.max(other)),
        memory(found, is_with)
    ))
}

fn memory(found: &Comparison, is_with: bool) -> String {
    let added = match is_with {
        true => found.rss_change_bytes,
        false => -found.rss_change_bytes,
    };
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a float-to-integer cast saturates; the sign is shown apart"
    )]
    let size = Bytes(added.abs() as u64);
    let sign = if added < 0.0 { "−" } else { "+" };
    format!("{sign}{size}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagewise_model::units::Estimate;

    fn proof(arm: &str, low: f64, high: f64, verdict: Verdict) -> Proof {
        let speedup = Estimate {
            value: f64::midpoint(low, high),
            low,
            high,
        };
        Proof {
            arms: Vec::new(),
            comparisons: vec![Comparison {
                arm: arm.into(),
                wall_speedup: speedup,
                cpu_speedup: speedup,
                fault_ratio: Estimate::exact(1.0),
                system_ratio: Estimate::exact(1.0),
                rss_change_bytes: f64::from(12 << 20),
                p_adjusted: 0.01,
                pairs: 8,
                verdict,
            }],
            winner: None,
            confirmation: None,
            summary: String::new(),
            notes: Vec::new(),
        }
    }

    #[test]
    fn the_verdict_is_about_huge_pages_whichever_arm_ran() {
        let with = verdict(&proof(WITH, 1.25, 1.6, Verdict::Faster)).unwrap();
        assert!(
            with.starts_with("Huge pages would help this program: −38 % … −20 % CPU, +12"),
            "{with}"
        );
        let without = verdict(&proof(WITHOUT, 1.25, 1.6, Verdict::Faster)).unwrap();
        assert!(
            without.starts_with("Huge pages hurt this program: +25 % … +60 % CPU, −12"),
            "{without}"
        );
        let none = verdict(&proof(WITH, 0.99, 1.01, Verdict::NoDifference)).unwrap();
        assert!(
            none.starts_with("Huge pages would make no measurable difference to this program"),
            "{none}"
        );
        assert_eq!(verdict(&proof("jemalloc", 1.0, 1.0, Verdict::Faster)), None);
    }
}
