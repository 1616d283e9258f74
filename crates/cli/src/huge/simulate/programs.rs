//! Opens the programs to simulate: generators by name, or a trace.

use super::Args;
use anyhow::{Context, Result, bail};
use pagewise_formats::memory_trace::{self, Accesses};
use pagewise_simulate::page_sizes::Source;
use pagewise_simulate::tlb::Visit;
use pagewise_simulate::tlb::workload::Replay;
use std::io::BufReader;
use std::path::Path;

/// The programs given by the arguments, and notes on unused parts of a trace.
pub fn open(args: &Args) -> Result<(Vec<Source>, Vec<String>)> {
    let (mut sources, mut notes) = (Vec::new(), Vec::new());
    for text in &args.workload {
        let source = Source::Generated(text.clone());
        source.workload(1)?;
        sources.push(source);
    }
    if let Some(path) = &args.trace {
        sources.push(trace(path, args.most, &mut notes)?);
    }
    if sources.is_empty() {
        bail!("nothing to simulate: name a --workload or a trace");
    }
    Ok((sources, notes))
}

fn trace(path: &Path, most: usize, notes: &mut Vec<String>) -> Result<Source> {
    let name = path.display().to_string();
    let input = BufReader::with_capacity(1 << 18, crate::input::open(path)?);
    let (mut visits, mut room) = (Vec::new(), most as u64);
    let summary = memory_trace::read(input, &mut |batch| {
        room -= keep(batch.accesses, room, &mut visits);
    })
    .with_context(|| format!("cannot use {name}"))?;
    let mut note = |text: String| notes.push(format!("{name}: {text}"));
    let left_out = summary.accesses - (most as u64 - room);
    if left_out > 0 {
        note(format!(
            "{left_out} accesses after the first {most} are left out (--most)"
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
        note("the trace was cut short; the rest of it is used".to_owned());
    }
    if summary.is_sampled {
        note(
            "these are samples: the accesses in between are missing, so locality looks worse than it is; compare configurations, not rates"
                .to_owned(),
        );
    }
    for text in summary.notes {
        note(text);
    }
    let replay = Replay::new(&name, visits);
    Ok(Source::Trace(replay.context("the trace has no accesses")?))
}

/// Adds up to `room` accesses; returns how many.
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
