//! Chases, streams and random updates.

use super::{BASE, Workload, below, shuffled};
use pagewise_stats::Random;

const LINE: u64 = 64;

/// A chain through all lines, each once per round, in an order without locality.
pub struct PointerChase {
    name: &'static str,
    bits: u32,
    seed: u64,
    at: u64,
}

impl PointerChase {
    /// Over `bytes`, rounded to a power of two.
    #[must_use]
    pub fn new(name: &'static str, bytes: u64, seed: u64) -> Self {
        let lines = (bytes / LINE).max(2).next_power_of_two();
        Self {
            name,
            bits: lines.trailing_zeros(),
            seed,
            at: 0,
        }
    }
}

impl Workload for PointerChase {
    fn name(&self) -> &str {
        self.name
    }

    fn memory(&self) -> Vec<(u64, u64)> {
        vec![(BASE, LINE << self.bits)]
    }

    fn fill(&mut self, out: &mut [u64]) {
        for address in out {
            self.at += 1;
            *address = BASE + shuffled(self.at, self.bits, self.seed) * LINE;
        }
    }
}

/// `a[i] = b[i] + s × c[i]` over three arrays of 8-byte elements (McCalpin's STREAM, triad).
pub struct Stream {
    elements: u64,
    at: u64,
}

impl Stream {
    /// Over three arrays of `bytes` together.
    #[must_use]
    pub fn new(bytes: u64) -> Self {
        Self {
            elements: bytes / 24,
            at: 0,
        }
    }
}

impl Workload for Stream {
    fn name(&self) -> &'static str {
        "stream"
    }

    fn memory(&self) -> Vec<(u64, u64)> {
        vec![(BASE, self.elements * 24)]
    }

    fn fill(&mut self, out: &mut [u64]) {
        for address in out {
            let (element, array) = (self.at / 3, self.at % 3);
            *address = BASE + (array * self.elements + element) * 8;
            self.at += 1;
            if self.at == self.elements * 3 {
                self.at = 0;
            }
        }
    }
}

/// Updates of random words (HPC Challenge's RandomAccess): each is read, then written.
pub struct Gups {
    words: u64,
    random: Random,
    last: Option<u64>,
}

impl Gups {
    /// Over `bytes`.
    #[must_use]
    pub fn new(bytes: u64, seed: u64) -> Self {
        Self {
            words: bytes / 8,
            random: Random::seeded(seed),
            last: None,
        }
    }
}

impl Workload for Gups {
    fn name(&self) -> &'static str {
        "gups"
    }

    fn memory(&self) -> Vec<(u64, u64)> {
        vec![(BASE, self.words * 8)]
    }

    fn fill(&mut self, out: &mut [u64]) {
        for address in out {
            *address = match self.last.take() {
                Some(read) => read,
                None => {
                    let read = BASE + below(self.random.bits(), self.words) * 8;
                    self.last = Some(read);
                    read
                }
            };
        }
    }
}
