//! `pagewise run` as an arm of a proof: the command in the control group that limits it today, paged
//! by Pagewise, which knows better than the kernel which pages are needed next.

use super::Candidate;
use super::larger_limit::{is_about_a_limit, own_group};
use crate::paged_run::{LEAST_MEMORY, obstacle_to};
use pagewise_model::findings::Findings;
use pagewise_model::proof::{Comparison, Verdict};
use pagewise_model::quantity::factor_digits;
use pagewise_model::units::Bytes;
use std::ffi::OsString;

/// The part of a limit that is left for what a control group counts beside resident memory: page
/// tables, stacks of the kernel, cached pages of files.
const LEFT: u64 = 8;
/// Memory of the process that starts the command, which is in the group as well.
const LAUNCHER: u64 = 12 << 20;

/// The arm, if findings call for it; the reason if it cannot be tried.
pub(super) fn candidate(
    findings: &Findings,
    command: &[OsString],
) -> Option<Result<Candidate, String>> {
    is_about_a_limit(findings).then(|| {
        let size = format!("{}M", budget(limit()?)?.0 >> 20);
        if let Some(why) = obstacle_to(command) {
            return Err(why);
        }
        let own = std::env::current_exe().map_err(|error| error.to_string())?;
        let words = ["run", "--memory", &size, "--"].map(OsString::from);
        Ok(Candidate {
            name: format!("pagewise run --memory {size}"),
            under: [own.into_os_string()].into_iter().chain(words).collect(),
            ..Candidate::default()
        })
    })
}

/// Statement about an arm that is faster than the command alone.
pub(super) fn proved(arm: &Candidate, comparisons: &[Comparison]) -> Option<String> {
    let mut faster = comparisons
        .iter()
        .filter(|one| one.verdict == Verdict::Faster);
    let gain = faster.find(|one| one.arm == arm.name)?.wall_speedup;
    let [times, low, high] = [gain.value, gain.low, gain.high].map(factor_digits);
    Some(format!(
        "Within the limit as it is, {} -- COMMAND is ×{times} [{low}, {high}] as fast in elapsed time (proved).",
        arm.name
    ))
}

/// Statement about an arm that was not tried.
pub(super) fn not_tried(why: &str) -> String {
    let why = why.trim_end_matches('.');
    format!("Paging by pagewise run was not tried: {why}.")
}

/// The limit in effect for processes that we start.
fn limit() -> Result<Bytes, String> {
    let limit = own_group()?.limit().map_err(|error| error.to_string())?;
    limit.ok_or_else(|| "the limit is set by the command itself".to_owned())
}

/// The budget within a limit, in whole MiB.
fn budget(limit: Bytes) -> Result<Bytes, String> {
    let size = (limit.0 - limit.0 / LEFT).saturating_sub(LAUNCHER) >> 20 << 20;
    match Bytes(size) >= LEAST_MEMORY {
        true => Ok(Bytes(size)),
        false => Err(format!(
            "a limit of {limit} leaves less than {LEAST_MEMORY}"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_budget_leaves_room_within_the_limit() {
        let of = |mib: u64| budget(Bytes(mib << 20)).map(|size| size.0 >> 20);
        assert_eq!(of(128), Ok(100));
        assert_eq!(of(33), Ok(16));
        let small = of(30).unwrap_err();
        assert!(small.contains("30.0 MiB leaves less than 16"), "{small}");
    }
}
