//! What this machine lets Pagewise do, what is missing, and how to get it.
//!
//! Each capability is tried, not guessed: events are opened, system calls made, files read. A trial
//! ([`trial`]) is separate from its judgement, so that tests can judge refusals of other machines.
//! No trial changes the machine.

mod kernel;
mod memory;
mod perf;
mod process;
mod trial;

pub use trial::Machine;

use pagewise_model::capability::{Availability, Capability};

/// Everything that Pagewise can use on this machine, in the order of importance for `doctor`.
#[must_use]
pub fn capabilities() -> Vec<Capability> {
    capabilities_of(&Machine::this())
}

/// The same for a machine whose pseudo file systems are elsewhere.
#[must_use]
pub fn capabilities_of(machine: &Machine) -> Vec<Capability> {
    let mut found = perf::capabilities(machine);
    found.extend(kernel::capabilities(machine));
    found.extend(memory::capabilities(machine));
    found.extend(process::capabilities(machine));
    found
}

/// A capability that works.
fn available(name: &str, finding: impl Into<String>, consequence: &str) -> Capability {
    Capability {
        name: name.to_string(),
        state: Availability::Available,
        finding: finding.into(),
        consequence: consequence.to_string(),
        remedy: None,
    }
}

/// A capability that does not work.
fn missing(name: &str, finding: impl Into<String>, consequence: &str) -> Capability {
    Capability {
        state: Availability::Missing,
        ..available(name, finding, consequence)
    }
}

/// A capability that works in part.
fn limited(name: &str, finding: impl Into<String>, consequence: &str) -> Capability {
    Capability {
        state: Availability::Limited,
        ..available(name, finding, consequence)
    }
}

/// The same with a way to get it.
fn with_remedy(capability: Capability, remedy: impl Into<String>) -> Capability {
    Capability {
        remedy: Some(remedy.into()),
        ..capability
    }
}

#[cfg(test)]
mod tests;
