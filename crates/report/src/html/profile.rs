//! The page about a profile: samples as columns, from which the page draws any range of time.
//!
//! A column is a sequence of variable-length numbers (seven bits a byte, lowest first), deflated,
//! in base64. Times are differences in microseconds, stacks are nodes of a tree in which callers
//! come first, told by how far back the caller is.

use super::{Error, deflated, encode, generator, page};
use crate::base64::base64;
use crate::visible::command_line;
use pagewise_model::profile::{NodeId, Profile, WeightUnit};
use serde::Serialize;

/// The data as the page expects them (`web/src/data/profile.ts`).
#[derive(Serialize)]
struct ProfilePage<'a> {
    kind: &'static str,
    generator: String,
    name: &'a str,
    command_line: String,
    /// Of the first moment, by the recording's clock: rows of the heat map are parts of its
    /// seconds.
    start_ns: u64,
    span_ns: u64,
    has_times: bool,
    samples: usize,
    events: Vec<Event<'a>>,
    threads: Vec<(i32, i32, &'a str)>,
    modules: Vec<&'a str>,
    /// Name and module of each frame.
    frames: Vec<(&'a str, u32)>,
    nodes: usize,
    columns: Columns,
    losses: Vec<(&'static str, u64)>,
    notes: &'a [String],
}

#[derive(Serialize)]
struct Event<'a> {
    name: &'a str,
    unit: WeightUnit,
}

#[derive(Serialize)]
struct Columns {
    times: String,
    threads: String,
    events: String,
    weights: String,
    stacks: String,
    parents: String,
    frames: String,
}

/// The page about a profile called `name`; `text` is what a browser without scripts shows.
///
/// # Errors
/// Only if the profile could not be encoded, which the model's types rule out.
pub fn render_profile(profile: &Profile, name: &str, text: &str) -> Result<String, Error> {
    let mut modules = Modules::default();
    let frames = profile.frames.iter();
    let frames = frames.map(|frame| (&*frame.name, modules.index(&frame.module)));
    let frames = frames.collect();
    let threads = profile.threads.iter();
    let data = ProfilePage {
        kind: "profile",
        generator: generator(),
        name,
        command_line: command_line(&profile.command),
        start_ns: profile.start.0,
        span_ns: profile.span.0,
        has_times: profile.has_times,
        samples: profile.samples.len(),
        events: profile
            .events
            .iter()
            .map(|event| Event {
                name: &event.name,
                unit: event.unit,
            })
            .collect(),
        threads: threads.map(|t| (t.pid, t.tid, &*t.comm)).collect(),
        frames,
        modules: modules.names,
        nodes: profile.stacks.len(),
        columns: columns(profile)?,
        losses: profile
            .losses
            .iter()
            .map(|(kind, count)| (kind.describe(), count))
            .collect(),
        notes: &profile.notes,
    };
    Ok(page(&encode(&data)?, text))
}

fn columns(profile: &Profile) -> Result<Columns, Error> {
    let samples = &profile.samples;
    let mut before = 0;
    let times = samples.times.iter().map(|time| {
        let micros = time / 1000;
        u64::saturating_sub(micros, std::mem::replace(&mut before, micros))
    });
    let distance = |(node, parent, _): (NodeId, NodeId, _)| u64::from(node.0 - parent.0);
    let nodes = || profile.stacks.nodes();
    Ok(Columns {
        times: column(times)?,
        threads: column(samples.threads.iter().map(|&thread| u64::from(thread)))?,
        events: column(samples.events.iter().map(|&event| u64::from(event)))?,
        weights: column(samples.weights.iter().copied())?,
        stacks: column(samples.stacks.iter().map(|node| u64::from(node.0)))?,
        parents: column(nodes().map(distance))?,
        frames: column(nodes().map(|(_, _, frame)| u64::from(frame.0)))?,
    })
}

fn column(numbers: impl Iterator<Item = u64>) -> Result<String, Error> {
    let mut bytes = Vec::new();
    for mut number in numbers {
        while number >= 0x80 {
            bytes.push(number.to_le_bytes()[0] | 0x80);
            number >>= 7;
        }
        bytes.push(number.to_le_bytes()[0]);
    }
    Ok(base64(&deflated(&bytes)?))
}

#[derive(Default)]
struct Modules<'a> {
    names: Vec<&'a str>,
    places: std::collections::HashMap<&'a str, u32>,
}

impl<'a> Modules<'a> {
    fn index(&mut self, name: &'a str) -> u32 {
        *self.places.entry(name).or_insert_with(|| {
            self.names.push(name);
            u32::try_from(self.names.len() - 1).unwrap_or(u32::MAX)
        })
    }
}
