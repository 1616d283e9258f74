//! A program to simulate: a generator by name, or a recorded trace.

use super::PageSizesError;
use crate::tlb::workload::{Mix, Replay, Workload, named};
use pagewise_model::units::{Bytes, NoSize};

/// An access source that can be run again from its start.
#[derive(Clone, Debug)]
pub enum Source {
    /// Generators with sizes, joined by `+`, that take turns.
    Generated(String),
    /// A trace, which all simulations share.
    Trace(Replay),
}

/// Largest memory of a generator.
const MOST: Bytes = Bytes(1 << 40);
/// Accesses of one generator before the next one of a mix takes its turn.
const PHASE: u64 = 1_000_000;

impl Source {
    /// The displayed name.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Generated(name) => name,
            Self::Trace(replay) => replay.name(),
        }
    }

    /// A new workload from the start of the source.
    ///
    /// # Errors
    /// When no generator has this name, or the size is invalid.
    pub fn workload(&self, seed: u64) -> Result<Box<dyn Workload>, PageSizesError> {
        match self {
            Self::Trace(replay) => Ok(Box::new(replay.clone())),
            Self::Generated(text) => {
                let mut parts = Vec::new();
                for part in text.split('+') {
                    parts.push((generated(part, seed)?, PHASE));
                }
                if parts.len() == 1 {
                    return Ok(parts.remove(0).0);
                }
                Ok(Box::new(Mix::new(parts)))
            }
        }
    }
}

fn generated(text: &str, seed: u64) -> Result<Box<dyn Workload>, PageSizesError> {
    let (name, size) = match text.split_once(':') {
        Some((name, size)) => (name, Some(bytes(size)?)),
        None => (text, None),
    };
    named(name, size, seed).map_err(PageSizesError::Program)
}

/// Parses a size such as 512M, within the simulated limits.
fn bytes(text: &str) -> Result<u64, PageSizesError> {
    let size: Bytes = text
        .parse()
        .map_err(|error: NoSize| PageSizesError::Program(error.to_string()))?;
    match size <= MOST {
        true => Ok(size.0),
        false => Err(PageSizesError::Program(format!(
            "{text} is more than the {MOST} that can be simulated"
        ))),
    }
}
