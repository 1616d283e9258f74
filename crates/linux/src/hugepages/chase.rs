//! Timed pointer chases: the cost of an access when translations exceed the TLB's reach.
//!
//! A chase follows one random cycle through chosen words of memory; each address depends on the
//! word before, so nothing overlaps. Time is the thread's CPU time.

use crate::sys::anonymous::Anonymous;
use crate::sys::machine::thread_cpu_time;
use std::hint::black_box;

/// A cycle through words of memory.
#[derive(Clone, Debug)]
pub struct Chase {
    /// Word at which the cycle starts.
    start: u64,
    /// Steps until the cycle returns to its start.
    length: u64,
}

/// A source of random numbers, so that callers decide on the seed.
pub trait Draw {
    /// A number below `bound`.
    fn below(&mut self, bound: usize) -> usize;
}

impl<F: FnMut(usize) -> usize> Draw for F {
    fn below(&mut self, bound: usize) -> usize {
        self(bound)
    }
}

impl Chase {
    /// Writes a random cycle through the words at `places` (indices of distinct words).
    ///
    /// # Panics
    /// When a place lies outside of the memory.
    pub fn write(memory: &mut Anonymous, places: &[u64], random: &mut impl Draw) -> Self {
        let mut order: Vec<u64> = places.to_vec();
        for last in (1..order.len()).rev() {
            order.swap(last, random.below(last + 1));
        }
        let words = memory.words_mut();
        for pair in order.windows(2) {
            words[index(pair[0])] = pair[1];
        }
        let (Some(&first), Some(&last)) = (order.first(), order.last()) else {
            return Self {
                start: 0,
                length: 0,
            };
        };
        words[index(last)] = first;
        Self {
            start: first,
            length: order.len() as u64,
        }
    }

    /// Nanoseconds of CPU time per step, over at least `steps` steps and at least one whole round,
    /// after an untimed round.
    #[must_use]
    pub fn time(&self, memory: &Anonymous, steps: u64) -> f64 {
        let words = memory.words();
        let steps = steps.max(self.length).max(1);
        let warm = follow(words, self.start, self.length.min(steps));
        let began = thread_cpu_time();
        let end = follow(words, warm, steps);
        let took = thread_cpu_time() - began;
        black_box(end);
        took.0 as f64 / steps as f64
    }
}

fn follow(words: &[u64], mut at: u64, steps: u64) -> u64 {
    for _ in 0..steps {
        at = words[index(at)];
    }
    at
}

/// Places are indices that were checked when they were written.
#[inline]
fn index(place: u64) -> usize {
    usize::try_from(place).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::anonymous::Pages;

    #[test]
    fn a_chase_visits_every_place_once_a_round() {
        let mut memory = Anonymous::map(1 << 20, 1 << 21, Pages::Base).unwrap();
        let places: Vec<u64> = (0..100).map(|page| page * 512 + page % 64 * 8).collect();
        let mut state = 1_u64;
        let mut draw = |bound: usize| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            usize::try_from(state >> 33).unwrap() % bound
        };
        let chase = Chase::write(&mut memory, &places, &mut draw);
        let mut seen = vec![chase.start];
        for _ in 1..100 {
            seen.push(memory.words()[index(*seen.last().unwrap())]);
        }
        assert_eq!(memory.words()[index(*seen.last().unwrap())], chase.start);
        seen.sort_unstable();
        assert_eq!(seen, places);
        assert!(chase.time(&memory, 1000) > 0.0);
    }
}
