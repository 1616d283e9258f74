//! The cost of a step, by the number of pages that a chase visits.

use super::{Bench, LINE, STEPS, spread_line};
use anyhow::Result;
use pagewise_linux::hugepages::chase::Chase;
use pagewise_linux::sys::anonymous::Anonymous;
use pagewise_model::probe::{Curve, CurvePoint};
use pagewise_model::units::Bytes;
use pagewise_simulate::tlb::steps::{Reading, Step, steps};

/// Points per octave of a curve.
const DENSITY: f64 = 4.0;
/// Numbers measured between two points of a step.
const FINER: u64 = 8;

/// What a curve is measured on.
struct Memory {
    /// Pages `stride` apart.
    spread: Anonymous,
    /// Cache lines next to each other.
    together: Anonymous,
    stride: Bytes,
}

impl Bench {
    /// Cost of a step by number of pages of size `page`, `stride` apart; finer around each step.
    pub fn curve(&mut self, page: Bytes, stride: Bytes, most: u64) -> Result<Vec<Reading>> {
        let mut memory = Memory {
            spread: self.memory(Bytes(stride.0 * most), page)?,
            together: self.memory(Bytes(most * LINE).max(self.sizes.huge), self.sizes.huge)?,
            stride,
        };
        let coarse = self.readings(&mut memory, &ladder(most));
        let edges = steps(&coarse, &mut self.random);
        let known: Vec<u64> = coarse.iter().map(|reading| reading.pages).collect();
        let finer: Vec<u64> = edges
            .iter()
            .flat_map(|step| between(*step, &known))
            .collect();
        let mut all = coarse;
        all.extend(self.readings(&mut memory, &finer));
        all.sort_by_key(|reading| reading.pages);
        Ok(all)
    }

    /// Measures all of `counts` in rounds, each in a different order.
    fn readings(&mut self, memory: &mut Memory, counts: &[u64]) -> Vec<Reading> {
        let mut found: Vec<Reading> = counts
            .iter()
            .map(|&pages| Reading {
                pages,
                samples: Vec::new(),
                data: Vec::new(),
            })
            .collect();
        let mut order: Vec<usize> = (0..counts.len()).collect();
        for _ in 0..self.rounds {
            self.random.shuffle(&mut order);
            for &at in &order {
                let (spread, data) = self.times(memory, counts[at]);
                found[at].samples.push(spread);
                found[at].data.push(data);
            }
        }
        found
    }

    /// Nanoseconds per step through `pages` pages, and through the same number of cache lines next
    /// to each other.
    fn times(&mut self, memory: &mut Memory, pages: u64) -> (f64, f64) {
        let random = &mut self.random;
        let mut draw = |bound: usize| random.below(bound);
        let lines = self.sizes.base.0 / LINE;
        let places: Vec<u64> = (0..pages)
            .map(|page| page * memory.stride.0 / 8 + spread_line(page, lines))
            .collect();
        let dense: Vec<u64> = (0..pages).map(|line| line * LINE / 8).collect();
        let spread = Chase::write(&mut memory.spread, &places, &mut draw);
        let together = Chase::write(&mut memory.together, &dense, &mut draw);
        (
            spread.time(&memory.spread, STEPS),
            together.time(&memory.together, STEPS),
        )
    }

    /// A curve prepared for drawing.
    pub fn drawn(&mut self, page: Bytes, readings: &[Reading]) -> Curve {
        let points = readings.iter().map(|reading| CurvePoint {
            pages: reading.pages,
            extra_ns: reading.extra_estimate(&mut self.random),
        });
        Curve {
            page,
            stride: page,
            points: points.collect(),
        }
    }
}

/// Numbers from 4 to `most`, [`DENSITY`] per octave.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "numbers up to some thousands"
)]
fn ladder(most: u64) -> Vec<u64> {
    let mut rungs = Vec::new();
    let mut at = 8.0_f64;
    while at as u64 <= most {
        rungs.push(at as u64);
        at *= 2_f64.powf(1.0 / DENSITY);
    }
    rungs.push(most);
    rungs.dedup();
    rungs
}

/// Numbers between the two points at a step.
fn between(step: Step, known: &[u64]) -> Vec<u64> {
    let at = known.partition_point(|&pages| as_float(pages) <= step.entries.value);
    let (Some(&low), Some(&high)) = (known.get(at.wrapping_sub(1)), known.get(at)) else {
        return Vec::new();
    };
    let gap = high - low;
    let mut found: Vec<u64> = (1..FINER).map(|part| low + gap * part / FINER).collect();
    found.retain(|pages| *pages > low && *pages < high);
    found.dedup();
    found
}

fn as_float(number: u64) -> f64 {
    number as f64
}
