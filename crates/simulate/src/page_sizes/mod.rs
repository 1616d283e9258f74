//! Programs under fixed page sizes, at each number of huge pages, and with controllers.

mod controlled;
mod fixed;
mod program;
mod reuse_curves;
mod scale;

pub use controlled::{CONTROLLERS, outcome};
pub use program::Source;
pub use scale::{Scale, TICK_NS, controller, entries, min_cost, settings};

use crate::balance::Controller;
use crate::tlb::{Machine, MachineError, PageSize, Program, Run, Simulation, Space};
use pagewise_model::answer::Document;
use pagewise_model::huge_simulation::HugeSimulation;

use PageSize::Huge;

/// The parameters of a simulation.
#[derive(Clone, Debug)]
pub struct Request {
    /// Nanoseconds per access whose translation is free.
    pub access_ns: f64,
    /// Accesses measured in each configuration.
    pub accesses: u64,
    /// How long a controller is observed, in seconds of simulated time.
    pub seconds: f64,
    /// Whether guests are left out.
    pub is_native: bool,
    /// Whether to compute the cost at each number of huge pages, for the first program.
    pub sweep: bool,
    /// The controller of huge pages, one of [`CONTROLLERS`].
    pub controller: Option<String>,
}

/// Why a simulation can't be done.
#[derive(Debug, thiserror::Error)]
pub enum PageSizesError {
    /// A program with an unknown name or an impossible size.
    #[error("{0}")]
    Program(String),
    /// An unknown controller.
    #[error("there is no controller \"{0}\"; there are {known}", known = CONTROLLERS.join(", "))]
    Controller(String),
    /// A built-in machine does not parse.
    #[error(transparent)]
    Machine(#[from] MachineError),
}

/// Compares page sizes; runs a controller if one is given.
///
/// # Errors
/// When the request names an unknown controller, or a program can't be created.
pub fn simulate(
    machine: &Machine,
    request: &Request,
    programs: &[Source],
    notes: Vec<String>,
) -> Result<Document<HugeSimulation>, PageSizesError> {
    if let Some(name) = &request.controller
        && !CONTROLLERS.contains(&name.as_str())
    {
        return Err(PageSizesError::Controller(name.clone()));
    }
    let mut configurations = Vec::new();
    let mut reuse = Vec::new();
    for source in programs {
        configurations.extend(fixed::configurations(machine, request, source)?);
        reuse.extend(reuse_curves::curves(machine, source, request.accesses)?);
    }
    let sweep = match programs {
        [first, ..] if request.sweep => fixed::sweep(machine, request, first)?,
        _ => Vec::new(),
    };
    let controlled = match &request.controller {
        Some(name) => controlled::controlled(machine, request, programs, name)?,
        None => Vec::new(),
    };
    let workloads = programs.iter().map(|source| source.name().to_owned());
    let found = HugeSimulation {
        machine: machine.name.clone(),
        workloads: workloads.collect(),
        configurations,
        controlled,
        sweep,
        reuse,
        reaches: reuse_curves::reaches(machine)?,
    };
    Ok(Document::new(found).with_notes(notes))
}

fn space(first: PageSize, second: Option<PageSize>) -> Space {
    match second {
        None => Space::native(first),
        Some(second) => Space::guest(first, second),
    }
}

/// The space that controllers start with.
fn start(request: &Request) -> Space {
    space(Huge, (!request.is_native).then_some(Huge))
}

fn program(
    source: &Source,
    seed: u64,
    space: Space,
    controller: Option<Box<dyn Controller>>,
) -> Result<Program, PageSizesError> {
    Ok(Program {
        name: source.name().to_owned(),
        space,
        workload: source.workload(seed)?,
        controller,
    })
}

/// Accesses per tick: enough to count refills, few enough to simulate minutes.
const TICK_ACCESSES: f64 = 4_300.0;

fn scale(request: &Request) -> Scale {
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a number of ticks, clamped to the range of u32"
    )]
    let ticks = (request.seconds * 1e9 / TICK_NS).clamp(1.0, 1e9) as u32;
    Scale {
        time: TICK_NS / (TICK_ACCESSES * request.access_ns),
        measured: request.accesses,
        ticks,
    }
}

/// One program that has the TLBs to itself.
fn alone(
    machine: &Machine,
    request: &Request,
    source: &Source,
    space: Space,
    controller: Option<Box<dyn Controller>>,
    seed: u64,
) -> Result<Run, PageSizesError> {
    let settings = settings(scale(request), request.access_ns, controller.is_some());
    let program = program(source, seed + 1, space, controller)?;
    let mut runs = Simulation::new(machine, settings, vec![program]).run();
    Ok(runs.remove(0))
}
