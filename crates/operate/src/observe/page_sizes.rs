//! Page sizes in an observation: of the machine, of a process; and the other size to try.

use crate::huge::balance;
use pagewise_answer::page_sizes::SMALL;
use pagewise_linux::hugepages::actuator::Target;
use pagewise_linux::hugepages::map::PageSizes;
use pagewise_linux::hugepages::zeros::zero_share;
use pagewise_linux::hugepages::{first_touch, transparent};
use pagewise_linux::proc::ProcRoot;
use pagewise_model::recording::{HugePageUse, PageSizesSeen, ProcessPages};
use pagewise_model::run::RunCost;
use pagewise_model::units::Bytes;
use std::path::Path;
use std::time::Duration;

/// How long a running process is watched.
const LOOK: Duration = Duration::from_secs(1);
/// If system time is below this share of CPU time, faults are not worth a measurement of 50 ms.
const LEAST: f64 = 0.01;
/// Nor are fewer faults than the measurement itself takes in a round with base pages, 8 MiB of
/// 4 KiB, in a program that stays small.
const FEW: u64 = 2_048;

/// Page sizes after observing a program of this cost: `most` is the process with the most memory,
/// at that time; `attached` is a process that still runs.
pub(super) fn seen(
    most: Option<ProcessPages>,
    cost: &RunCost,
    attached: Option<i32>,
) -> Option<PageSizesSeen> {
    let machine = transparent(Path::new("/sys"))?;
    let largest = machine.pmd_size.unwrap_or(Bytes(u64::MAX));
    let smaller = machine.sizes.into_iter().filter(|size| size.size < largest);
    let faults = faults_matter(cost);
    let touched = || first_touch::measure(PageSizes::read(Path::new("/sys")).ok()?).ok();
    let process = attached.and_then(pages_of).map(|(pages, _)| pages).or(most);
    let matters = faults || process.as_ref().is_some_and(|pages| pages.memory >= SMALL);
    Some(PageSizesSeen {
        enabled: machine.enabled,
        between: smaller.map(|size| (size.size, size.enabled)).collect(),
        process,
        first_touch: faults.then(touched).flatten(),
        attached,
        watched: attached
            .filter(|_| matters)
            .and_then(|pid| balance::verdict(pid, LOOK)),
    })
}

/// Whether what a first touch takes can matter to a program of this cost.
fn faults_matter(cost: &RunCost) -> bool {
    let is_tiny = cost.faults() < FEW && cost.max_rss < SMALL;
    !is_tiny && cost.system.as_secs_f64() >= LEAST * cost.cpu().as_secs_f64()
}

/// Current page sizes of a process, and the part that matters for the time account; `None` if they
/// can't be read.
pub(super) fn pages_of(pid: i32) -> Option<(ProcessPages, Option<HugePageUse>)> {
    let sizes = PageSizes::read(Path::new("/sys")).ok()?;
    let target = Target::open(&ProcRoot::default(), pid, sizes).ok()?;
    let map = target.map().ok()?;
    let sum = map.summary();
    let huge = Bytes(sum.huge * sizes.huge.0);
    let pages = ProcessPages {
        huge,
        memory: huge + sum.small_bytes,
        growth: sum.growth,
    };
    let held = (huge.0 > 0).then(|| HugePageUse {
        held: huge,
        zeros: zero_share(&ProcRoot::default(), pid, &map),
    });
    Some((pages, held))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagewise_model::units::Nanos;

    #[test]
    fn first_touches_are_measured_for_many_faults_or_much_memory_alone() {
        let cost = |minor_faults, max_rss, system| RunCost {
            minor_faults,
            max_rss: Bytes(max_rss),
            system: Nanos(system),
            user: Nanos(1_000_000),
            ..RunCost::default()
        };
        assert!(!faults_matter(&cost(90, 2 << 20, 1_000_000)), "true(1)");
        assert!(faults_matter(&cost(5_000, 2 << 20, 1_000_000)), "churn");
        assert!(faults_matter(&cost(90, 1 << 30, 1_000_000)), "huge pages");
        assert!(!faults_matter(&cost(5_000, 1 << 30, 1_000)), "computing");
    }
}
