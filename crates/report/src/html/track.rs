//! The samples of one event as columns.

use super::bytes::{Column, Columns};
use super::ranks::{by_frequency, inverse};
use pagewise_model::column::{self, Number};
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
    pub(super) rows: &'a Numbers,
    /// Time of the first sample, by the recording's clock.
    pub(super) start: u64,
    pub(super) tick: u64,
    /// The number of each thread on the page.
    pub(super) threads: &'a [u32],
    /// Nodes of the page's tree.
    pub(super) nodes: usize,
}

impl<'a> Rows<'a> {
    /// The numbers of these samples in a column.
    fn values<T: Number>(
        &self,
        column: &'a column::Column<T>,
    ) -> impl Iterator<Item = T> + Clone + 'a {
        let (all, some) = match self.rows {
            Numbers::All(_) => (Some(column.iter()), &[][..]),
            Numbers::Some(numbers) => (None, &numbers[..]),
        };
        let some = some.iter().map(|&at| column.at(at as usize));
        all.into_iter().flatten().chain(some)
    }
}

/// Which samples are a track's. Millions of them are gone through once for each column rather than
/// copied.
pub(super) enum Numbers {
    /// All, of this many.
    All(usize),
    /// These.
    Some(Vec<u32>),
}

impl Numbers {
    /// The samples of each event.
    pub(super) fn by_event(samples: &Samples, events: usize) -> Vec<Self> {
        let mut of_events: Vec<Self> = (0..events).map(|_| Self::Some(Vec::new())).collect();
        if let Some(event) = samples.events.common() {
            of_events[usize::from(event)] = Self::All(samples.len());
            return of_events;
        }
        for (event, at) in samples.events.iter().zip(0..) {
            if let Self::Some(numbers) = &mut of_events[usize::from(event)] {
                numbers.push(at);
            }
        }
        of_events
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Self::All(count) => *count,
            Self::Some(numbers) => numbers.len(),
        }
    }
}

/// Encodes a value that is as expected.
const SAME: u64 = 0;

impl<'a> Track<'a> {
    pub(super) fn new(
        event: &'a ProfileEvent,
        rows: &Rows<'_>,
        place: &impl Fn(NodeId) -> u32,
        columns: &mut Columns,
    ) -> io::Result<Self> {
        let all = rows.samples;
        let numbers = different(rows.values(&all.cpus));
        let places = numbers.iter().map(|&cpu| u32::from(cpu));
        let places = inverse(&places.collect::<Vec<_>>(), usize::from(NO_CPU) + 1);
        let cpus = || rows.values(&all.cpus).map(|cpu| places[usize::from(cpu)]);
        let threads = rows.values(&all.threads);
        let threads = threads.map(|thread| rows.threads[thread as usize]);
        let nodes = || rows.values(&all.stacks).map(place);
        let leaves = by_frequency(nodes(), rows.nodes);
        let ranks = inverse(&leaves, rows.nodes);
        let stacks = nodes().map(|node| ranks[node as usize]);
        let first = rows.values(&all.weights).next();
        let weight = first.filter(|&first| match all.weights.common() {
            Some(_) => true,
            None => rows.values(&all.weights).all(|weight| weight == first),
        });
        let mut held = vec![0; numbers.len()];
        let weights = rows.values(&all.weights).zip(cpus()).map(|(weight, cpu)| {
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
            cpus: columns.add(by_turns(cpus(), numbers.len()))?,
            threads: columns.add(kept(threads.zip(cpus()), numbers.len()))?,
            stacks: columns.add(stacks.map(u64::from))?,
            weights: match weight {
                Some(_) => None,
                None => Some(columns.add(weights)?),
            },
        })
    }
}

/// The numbers that occur, in order.
fn different(numbers: impl Iterator<Item = u16>) -> Vec<u16> {
    let mut occurs = vec![false; usize::from(u16::MAX) + 1];
    for number in numbers {
        occurs[usize::from(number)] = true;
    }
    (0..=u16::MAX)
        .filter(|&number| occurs[usize::from(number)])
        .collect()
}

/// Times as ticks since the previous sample.
fn ticks<'a>(rows: &'a Rows<'_>) -> impl Iterator<Item = u64> + 'a {
    let mut before = rows.start / rows.tick;
    rows.values(&rows.samples.times).map(move |time| {
        let tick = (rows.start + time) / rows.tick;
        tick.saturating_sub(std::mem::replace(&mut before, tick))
    })
}

/// CPUs: 0 for the CPU that followed the previous one the last time, otherwise its number plus one.
fn by_turns(cpus: impl Iterator<Item = u32>, count: usize) -> impl Iterator<Item = u64> {
    let mut next = vec![0_u32; count];
    let mut before = 0;
    cpus.map(move |cpu| {
        let expected = std::mem::replace(&mut next[before], cpu);
        before = cpu as usize;
        match expected == cpu {
            true => SAME,
            false => u64::from(cpu) + 1,
        }
    })
}

/// A value per sample: 0 if it equals the last value on the same CPU, otherwise the value plus one.
fn kept(
    numbers_by_cpu: impl Iterator<Item = (u32, u32)>,
    count: usize,
) -> impl Iterator<Item = u64> {
    let mut held = vec![u32::MAX; count];
    numbers_by_cpu.map(move |(number, cpu)| {
        match std::mem::replace(&mut held[cpu as usize], number) == number {
            true => SAME,
            false => u64::from(number) + 1,
        }
    })
}
