//! How much is simulated, and controllers adapted to the simulator's ticks.

use crate::balance::{
    Controller, Entries, Fixed, MinCost, MinCostSettings, Paper, PaperSettings, Victims,
};
use crate::tlb::{Machine, PageSize, Settings};

/// The paper's tick: 2560 are "more than 10 s" (section 4.2).
pub const TICK_NS: f64 = 10e9 / 2560.0;

/// How much is simulated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    /// Factor by which ticks are shorter than real ones.
    pub time: f64,
    /// Accesses measured in each configuration.
    pub measured: u64,
    /// Ticks of controlled runs before the measured part.
    pub ticks: u32,
}

/// Entries of a machine's last level by page size, which the paper's imbalance needs.
#[must_use]
pub fn entries(machine: &Machine) -> Entries {
    Entries {
        huge: machine.last_entries(PageSize::Huge),
        small: machine.last_entries(PageSize::Small),
    }
}

/// A controller by name, adapted to a machine and the simulator's ticks; `oracle` needs a number
/// and is not among them.
#[must_use]
pub fn controller(name: &str, machine: &Machine) -> Option<Box<dyn Controller>> {
    let entries = entries(machine);
    Some(match name {
        "paper" => Box::new(Paper::new(PaperSettings::published(entries))),
        "min-cost" => Box::new(MinCost::new(min_cost(machine))),
        "always" => Box::new(Fixed::always()),
        "never" => Box::new(Fixed::never()),
        _ => return None,
    })
}

/// Settings of `min-cost` for ticks of a timer interrupt: windows of two seconds, and the same wait
/// as in the paper.
#[must_use]
pub fn min_cost(machine: &Machine) -> MinCostSettings {
    MinCostSettings {
        entries: Some(entries(machine)),
        loaded_share: 0.05,
        gate: 2560,
        window: 512,
        settle: 8,
        patience: 512,
        victims: Victims::Sparsest,
        ..MinCostSettings::default()
    }
}

/// Settings of a simulation at a scale.
#[must_use]
pub fn settings(scale: Scale, base_ns: f64, has_controller: bool) -> Settings {
    Settings {
        base_ns,
        tick_ns: TICK_NS / scale.time,
        measured: scale.measured,
        // Without a controller, ticks only warm the TLBs up.
        ticks: if has_controller { scale.ticks } else { 200 },
        points: 240,
        khugepaged_per_s: 0.2,
        time_scale: scale.time,
        seed: 1,
    }
}
