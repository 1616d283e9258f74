//! The order in which mapped files are read from disk, and whether reading single pages is faster
//! than read-ahead.

use super::Surroundings;
use super::case::{Case, faults_of};
use pagewise_model::findings::{Cause, FileReads, Findings};
use pagewise_model::units::Nanos;
use serde::Deserialize;

/// Reads needed to determine their order, and the shares that define it.
const TELLING_READS: u64 = 16;
const MOSTLY: f64 = 0.7;
const HARDLY: f64 = 0.3;
/// Pages mapped around a fault that is served from the page cache (`fault_around_bytes`,
/// mm/memory.c): 64 KiB of 4.
const AROUND: f64 = 16.0;
/// Reported only if the elapsed time falls below this fraction.
const WORTHWHILE: f64 = 0.9;

/// The order of a file's reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Order {
    /// From beginning to end.
    Swept,
    /// Partly in order.
    Partly,
    /// At random positions.
    Random,
}

/// The order of a file's reads, if there are enough of them.
pub(super) fn order_of(file: &FileReads) -> Option<Order> {
    let share = file.in_order.filter(|_| file.reads >= TELLING_READS)?;
    Some(match share {
        share if share >= MOSTLY => Order::Swept,
        share if share <= HARDLY => Order::Random,
        _ => Order::Partly,
    })
}

/// Whether threads waited for data at random positions of this file.
#[must_use]
pub fn is_read_at_random(file: &FileReads) -> bool {
    !file.is_code && order_of(file) == Some(Order::Random)
}

/// The order of all reads of data, if it is the same for nearly all of them.
pub(super) fn order(findings: &Findings) -> Option<Order> {
    let data = || findings.file_reads.iter().filter(|file| !file.is_code);
    let all: u64 = data().map(|file| file.reads).sum();
    [Order::Swept, Order::Random].into_iter().find(|order| {
        let alike = data().filter(|file| order_of(file) == Some(*order));
        let share = alike.map(|file| file.reads).sum::<u64>() as f64 / all.max(1) as f64;
        all > 0 && share >= 1.0 - HARDLY
    })
}

/// The cost of a page that a thread touches first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct SinglePages {
    /// Current time waiting for it.
    pub now: Nanos,
    /// Reading it alone from its disk.
    pub alone: Nanos,
}

/// Both, if reading each touched page alone takes less time than reading with read-ahead.
pub(super) fn single_pages(
    findings: &Findings,
    waits: &Case,
    around: &Surroundings,
) -> Option<SinglePages> {
    let mut files = findings.file_reads.iter();
    let file = files.find(|file| is_read_at_random(file))?;
    let read = around
        .page_reads
        .iter()
        .find(|(path, _)| *path == file.path);
    let (alone, touches) = (read?.1, touches(findings, file)?);
    if order(findings) != Some(Order::Random) {
        return None;
    }
    let waited = waits.cost.value * waits.time(findings).0 as f64;
    let wall = findings.cost.wall.0 as f64;
    let then = wall - waited + touches * alone.0 as f64;
    (then < WORTHWHILE * wall).then(|| SinglePages {
        now: Nanos::from_secs_f64(waited * 1e-9 / touches),
        alone,
    })
}

/// Number of touched pages of the file: those that faulted, and those that happened to be around
/// them. `None` if it cannot be estimated because nearly the whole file is mapped in the end.
fn touches(findings: &Findings, file: &FileReads) -> Option<f64> {
    let faults = faults_of(findings, &[Cause::FileMajor, Cause::FileMinor]);
    let stretches = file.mapped.0 as f64 / findings.host.page_size.max(1) as f64 / AROUND;
    (faults > 0.0 && faults < stretches).then(|| -stretches * (1.0 - faults / stretches).ln())
}
