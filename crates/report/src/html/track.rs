//! The samples of one event as columns.

use super::bytes::{Column, Columns};
use super::pack::{by_frequency, inverse};
use pagewise_model::profile::{NO_CPU, NodeId, ProfileEvent, Samples, WeightUnit};
use serde::Serialize;
use std::io;

/// The samples of one event.
#[derive(Serialize)]
pub(super) struct Track<'a> {
    event: &'a str,
    unit: WeightUnit,
    frequency: Option<u64>,
    samples: usize,
    /// The weight of all samples, if they are equal.
    weight: Option<u64>,
    /// Numbers of the CPUs that occur; -1 for an unknown CPU.
    cpu_numbers: Vec<i32>,
    /// Nodes that are the complete stack of a sample, most frequent first.
    leaves: Column,
    leaf_count: usize,
    times: Column,
    cpus: Column,
    threads: Column,
    stacks: Column,
    weights: Option<Column>,
}

/// The samples of a track.
pub(super) struct Rows<'a> {
    pub(super) samples: &'a Samples,
    pub(super) rows: &'a [u32],
    /// Time of the first sample, by the recording's clock.
    pub(super) start: u64,
    pub(super) tick: u64,
    /// The number of each thread on the page.
    pub(super) threads: &'a [u32],
}

/// Encodes a value that is as expected.
const SAME: u64 = 0;

impl<'a> Track<'a> {
    pub(super) fn of(
        event: &'a ProfileEvent,
        rows: &Rows<'_>,
        place: &impl Fn(NodeId) -> u32,
        columns: &mut Columns,
    ) -> io::Result<Self> {
        let all = rows.samples;
        let row = || rows.rows.iter().map(|&at| at as usize);
        let mut numbers: Vec<u16> = row().map(|at| all.cpus[at]).collect();
        numbers.sort_unstable();
        numbers.dedup();
        let cpus: Vec<u32> = row()
            .map(|at| numbers.binary_search(&all.cpus[at]).unwrap_or(0))
            .map(|cpu| u32::try_from(cpu).unwrap_or(0))
            .collect();
        let threads: Vec<u32> = row()
            .map(|at| rows.threads[all.threads[at] as usize])
            .collect();
        let nodes: Vec<u32> = row().map(|at| place(all.stacks[at])).collect();
        let end = nodes.iter().max().map_or(0, |&node| node as usize + 1);
        let leaves = by_frequency(nodes.iter().copied(), end);
        let ranks = inverse(&leaves, end);
        let stacks = nodes.iter().map(|&node| ranks[node as usize]);
        let first = row().next().map(|at| all.weights[at]);
        let weight = first.filter(|&first| row().all(|at| all.weights[at] == first));
        let mut held = vec![0; numbers.len()];
        let weights = row().zip(&cpus).map(|(at, &cpu)| {
            let weight = all.weights[at];
            match std::mem::replace(&mut held[cpu as usize], weight) == weight {
                true => SAME,
                false => weight + 1,
            }
        });
        let number = |&cpu: &u16| if cpu == NO_CPU { -1 } else { i32::from(cpu) };
        Ok(Self {
            event: &event.name,
            unit: event.unit,
            frequency: event.frequency,
            samples: rows.rows.len(),
            weight,
            cpu_numbers: numbers.iter().map(number).collect(),
            leaf_count: leaves.len(),
            leaves: columns.add(leaves.iter().map(|&node| u64::from(node)))?,
            times: columns.add(ticks(rows))?,
            cpus: columns.add(by_turns(&cpus, numbers.len()))?,
            threads: columns.add(kept(&threads, &cpus, numbers.len()))?,
            stacks: columns.add(stacks.map(u64::from))?,
            weights: match weight {
                Some(_) => None,
                None => Some(columns.add(weights)?),
            },
        })
    }
}

/// Times as ticks since the previous sample.
fn ticks<'a>(rows: &'a Rows<'_>) -> impl Iterator<Item = u64> + 'a {
    let mut before = rows.start / rows.tick;
    rows.rows.iter().map(move |&at| {
        let tick = (rows.start + rows.samples.times[at as usize]) / rows.tick;
        tick.saturating_sub(std::mem::replace(&mut before, tick))
    })
}

/// CPUs: 0 for the CPU that followed the previous one the last time, otherwise its number plus one.
fn by_turns(cpus: &[u32], count: usize) -> impl Iterator<Item = u64> {
    let mut next = vec![0_u32; count];
    let mut before = 0;
    cpus.iter().map(move |&cpu| {
        let expected = std::mem::replace(&mut next[before], cpu);
        before = cpu as usize;
        match expected == cpu {
            true => SAME,
            false => u64::from(cpu) + 1,
        }
    })
}

/// A value per sample: 0 if it equals the last value on the same CPU, otherwise the value plus one.
fn kept(numbers: &[u32], cpus: &[u32], count: usize) -> impl Iterator<Item = u64> {
    let mut held = vec![u32::MAX; count];
    numbers.iter().zip(cpus).map(move |(&number, &cpu)| {
        match std::mem::replace(&mut held[cpu as usize], number) == number {
            true => SAME,
            false => u64::from(number) + 1,
        }
    })
}
