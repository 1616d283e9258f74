//! A key-value store: a table of buckets, and values elsewhere.

use super::{BASE, Workload, shuffled_below};
use pagewise_stats::Random;

/// Bytes of a value.
const VALUE: u64 = 512;
const BUCKET: u64 = 16;
const LINE: u64 = 64;
/// Exponent of Zipf's law, as in YCSB.
const EXPONENT: f64 = 0.99;

/// Gets and puts of keys that follow Zipf's law; popular keys can be anywhere.
pub struct KeyValue {
    random: Random,
    values: u64,
    seed: u64,
    slot: u64,
    line: u64,
}

/// A rank below `count` by Zipf's law, from a continuous inverse of its distribution.
pub fn zipf(random: &mut Random, count: u64) -> u64 {
    let uniform = (random.bits() >> 11) as f64 / (1_u64 << 53) as f64;
    let rest = 1.0 - EXPONENT;
    let most = (count as f64).powf(rest) - 1.0;
    let rank = (most * uniform + 1.0).powf(1.0 / rest) - 1.0;
    (rank as u64).min(count - 1)
}

impl KeyValue {
    /// With values of at most `bytes` in total.
    #[must_use]
    pub fn new(bytes: u64, seed: u64) -> Self {
        Self {
            random: Random::seeded(seed),
            values: (bytes / (VALUE + BUCKET)).max(2),
            seed,
            slot: 0,
            line: 0,
        }
    }

    fn values_start(&self) -> u64 {
        BASE + BUCKET * self.values
    }
}

impl Workload for KeyValue {
    fn name(&self) -> &'static str {
        "key-value"
    }

    fn memory(&self) -> Vec<(u64, u64)> {
        vec![(BASE, (BUCKET + VALUE) * self.values)]
    }

    fn fill(&mut self, out: &mut [u64]) {
        for address in out {
            *address = if self.line == 0 {
                let rank = zipf(&mut self.random, self.values);
                self.slot = shuffled_below(rank, self.values, self.seed);
                let bucket = shuffled_below(self.slot, self.values, !self.seed);
                BASE + bucket * BUCKET
            } else {
                self.values_start() + self.slot * VALUE + (self.line - 1) * LINE
            };
            self.line = (self.line + 1) % (1 + VALUE / LINE);
        }
    }
}
