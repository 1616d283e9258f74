//! Generators of memory accesses: endless, seeded, with no memory beyond their state.
//!
//! Each is the skeleton of a kind of program: which pages it touches in which order, nothing else.
//! [`named`] selects them; [`Mix`] runs several in phases.

mod btree;
mod key_value;
mod mcf;
mod oltp;
mod plain;
mod replay;
#[cfg(test)]
mod tests;

pub use btree::BTree;
pub use key_value::KeyValue;
pub use mcf::{Mcf, McfPhase, SWEEP_SHARE};
pub use oltp::Oltp;
pub use plain::{Gups, PointerChase, Stream};
pub use replay::{Footprint, Replay};

use super::visit::Visit;

/// Where generated memory starts: far from 0, aligned to any huge page.
pub const BASE: u64 = 0x7F00_0000_0000;

/// A source of accesses.
pub trait Workload {
    /// Short name.
    fn name(&self) -> &str;
    /// The memory it uses: start and bytes of each piece.
    fn memory(&self) -> Vec<(u64, u64)>;
    /// Overwrites `out` with the next addresses.
    fn fill(&mut self, out: &mut [u64]);
    /// Overwrites `out` with the next visits.
    fn visits(&mut self, out: &mut [Visit]) {
        let mut addresses = [0; 64];
        for part in out.chunks_mut(addresses.len()) {
            self.fill(&mut addresses[..part.len()]);
            for (visit, &address) in part.iter_mut().zip(&addresses) {
                *visit = Visit::one(address);
            }
        }
    }
    /// Accesses after which the workload, or its sequence of phases, starts again. Measurements
    /// should cover whole rounds: parts of different phases can't be compared.
    fn round(&self) -> Option<u64> {
        None
    }
}

/// The generators by name, each with a description.
pub const NAMES: [(&str, &str); 8] = [
    (
        "mcf",
        "SPEC mcf's pricing sweeps and heap, 1.6 GiB: the paper's case",
    ),
    (
        "chase",
        "pointer chase over 2 GiB, every line once per round",
    ),
    ("stream", "three arrays read and written in order, 1.5 GiB"),
    ("gups", "random updates of 2 GiB"),
    ("btree", "lookups in a B-tree of 2 GiB, pages of 16 KiB"),
    (
        "key-value",
        "hash table with values, Zipf-distributed keys, 2.5 GiB",
    ),
    (
        "oltp",
        "sysbench-like transactions on a buffer pool of 1.9 GiB",
    ),
    ("small", "a program that works in 4 MiB"),
];

/// A generator by its name; a size as in `chase:256M` overrides the default if the generator has
/// one.
///
/// # Errors
/// Lists the available names.
pub fn named(name: &str, bytes: Option<u64>, seed: u64) -> Result<Box<dyn Workload>, String> {
    const MIB: u64 = 1 << 20;
    let size = |usual: u64| bytes.unwrap_or(usual).max(MIB);
    Ok(match name {
        "mcf" => Box::new(Mcf::new(seed)),
        "mcf-sweep" => Box::new(Mcf::only(McfPhase::Sweep, seed)),
        "mcf-heap" => Box::new(Mcf::only(McfPhase::Heap, seed)),
        "chase" => Box::new(PointerChase::new("chase", size(2048 * MIB), seed)),
        "small" => Box::new(PointerChase::new("small", size(4 * MIB), seed)),
        "stream" => Box::new(Stream::new(size(1536 * MIB))),
        "gups" => Box::new(Gups::new(size(2048 * MIB), seed)),
        "btree" => Box::new(BTree::new(size(2048 * MIB), seed)),
        "key-value" => Box::new(KeyValue::new(size(2560 * MIB), seed)),
        "oltp" => Box::new(Oltp::new(size(1920 * MIB), seed)),
        _ => {
            let known: Vec<&str> = NAMES.iter().map(|(known, _)| *known).collect();
            let known = known.join(", ");
            return Err(format!(
                "there is no workload \"{name}\"; there are {known}"
            ));
        }
    })
}

/// Phases of several workloads, in turn, in one address space.
pub struct Mix {
    parts: Vec<(Box<dyn Workload>, u64)>,
    at: usize,
    left: u64,
    name: String,
}

impl Mix {
    /// Each part runs for its number of accesses, then the next.
    #[must_use]
    pub fn new(parts: Vec<(Box<dyn Workload>, u64)>) -> Self {
        let names: Vec<&str> = parts.iter().map(|(part, _)| part.name()).collect();
        Self {
            name: names.join("+"),
            at: 0,
            left: parts.first().map_or(u64::MAX, |(_, length)| *length),
            parts,
        }
    }
}

impl Workload for Mix {
    fn name(&self) -> &str {
        &self.name
    }

    fn round(&self) -> Option<u64> {
        (self.parts.len() > 1).then(|| self.parts.iter().map(|(_, length)| length).sum())
    }

    fn memory(&self) -> Vec<(u64, u64)> {
        self.parts
            .iter()
            .flat_map(|(part, _)| part.memory())
            .collect()
    }

    fn fill(&mut self, mut out: &mut [u64]) {
        while !out.is_empty() && !self.parts.is_empty() {
            let now = usize::try_from(self.left).map_or(out.len(), |left| left.min(out.len()));
            let (head, rest) = out.split_at_mut(now);
            self.parts[self.at].0.fill(head);
            out = rest;
            self.left -= now as u64;
            if self.left == 0 {
                self.at = (self.at + 1) % self.parts.len();
                self.left = self.parts[self.at].1.max(1);
            }
        }
    }
}

/// A number below `bound` from 64 random bits.
fn below(bits: u64, bound: u64) -> u64 {
    ((u128::from(bits) * u128::from(bound)) >> 64) as u64
}

/// A bijection of the numbers below any bound: that of the next power of two, repeated until the
/// result is below the bound.
fn shuffled_below(number: u64, bound: u64, seed: u64) -> u64 {
    let bits = 64 - (bound - 1).leading_zeros();
    let mut mixed = shuffled(number, bits.max(1), seed);
    while mixed >= bound {
        mixed = shuffled(mixed, bits.max(1), seed);
    }
    mixed
}

/// One of the bijections of the numbers below a power of two: multiplied and folded twice.
fn shuffled(number: u64, bits: u32, seed: u64) -> u64 {
    let mask = (1_u64 << bits) - 1;
    let fold = bits.div_ceil(2);
    let mut mixed = number.wrapping_add(seed) & mask;
    for odd in [0x9E37_79B9_7F4A_7C15_u64, 0xD134_2543_DE82_EF95] {
        mixed = mixed.wrapping_mul(odd) & mask;
        mixed ^= mixed >> fold;
    }
    mixed
}
