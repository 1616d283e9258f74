//! Programs whose huge pages are decided by a controller.

use super::{
    PageSizesError, Request, Source, alone, controller, fixed, program, scale, settings, start,
};
use crate::balance::{Controller, Fixed, Victims};
use crate::tlb::{Machine, Point, Run, Simulation};
use pagewise_model::huge_map::HugeMap;
use pagewise_model::huge_simulation::{Controlled, Moment, SweepPoint};
use pagewise_model::units::Nanos;

/// The controllers by name; `oracle` has the number that a sweep found cheapest.
pub const CONTROLLERS: [&str; 5] = ["paper", "min-cost", "always", "never", "oracle"];

fn make(
    machine: &Machine,
    request: &Request,
    source: &Source,
    name: &str,
) -> Result<Box<dyn Controller>, PageSizesError> {
    if let Some(made) = controller(name, machine) {
        return Ok(made);
    }
    let points = fixed::sweep(machine, request, source)?;
    let cheapest = |a: &&SweepPoint, b: &&SweepPoint| a.ns_per_access.total_cmp(&b.ns_per_access);
    let best = points.iter().min_by(cheapest).map_or(0, |point| point.huge);
    Ok(Box::new(Fixed::oracle(best, Victims::Sparsest)))
}

/// All programs together, with and without controllers; if there are several, also each alone.
pub(super) fn controlled(
    machine: &Machine,
    request: &Request,
    programs: &[Source],
    name: &str,
) -> Result<Vec<Controlled>, PageSizesError> {
    let together = |by: &str| {
        let mut made = Vec::new();
        for (at, source) in programs.iter().enumerate() {
            let controller = make(machine, request, source, by)?;
            made.push(program(
                source,
                at as u64 + 1,
                start(request),
                Some(controller),
            )?);
        }
        let settings = settings(scale(request), request.access_ns, true);
        Ok::<_, PageSizesError>(Simulation::new(machine, settings, made).run())
    };
    let (without, with) = (together("always")?, together(name)?);
    let mut found = Vec::new();
    for (at, (run, before)) in with.into_iter().zip(without).enumerate() {
        let lonely = if programs.len() > 1 {
            let controller = make(machine, request, &programs[at], name)?;
            let source = &programs[at];
            Some(alone(
                machine,
                request,
                source,
                start(request),
                Some(controller),
                at as u64,
            )?)
        } else {
            None
        };
        let against_alone = lonely.map(|lonely| run.speed() / lonely.speed());
        found.push(Controlled {
            against_alone,
            ..outcome(machine, name, &run, &before)
        });
    }
    Ok(found)
}

/// The effect of a controller on a program: at rest, and over the whole run including its waits and
/// trials, each relative to a run without a controller.
#[must_use]
pub fn outcome(machine: &Machine, controller: &str, run: &Run, before: &Run) -> Controlled {
    Controlled {
        workload: run.name.clone(),
        controller: controller.to_owned(),
        gain: run.speed() / before.speed() - 1.0,
        gain_whole: run.whole_speed() / before.whole_speed() - 1.0,
        against_alone: None,
        ns_per_access: 1.0 / run.speed(),
        huge: run.pages.huge,
        possible: run.pages.possible,
        split: run.changes.0,
        built: run.changes.1,
        reason: run.reason.map(|reason| reason.to_string()),
        timeline: timeline(run),
        map: map(machine, run),
    }
}

/// A run's timeline for plots.
fn timeline(run: &Run) -> Vec<Moment> {
    let moment = |point: &Point| Moment {
        at_s: point.at_s,
        huge_per_s: point.huge_per_s,
        small_per_s: point.small_per_s,
        huge: point.huge,
        load: point.gauge.load,
        imbalance: point.gauge.imbalance,
        ns_per_access: point.ns_per_access,
    };
    run.timeline.iter().map(moment).collect()
}

/// Which memory was huge, over time.
fn map(machine: &Machine, run: &Run) -> HugeMap {
    let address = |chunk: &u64| chunk << machine.huge_shift();
    let addresses: Vec<u64> = run.map.iter().map(|(chunk, _)| address(chunk)).collect();
    let moments = (0..run.timeline.len()).map(|at| {
        let rows = run.map.iter();
        rows.map(move |(chunk, row)| (address(chunk), row[at]))
    });
    let end = run.timeline.last().map_or(0.0, |point| point.at_s);
    HugeMap::new(
        machine.huge_page,
        &addresses,
        Nanos::from_secs_f64(end),
        moments,
    )
}
