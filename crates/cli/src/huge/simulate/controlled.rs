//! Programs under fixed page sizes, and with controllers.

use super::Args;
use super::programs::Source;
use anyhow::{Result, bail};
use pagewise_analyse::balance::{Controller, Fixed, Victims};
use pagewise_analyse::tlb::paper::{Scale, TICK_NS, controller, in_parallel, settings};
use pagewise_analyse::tlb::{Machine, PageSize, Program, Run, Simulation, Space};
use pagewise_model::huge_map::HugeMap;
use pagewise_model::huge_simulation::{
    Configuration, Controlled, HugeSimulation, Moment, SweepPoint,
};

use PageSize::{Huge, Small};

const CONTROLLERS: [&str; 5] = ["paper", "min-cost", "always", "never", "oracle"];

const SPACES: [(&str, PageSize, Option<PageSize>); 6] = [
    ("native, small pages", Small, None),
    ("native, huge pages", Huge, None),
    ("guest, small at both levels", Small, Some(Small)),
    ("guest, huge in the guest only", Huge, Some(Small)),
    ("guest, huge in the host only", Small, Some(Huge)),
    ("guest, huge at both levels", Huge, Some(Huge)),
];

/// Compares page sizes; with a controller, runs it.
pub fn run(
    machine: &Machine,
    args: &Args,
    programs: &[Source],
    result: &mut HugeSimulation,
) -> Result<()> {
    if let Some(name) = &args.controller
        && !CONTROLLERS.contains(&name.as_str())
    {
        let known = CONTROLLERS.join(", ");
        bail!("no controller is called \"{name}\": there are {known}");
    }
    for source in programs {
        result
            .configurations
            .extend(configurations(machine, args, source)?);
        super::reuse::curves(machine, source, args.accesses, result)?;
    }
    if args.sweep {
        result.sweep = sweep(machine, args, &programs[0])?;
    }
    if let Some(name) = &args.controller {
        result.controlled = controlled(machine, args, programs, name)?;
    }
    Ok(())
}

fn configurations(machine: &Machine, args: &Args, source: &Source) -> Result<Vec<Configuration>> {
    let wanted = SPACES
        .iter()
        .filter(|(_, _, second)| !args.native || second.is_none());
    let wanted: Vec<_> = wanted.copied().collect();
    let runs = in_parallel(&wanted, |&(name, first, second)| {
        let space = space(first, second);
        let run = alone(machine, args, source, space, None, 0)?;
        anyhow::Ok((name, run))
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

fn space(first: PageSize, second: Option<PageSize>) -> Space {
    match second {
        None => Space::native(first),
        Some(second) => Space::guest(first, second),
    }
}

/// The space that controllers begin with.
fn begins(args: &Args) -> Space {
    space(Huge, (!args.native).then_some(Huge))
}

fn program(
    source: &Source,
    seed: u64,
    space: Space,
    controller: Option<Box<dyn Controller>>,
) -> Result<Program> {
    Ok(Program {
        name: source.name().to_owned(),
        space,
        workload: source.workload(seed)?,
        controller,
    })
}

/// Accesses of a tick: enough to count refills, few enough to simulate minutes.
const TICK_ACCESSES: f64 = 4_300.0;

fn scale(args: &Args) -> Scale {
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a number of ticks, clamped to the range of u32"
    )]
    let ticks = (args.seconds * 1e9 / TICK_NS).clamp(1.0, 1e9) as u32;
    Scale {
        time: TICK_NS / (TICK_ACCESSES * args.access_ns),
        measured: args.accesses,
        ticks,
        ..Scale::FULL
    }
}

fn alone(
    machine: &Machine,
    args: &Args,
    source: &Source,
    space: Space,
    controller: Option<Box<dyn Controller>>,
    seed: u64,
) -> Result<Run> {
    let settings = settings(scale(args), args.access_ns, controller.is_some());
    let program = program(source, seed + 1, space, controller)?;
    let mut runs = Simulation::new(machine, settings, vec![program]).run();
    Ok(runs.remove(0))
}

/// Cost at numbers of huge pages, spread evenly.
fn sweep(machine: &Machine, args: &Args, source: &Source) -> Result<Vec<SweepPoint>> {
    let all = alone(machine, args, source, begins(args), None, 0)?
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
            ..scale(args)
        };
        let settings = settings(scale, args.access_ns, true);
        let program = program(source, 1, begins(args), Some(fixed))?;
        let run = Simulation::new(machine, settings, vec![program])
            .run()
            .remove(0);
        let accesses = run.counts.accesses as f64;
        anyhow::Ok(SweepPoint {
            huge,
            ns_per_access: 1.0 / run.speed(),
            small_per_1000: run.counts.small() as f64 * 1e3 / accesses,
            huge_per_1000: run.counts.huge() as f64 * 1e3 / accesses,
        })
    });
    points.into_iter().collect()
}

fn make(
    machine: &Machine,
    args: &Args,
    source: &Source,
    name: &str,
) -> Result<Box<dyn Controller>> {
    if let Some(made) = controller(name, machine) {
        return Ok(made);
    }
    let points = sweep(machine, args, source)?;
    let cheapest = |a: &&SweepPoint, b: &&SweepPoint| a.ns_per_access.total_cmp(&b.ns_per_access);
    let best = points.iter().min_by(cheapest).map_or(0, |point| point.huge);
    Ok(Box::new(Fixed::oracle(best, Victims::Sparsest)))
}

/// All programs together, with and without controllers; several also each alone.
fn controlled(
    machine: &Machine,
    args: &Args,
    programs: &[Source],
    name: &str,
) -> Result<Vec<Controlled>> {
    let together = |by: &str| {
        let mut made = Vec::new();
        for (at, source) in programs.iter().enumerate() {
            let controller = make(machine, args, source, by)?;
            made.push(program(
                source,
                at as u64 + 1,
                begins(args),
                Some(controller),
            )?);
        }
        let settings = settings(scale(args), args.access_ns, true);
        anyhow::Ok(Simulation::new(machine, settings, made).run())
    };
    let (without, with) = (together("always")?, together(name)?);
    let mut found = Vec::new();
    for (at, (run, before)) in with.into_iter().zip(without).enumerate() {
        let lonely = if programs.len() > 1 {
            let controller = make(machine, args, &programs[at], name)?;
            let source = &programs[at];
            Some(alone(
                machine,
                args,
                source,
                begins(args),
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

/// What a controller made of a program: at rest, and over the whole run with its waiting and trying,
/// each against the same of a run without one.
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
    let moment = |point: &pagewise_analyse::tlb::Point| Moment {
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
    HugeMap::new(machine.huge_page, &addresses, moments)
}
