//! A program to simulate: a generator by name, or a recorded trace.

use super::PageSizesError;
use crate::tlb::workload::{Mix, Replay, Workload, named};

/// Something that can be run again from its start.
#[derive(Clone, Debug)]
pub enum Source {
    /// Generators that take turns, joined by `+`, with sizes.
    Generated(String),
    /// A trace, which all simulations share.
    Trace(Replay),
}

/// Accesses of a generator before the next of a mix has its turn.
const PHASE: u64 = 1_000_000;

impl Source {
    /// For people.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Generated(name) => name,
            Self::Trace(replay) => replay.name(),
        }
    }

    /// From its start.
    ///
    /// # Errors
    /// When no generator has the name, or the size is none.
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

/// A size such as 512M.
fn bytes(text: &str) -> Result<u64, PageSizesError> {
    let no_size = || {
        PageSizesError::Program(format!(
            "\"{text}\" is no size: expected one such as 512M or 2G"
        ))
    };
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match text[digits.len()..].to_ascii_uppercase().as_str() {
        "K" | "KIB" => 1 << 10,
        "M" | "MIB" => 1 << 20,
        "G" | "GIB" => 1 << 30,
        _ => return Err(no_size()),
    };
    let number: u64 = digits.parse().map_err(|_| no_size())?;
    let size = number.checked_mul(unit).filter(|size| *size <= 1 << 40);
    size.ok_or_else(|| {
        PageSizesError::Program(format!("{text} is more than the 1 TiB that is simulated"))
    })
}
