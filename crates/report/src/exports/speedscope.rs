//! speedscope's own file format (its `file-format-schema.json`, version 1.25): a sampled profile
//! for each thread and event, in time order.

use crate::border::{Border, Content};
use pagewise_model::profile::{Profile, ProfileThread, WeightUnit};
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::{self, Write};

/// Threads that get a profile of their own; speedscope lists them all in one menu.
const THREADS: usize = 500;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct File<'a> {
    #[serde(rename = "$schema")]
    schema: &'static str,
    exporter: String,
    name: &'a str,
    active_profile_index: usize,
    shared: Shared<'a>,
    profiles: Vec<Sampled>,
}

#[derive(Serialize)]
struct Shared<'a> {
    frames: Vec<Frame<'a>>,
}

#[derive(Serialize)]
struct Frame<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    file: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Sampled {
    #[serde(rename = "type")]
    kind: &'static str,
    name: String,
    unit: &'static str,
    start_value: u64,
    end_value: u64,
    /// Numbers of frames, outermost first.
    samples: Vec<Vec<u32>>,
    weights: Vec<u64>,
}

/// Writes a profile.
///
/// # Errors
/// When `out` can't be written.
pub fn write(profile: &Profile, name: &str, out: &mut impl Write) -> io::Result<()> {
    let frames = profile.frames.iter().map(|frame| Frame {
        name: &frame.name,
        file: &frame.module,
    });
    let file = File {
        schema: "https://www.speedscope.app/file-format-schema.json",
        exporter: format!("pagewise {}", env!("CARGO_PKG_VERSION")),
        name,
        active_profile_index: 0,
        shared: Shared {
            frames: frames.collect(),
        },
        profiles: profiles(profile),
    };
    let mut out = Border::new(out, Content::Json);
    serde_json::to_writer(&mut out, &file)?;
    writeln!(out)?;
    out.flush()
}

/// The profiles of the busiest threads, ordered by weight of the first event; then all others
/// merged into one.
fn profiles(profile: &Profile) -> Vec<Sampled> {
    let mut samples: BTreeMap<(u16, u32), Vec<usize>> = BTreeMap::new();
    for (at, sample) in profile.samples.iter().enumerate() {
        samples
            .entry((sample.event, sample.thread))
            .or_default()
            .push(at);
    }
    let mut threads: Vec<((u16, u32), Vec<usize>)> = samples.into_iter().collect();
    threads.sort_by_key(|((event, _), samples)| (*event, std::cmp::Reverse(samples.len())));
    let mut rest: BTreeMap<u16, Vec<usize>> = BTreeMap::new();
    for ((event, _), samples) in threads.drain(threads.len().min(THREADS)..) {
        rest.entry(event).or_default().extend(samples);
    }
    let mut all = Vec::new();
    for ((event, thread), samples) in threads {
        let name = profile.threads.get(thread as usize).map(thread_name);
        all.push(sampled(profile, event, &name.unwrap_or_default(), &samples));
    }
    for (event, mut samples) in rest {
        samples.sort_unstable();
        all.push(sampled(profile, event, "other threads", &samples));
    }
    all
}

fn sampled(profile: &Profile, event: u16, thread: &str, samples: &[usize]) -> Sampled {
    let of = profile.events.get(usize::from(event));
    let weights: Vec<u64> = samples
        .iter()
        .map(|&at| profile.samples.weights.at(at))
        .collect();
    let stack = |&at: &usize| {
        let frames = profile.stacks.frames(profile.samples.stacks.at(at));
        let mut frames: Vec<u32> = frames.map(|frame| frame.0).collect();
        frames.reverse();
        frames
    };
    Sampled {
        kind: "sampled",
        name: match of {
            Some(event) => format!("{thread} · {}", event.name),
            None => thread.to_owned(),
        },
        unit: match of.map(|event| event.unit) {
            Some(WeightUnit::Nanoseconds) => "nanoseconds",
            Some(WeightUnit::Bytes) => "bytes",
            _ => "none",
        },
        start_value: 0,
        end_value: weights
            .iter()
            .fold(0, |sum, &weight| sum.saturating_add(weight)),
        samples: samples.iter().map(stack).collect(),
        weights,
    }
}

fn thread_name(thread: &ProfileThread) -> String {
    match (&*thread.comm, thread.tid) {
        ("", -1) => "all".to_owned(),
        (comm, -1) => comm.to_owned(),
        (comm, tid) => format!("{comm} {tid}"),
    }
}
