//! A larger memory limit as an arm of a proof: the command in a control group of its own, next to
//! the one whose limit is in effect today.

use pagewise_linux::memcg::MemoryCgroup;
use pagewise_linux::memcg::temporary::{Error, Place, Temporary};
use pagewise_linux::proc::ProcRoot;
use pagewise_model::advice::Advice;
use pagewise_model::findings::{Diagnosis, Findings, Severity};
use pagewise_model::units::Bytes;
use std::path::Path;

/// Findings that a larger limit may remedy.
const OF_A_LIMIT: [&str; 5] = ["limit", "limit.killed", "thrashing", "reclaim", "swap"];
/// Factor for the limit: twice the memory shows whether the limit costs time, and is still a size
/// that can realistically be granted.
const TIMES: u64 = 2;
/// A limit that is not larger by this factor shows nothing.
const LEAST: f64 = 1.25;
/// Share of the available memory that may be used.
const SPARE: f64 = 0.8;

/// A control group for each run of an arm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LargerLimit {
    place: Place,
    limit: Bytes,
}

impl LargerLimit {
    /// A control group for one run.
    pub(super) fn make(&self) -> Result<Temporary, Error> {
        self.place.make("a proof", self.limit)
    }

    /// The name of its arm.
    pub(super) fn name(&self) -> String {
        format!("memory limit of {}", self.limit)
    }

    /// Statement about an arm that has won.
    pub(super) fn proved(&self) -> String {
        let (limit, before) = (self.limit, self.place.limit);
        format!("Proved with a limit of {limit} instead of {before}.")
    }
}

/// Whether findings call for more memory than a limit allows.
pub(super) fn is_about_a_limit(findings: &Findings) -> bool {
    let costs =
        |one: &Diagnosis| one.severity > Severity::Note && OF_A_LIMIT.contains(&one.id.as_str());
    findings.diagnoses.iter().any(costs)
}

/// The arm's limit, if findings call for it; the reason if it cannot be tried.
pub(super) fn for_arm(findings: &Findings) -> Option<Result<LargerLimit, String>> {
    is_about_a_limit(findings).then(larger)
}

/// Adds a proof's result on the limit to the manual advice about it.
pub(super) fn tell(advice: &mut [Advice], what: &str) {
    let is_of_limit = |one: &&mut Advice| {
        one.settings.0.is_empty() && one.cures.iter().any(|id| OF_A_LIMIT.contains(&id.as_str()))
    };
    if let Some(one) = advice.iter_mut().find(is_of_limit) {
        one.caveat = Some(match one.caveat.take() {
            Some(caveat) => format!("{caveat} {what}"),
            None => what.to_owned(),
        });
    }
}

/// Statement about an arm that was not tried.
pub(super) fn not_tried(why: &str) -> String {
    format!("A larger memory limit was not tried: {why}.")
}

/// Our own control group, in which processes that we start begin.
pub(super) fn own_group() -> Result<MemoryCgroup, String> {
    let own = i32::try_from(std::process::id()).map_err(|error| error.to_string())?;
    let group = MemoryCgroup::of_process(&ProcRoot::default(), Path::new("/sys/fs/cgroup"), own);
    let group = group.map_err(|error| error.to_string())?;
    group.ok_or_else(|| "no memory control group is visible here".to_owned())
}

/// A larger limit for processes that we start.
fn larger() -> Result<LargerLimit, String> {
    let place = own_group()?.beside_limit();
    let place = place.map_err(|error| error.to_string())?;
    let memory = ProcRoot::default().meminfo().ok().flatten();
    let free = memory.and_then(|memory| memory.get("MemAvailable"));
    let limit = size(place.limit, place.most, free.map(Bytes))?;
    Ok(LargerLimit { place, limit })
}

/// The limit to try, within `most` and the memory that is `free` on the machine.
fn size(now: Bytes, most: Option<Bytes>, free: Option<Bytes>) -> Result<Bytes, String> {
    let wanted = Bytes(now.0.saturating_mul(TIMES));
    let in_memory = free.map(|free| now + part(free, SPARE));
    let possible = [most, in_memory]
        .into_iter()
        .flatten()
        .fold(wanted, Bytes::min);
    match possible >= part(now, LEAST) {
        true => Ok(possible),
        false => Err(format!(
            "at most {possible} is available here, where the limit is {now}"
        )),
    }
}

fn part(size: Bytes, share: f64) -> Bytes {
    Bytes::rounded(size.0 as f64 * share)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_doubled_within_what_there_is() {
        let mib = |count: u64| Bytes(count << 20);
        let tried = |most: Option<u64>, free: u64| {
            let most = most.map(mib);
            size(mib(100), most, Some(mib(free))).map(|size| size.0 >> 20)
        };
        assert_eq!(tried(None, 1_000), Ok(200));
        assert_eq!(tried(Some(150), 1_000), Ok(150));
        assert_eq!(tried(None, 50), Ok(140));
        let none = tried(Some(110), 1_000).unwrap_err();
        assert!(none.starts_with("at most 110 MiB is available"), "{none}");
        assert_eq!(size(mib(100), None, None), Ok(mib(200)));
    }
}
