//! Blocks that a program requests but hardly touches. The kernel hands them out page by page, and each page is
//! zero. An allocator that keeps such a block keeps what any use of it has touched, and zeroes all of it for
//! calloc: a loop that touches 3 % of 64 MiB takes ×1.7 the CPU time with thresholds above that size, and 66 MiB
//! in place of 3.

use super::case::Case;
use pagewise_model::findings::{Findings, Site};
use pagewise_model::units::{Bytes, Estimate};

/// Blocks are sparsely used if at least this part of them is not touched.
const SPARSE: f64 = 0.5;
/// Nanoseconds to zero a byte: 0.024 in blocks of 64 MiB that a cache holds, five times that in memory
/// (x86-64, memset of glibc 2.36).
const ZEROING_NS: Estimate = Estimate {
    value: 0.05,
    low: 0.02,
    high: 0.12,
};

/// The share of the released bytes that is not touched when it comes back, if blocks are sparsely used.
#[allow(clippy::cast_precision_loss, reason = "a share of sizes")]
fn untouched(findings: &Findings, cured: &[&Case]) -> Option<f64> {
    let released = released(cured);
    let faults: f64 = cured.iter().map(|symptom| symptom.faults).sum();
    let touched = faults * findings.host.page_size as f64;
    let share = 1.0 - touched / released.max(1.0);
    (released > 0.0 && share >= SPARSE).then_some(share)
}

#[allow(clippy::cast_precision_loss, reason = "bytes in three digits")]
fn released(cured: &[&Case]) -> f64 {
    cured.iter().map(|symptom| symptom.sizes.sum() as f64).sum()
}

/// What a kept block holds beyond what one use of it touches, at most.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "a size that is shown in three digits"
)]
pub(super) fn held_beyond(findings: &Findings, cured: &[&Case]) -> Bytes {
    let largest = cured.iter().map(|symptom| symptom.sizes.max()).max();
    let share = untouched(findings, cured).unwrap_or(0.0);
    Bytes((largest.unwrap_or(0) as f64 * share) as u64)
}

/// Share of the CPU time that zeroing takes where the allocator keeps the blocks: of those that calloc
/// was seen to request.
pub(super) fn zeroing(findings: &Findings, cured: &[&Case]) -> Estimate {
    let cpu = findings.cost.cpu().0.max(1) as f64;
    let share = untouched(findings, cured).unwrap_or(0.0);
    let bytes = released(cured) * share * by_calloc(&findings.churn.regrow_sites);
    ZEROING_NS.scaled(bytes / cpu)
}

/// The share of requests that come from calloc.
fn by_calloc(requests: &[Site]) -> f64 {
    let calls = |site: &&Site| site.stack.iter().any(|name| name.contains("calloc"));
    let all: f64 = requests.iter().map(|site| site.faults).sum();
    let of_calloc: f64 = requests.iter().filter(calls).map(|site| site.faults).sum();
    of_calloc / all.max(f64::MIN_POSITIVE)
}
