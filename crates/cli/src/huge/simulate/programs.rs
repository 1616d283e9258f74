//! What is simulated: generators by name, or a trace.

use super::Args;
use anyhow::{Context, Result, anyhow, bail};
use pagewise_analyse::tlb::Visit;
use pagewise_analyse::tlb::workload::{Mix, Replay, Workload, named};
use pagewise_model::formats::memory_trace::{self, Accesses};
use pagewise_model::huge_simulation::HugeSimulation;
use std::io::BufReader;
use std::path::Path;

/// Something that can be run again from its start.
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
    pub fn name(&self) -> &str {
        match self {
            Self::Generated(name) => name,
            Self::Trace(replay) => replay.name(),
        }
    }

    /// From its start.
    pub fn workload(&self, seed: u64) -> Result<Box<dyn Workload>> {
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

fn generated(text: &str, seed: u64) -> Result<Box<dyn Workload>> {
    let (name, size) = match text.split_once(':') {
        Some((name, size)) => (name, Some(bytes(size)?)),
        None => (text, None),
    };
    named(name, size, seed).map_err(|error| anyhow!(error))
}

/// A size such as 512M.
fn bytes(text: &str) -> Result<u64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match text[digits.len()..].to_ascii_uppercase().as_str() {
        "K" | "KIB" => 1 << 10,
        "M" | "MIB" => 1 << 20,
        "G" | "GIB" => 1 << 30,
        _ => bail!("\"{text}\" is no size: expected one such as 512M or 2G"),
    };
    let number: u64 = digits
        .parse()
        .with_context(|| format!("\"{text}\" is no size: expected one such as 512M or 2G"))?;
    let size = number.checked_mul(unit).filter(|size| *size <= 1 << 40);
    size.with_context(|| format!("{text} is more than the 1 TiB that is simulated"))
}

/// The programs that the arguments name.
pub fn open(args: &Args, result: &mut HugeSimulation) -> Result<Vec<Source>> {
    let mut sources = Vec::new();
    for text in &args.workload {
        let source = Source::Generated(text.clone());
        source.workload(1)?;
        sources.push(source);
    }
    if let Some(path) = &args.trace {
        sources.push(trace(path, args.most, result)?);
    }
    if sources.is_empty() {
        bail!("nothing to simulate: name a --workload, a trace, or --paper");
    }
    result.workloads = sources
        .iter()
        .map(|source| source.name().to_owned())
        .collect();
    Ok(sources)
}

fn trace(path: &Path, most: usize, result: &mut HugeSimulation) -> Result<Source> {
    let name = path.display().to_string();
    let input = BufReader::with_capacity(1 << 18, crate::input::open(path)?);
    let (mut visits, mut room) = (Vec::new(), most as u64);
    let summary = memory_trace::read(input, &mut |batch| {
        room -= keep(batch.accesses, room, &mut visits);
    })
    .with_context(|| format!("cannot use {name}"))?;
    let mut note = |text: String| result.notes.push(format!("{name}: {text}"));
    let left_out = summary.accesses - (most as u64 - room);
    if left_out > 0 {
        note(format!(
            "{left_out} accesses beyond the first {most} are left out (--most)"
        ));
    }
    if summary.dropped > 0 {
        note(format!(
            "{} accesses are missing from the trace itself",
            summary.dropped
        ));
    }
    if summary.unknown > 0 {
        note(format!(
            "{} blocks or lines were not understood",
            summary.unknown
        ));
    }
    if !summary.is_complete {
        note("the trace was cut short; what is there is used".to_owned());
    }
    if summary.is_sampled {
        note(
            "these are samples: what lies between them is missing, so that locality looks worse \
             than it is; compare configurations, not rates"
                .to_owned(),
        );
    }
    for text in summary.notes {
        note(text);
    }
    let replay = Replay::new(&name, visits);
    Ok(Source::Trace(replay.context("the trace has no access")?))
}

/// Adds accesses, so many at most; how many.
fn keep(accesses: Accesses<'_>, room: u64, visits: &mut Vec<Visit>) -> u64 {
    let mut left = room;
    match accesses {
        Accesses::Addresses(addresses) => {
            let count = addresses
                .len()
                .min(usize::try_from(room).unwrap_or(usize::MAX));
            for &address in &addresses[..count] {
                Visit::push(visits, address);
            }
            left -= count as u64;
        }
        Accesses::Pages(runs) => {
            visits.reserve(runs.len());
            for run in runs {
                let now = run.accesses().min(left);
                Visit::push_many(visits, run.page(), now);
                left -= now;
            }
        }
    }
    room - left
}
