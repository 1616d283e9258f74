//! Page sizes that stay fixed, and the cost at each number of huge pages.

use super::{
    PageSizesError, Request, Scale, Source, alone, program, scale, settings, space, start,
};
use crate::balance::{Fixed, Victims};
use crate::in_parallel;
use crate::tlb::{Machine, PageSize, Simulation};
use pagewise_model::huge_simulation::{Configuration, SweepPoint};

use PageSize::{Huge, Small};

const SPACES: [(&str, PageSize, Option<PageSize>); 6] = [
    ("native, small pages", Small, None),
    ("native, huge pages", Huge, None),
    ("guest, small at both levels", Small, Some(Small)),
    ("guest, huge in the guest only", Huge, Some(Small)),
    ("guest, huge in the host only", Small, Some(Huge)),
    ("guest, huge at both levels", Huge, Some(Huge)),
];

/// A program under each pair of page sizes; speeds are relative to the first.
pub(super) fn configurations(
    machine: &Machine,
    request: &Request,
    source: &Source,
) -> Result<Vec<Configuration>, PageSizesError> {
    let wanted = SPACES
        .iter()
        .filter(|(_, _, second)| !request.is_native || second.is_none());
    let wanted: Vec<_> = wanted.copied().collect();
    let runs = in_parallel(&wanted, |&(name, first, second)| {
        let run = alone(machine, request, source, space(first, second), None, 0)?;
        Ok::<_, PageSizesError>((name, run))
    });
    let mut found: Vec<Configuration> = Vec::new();
    for run in runs {
        let (name, run) = run?;
        let accesses = run.counts.accesses as f64;
        let speed = run.speed();
        let first = found
            .first()
            .map_or(1.0 / speed, |first| first.ns_per_access);
        found.push(Configuration {
            name: name.to_owned(),
            workload: source.name().to_owned(),
            ns_per_access: 1.0 / speed,
            speed: speed * first,
            small_per_1000: run.counts.small() as f64 * 1e3 / accesses,
            huge_per_1000: run.counts.huge() as f64 * 1e3 / accesses,
            refill_share: run.counts.refill_ns(machine) / run.ns,
        });
    }
    Ok(found)
}

/// Cost at evenly spread numbers of huge pages, plus some small numbers.
pub(super) fn sweep(
    machine: &Machine,
    request: &Request,
    source: &Source,
) -> Result<Vec<SweepPoint>, PageSizesError> {
    let all = alone(machine, request, source, start(request), None, 0)?
        .pages
        .possible;
    let mut numbers: Vec<u64> = (0..=16).map(|part| all * part / 16).collect();
    numbers.extend([1, 2, 4, 8, 12].into_iter().filter(|huge| *huge < all));
    numbers.sort_unstable();
    numbers.dedup();
    let points = in_parallel(&numbers, |&huge| {
        let fixed = Box::new(Fixed::oracle(huge, Victims::Sparsest));
        let scale = Scale {
            // Enough to reach the number and to warm up.
            ticks: 1_500,
            ..scale(request)
        };
        let settings = settings(scale, request.access_ns, true);
        let program = program(source, 1, start(request), Some(fixed))?;
        let run = Simulation::new(machine, settings, vec![program])
            .run()
            .remove(0);
        let accesses = run.counts.accesses as f64;
        Ok(SweepPoint {
            huge,
            ns_per_access: 1.0 / run.speed(),
            small_per_1000: run.counts.small() as f64 * 1e3 / accesses,
            huge_per_1000: run.counts.huge() as f64 * 1e3 / accesses,
        })
    });
    points.into_iter().collect()
}
