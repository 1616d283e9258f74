//! `pagewise run --simulate TRACE`: policies on a recorded trace, compared with Belady's bound.

use crate::terminal;
use anyhow::{Context, Result, bail};
use pagewise_model::answer::Document;
use pagewise_model::paging_simulation::{PagingSimulation, PolicyOutcome, UsesOfPages};
use pagewise_policy::trace::Trace;
use pagewise_policy::{Config, POLICIES, by_name};
use pagewise_report::text;
use pagewise_simulate::paging::{Memory, Outcome, footprint, min, run};
use std::path::Path;

/// The policies that need no file of their own, separated by commas.
pub fn all() -> String {
    let names = POLICIES.iter().map(|(name, _)| *name);
    let own: Vec<_> = names.filter(|name| !name.contains(':')).collect();
    own.join(",")
}

fn row(policy: &str, outcome: &Outcome) -> PolicyOutcome {
    PolicyOutcome {
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

/// Runs each of `policies` (separated by commas) on the trace with this much memory, and prints
/// the outcome.
pub fn simulate(path: &Path, policies: &str, memory_bytes: u64, as_json: bool) -> Result<()> {
    let shown = path.display();
    let bytes = std::fs::read(path).with_context(|| format!("cannot read {shown}"))?;
    let trace = Trace::parse(&bytes).with_context(|| shown.to_string())?;
    let page_bytes = u64::from(trace.page_bytes.max(1));
    let pages = u32::try_from(memory_bytes / page_bytes).unwrap_or(u32::MAX);
    if pages == 0 {
        bail!("--memory is less than one page of {page_bytes} bytes");
    }
    let answer = Document::of(answer(&trace, policies, pages)?);
    terminal::present(&answer, as_json, text::paging_simulation::render)
}

fn answer(trace: &Trace, policies: &str, pages: u32) -> Result<PagingSimulation> {
    let memory = Memory::of(pages);
    let config = Config {
        pages: trace.pages(),
        budget: pages,
    };
    let rows = policies
        .split(',')
        .map(|name| {
            let read = |path: &str| std::fs::read(path).map_err(|why| why.to_string());
            let policy = by_name(name.trim(), &config, read).context("--policy")?;
            Ok(row(policy.name(), &run(trace, &*policy, memory)))
        })
        .collect::<Result<Vec<_>>>()?;
    Ok(PagingSimulation {
        trace: UsesOfPages {
            uses: trace.references.len(),
            footprint_pages: footprint(trace),
            page_bytes: trace.page_bytes,
            recorded_with_pages: trace.budget_pages,
            presumed_uses: trace.presumed,
            unknown_records: trace.unknown,
            cut_bytes: trace.cut,
        },
        memory_pages: pages,
        bound: row("MIN", &min(trace, memory)),
        policies: rows,
    })
}
