//! `pagewise run --simulate TRACE`: policies on a recorded trace, beside Belady's bound.

use crate::terminal;
use anyhow::{Context, Result, bail};
use pagewise_policy::trace::Trace;
use pagewise_policy::{Config, by_name};
use pagewise_simulate::paging::{Memory, Outcome, footprint, min, run};
use serde::Serialize;
use std::io::Write;
use std::path::Path;

/// Version of the JSON document; raised when a field changes its meaning.
const SCHEMA_VERSION: u32 = 1;

/// The answer.
#[derive(Serialize)]
struct Answer {
    schema_version: u32,
    trace: Source,
    memory_pages: u32,
    /// No policy without prefetching reads fewer pages.
    bound: Row,
    policies: Vec<Row>,
}

#[derive(Serialize)]
struct Source {
    uses: usize,
    footprint_pages: u64,
    page_bytes: u32,
    recorded_with_pages: u64,
    /// Pages read early in the recorded run, taken for uses.
    presumed_uses: u64,
    unknown_records: u64,
    cut_bytes: usize,
}

#[derive(Serialize)]
struct Row {
    policy: String,
    refaults: u64,
    pages_read: u64,
    read_early: u64,
    read_in_vain: u64,
    soft_faults: u64,
    evictions: u64,
    pages_written: u64,
}

impl Row {
    fn new(policy: &str, outcome: &Outcome) -> Self {
        Row {
            policy: policy.to_owned(),
            refaults: outcome.refaults,
            pages_read: outcome.pages_read,
            read_early: outcome.read_early,
            read_in_vain: outcome.read_in_vain,
            soft_faults: outcome.soft_faults,
            evictions: outcome.evictions,
            pages_written: outcome.pages_written,
        }
    }
}

/// Runs each of `policies` (separated by commas) on the trace with this much memory, and prints
/// the outcome.
pub fn simulate(path: &Path, policies: &str, memory_bytes: u64, json: bool) -> Result<()> {
    let shown = path.display();
    let bytes = std::fs::read(path).with_context(|| format!("cannot read {shown}"))?;
    let trace = Trace::parse(&bytes).with_context(|| shown.to_string())?;
    let page_bytes = u64::from(trace.page_bytes.max(1));
    let pages = u32::try_from(memory_bytes / page_bytes).unwrap_or(u32::MAX);
    if pages == 0 {
        bail!("--memory holds no page of {page_bytes} bytes");
    }
    let answer = answer(&trace, policies, pages)?;
    let text = match json {
        true => pagewise_report::json::to_string(&answer)?,
        false => table(&answer),
    };
    terminal::output(json).write_all(text.as_bytes())?;
    Ok(())
}

fn answer(trace: &Trace, policies: &str, pages: u32) -> Result<Answer> {
    let memory = Memory::of(pages);
    let config = Config {
        pages: trace.pages(),
        budget: pages,
    };
    let rows = policies
        .split(',')
        .map(|name| {
            let policy = by_name(name.trim(), &config).context("--policy")?;
            Ok(Row::new(policy.name(), &run(trace, &*policy, memory)))
        })
        .collect::<Result<Vec<_>>>()?;
    Ok(Answer {
        schema_version: SCHEMA_VERSION,
        trace: Source {
            uses: trace.references.len(),
            footprint_pages: footprint(trace),
            page_bytes: trace.page_bytes,
            recorded_with_pages: trace.budget_pages,
            presumed_uses: trace.presumed,
            unknown_records: trace.unknown,
            cut_bytes: trace.cut,
        },
        memory_pages: pages,
        bound: Row::new("MIN", &min(trace, memory)),
        policies: rows,
    })
}

fn table(answer: &Answer) -> String {
    use std::fmt::Write;
    let mut text = String::new();
    let Source {
        uses,
        footprint_pages,
        recorded_with_pages,
        ..
    } = answer.trace;
    let _ = writeln!(
        text,
        "{uses} uses of {footprint_pages} pages, simulated with {} pages of memory\n",
        answer.memory_pages
    );
    let _ = writeln!(
        text,
        "{:<20}{:>12}{:>12}{:>12}{:>12}{:>12}{:>12}",
        "policy", "waits", "read", "early", "in vain", "evicted", "written"
    );
    for row in answer.policies.iter().chain([&answer.bound]) {
        let _ = writeln!(
            text,
            "{:<20}{:>12}{:>12}{:>12}{:>12}{:>12}{:>12}",
            row.policy,
            row.refaults,
            row.pages_read,
            row.read_early,
            row.read_in_vain,
            row.evictions,
            row.pages_written
        );
    }
    let _ = writeln!(
        text,
        "\nMIN is Belady's bound: no policy reads fewer pages. Waits count threads held up by the store."
    );
    if u64::from(answer.memory_pages) < recorded_with_pages {
        let _ = writeln!(
            text,
            "The trace was recorded with {recorded_with_pages} pages: uses of pages that were resident then are not in \
             it, so figures for less memory are lower bounds."
        );
    }
    let lost = [
        (
            answer.trace.presumed_uses,
            "pages read early by the recorded run count as used then",
        ),
        (
            answer.trace.unknown_records,
            "records of unknown kind were passed over",
        ),
        (
            answer.trace.cut_bytes as u64,
            "bytes at the end are no whole record",
        ),
    ];
    for (count, what) in lost.iter().filter(|(count, _)| *count > 0) {
        let _ = writeln!(text, "{count} {what}.");
    }
    text
}
