//! Reuse-distance curves of programs, and the reach of machines' TLBs for comparison.

use super::{PageSizesError, Source};
use crate::tlb::{Machine, PageSize, Reuse, Visit, shipped};
use pagewise_model::huge_simulation::{Reach, ReuseCurve};

/// Largest TLB of interest.
const MOST: usize = 4096;
/// One small page in four is followed: sizes stay within a few per cent.
const ONE_IN: u32 = 2;
/// Most points of a curve in the report.
const POINTS: usize = 256;
/// Visits passed to each engine at a time, so that they stay in the caches.
const AT_ONCE: usize = 1 << 14;

/// The curves of a program, for small and for huge pages.
pub(super) fn curves(
    machine: &Machine,
    source: &Source,
    accesses: u64,
) -> Result<Vec<ReuseCurve>, PageSizesError> {
    let mut engines = [
        (
            machine.small_page,
            Reuse::new(machine.small_shift(), MOST, ONE_IN),
        ),
        // Huge pages are few: all are followed.
        (machine.huge_page, Reuse::new(machine.huge_shift(), MOST, 0)),
    ];
    // Four times as many as are measured elsewhere, and two rounds: cold misses should not count.
    let wanted = accesses.saturating_mul(4);
    match source {
        Source::Trace(replay) => {
            for part in replay.recorded().chunks(AT_ONCE) {
                for (_, engine) in &mut engines {
                    engine.access_visits(part);
                }
            }
            for (_, engine) in &mut engines {
                let rounds = wanted.div_ceil(engine.accesses().max(1));
                engine.repeat(rounds.max(2));
            }
        }
        Source::Generated(_) => {
            let mut workload = source.workload(1)?;
            let mut buffer = vec![Visit::default(); AT_ONCE];
            let rounds = workload.round().unwrap_or(0).saturating_mul(2);
            let mut taken = 0;
            while taken < wanted.max(rounds) {
                workload.visits(&mut buffer);
                taken += buffer.iter().map(|visit| visit.accesses()).sum::<u64>();
                for (_, engine) in &mut engines {
                    engine.access_visits(&buffer);
                }
            }
        }
    }
    let shown = engines.iter().map(|(page_bytes, engine)| {
        let curve = engine.curve();
        let every = curve.len().div_ceil(POINTS);
        ReuseCurve {
            workload: source.name().to_owned(),
            page_bytes: *page_bytes,
            sampled: engine.rate(),
            points: curve.into_iter().step_by(every).collect(),
            error: engine.error(),
        }
    });
    Ok(shown.collect())
}

/// Last levels of all machines with the same page sizes as this one.
pub(super) fn reaches(like: &Machine) -> Result<Vec<Reach>, PageSizesError> {
    let mut machines: Vec<Machine> = shipped()?.into_iter().map(|(_, machine)| machine).collect();
    if !machines.contains(like) {
        machines.push(like.clone());
    }
    let mut found = Vec::new();
    for machine in machines {
        for (size, bytes) in [
            (PageSize::Small, machine.small_page),
            (PageSize::Huge, machine.huge_page),
        ] {
            if bytes == like.small_page || bytes == like.huge_page {
                found.push(Reach {
                    machine: machine.name.clone(),
                    page_bytes: bytes,
                    entries: u64::from(machine.last_entries(size)),
                });
            }
        }
    }
    Ok(found)
}
