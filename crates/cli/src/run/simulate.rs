//! `pagewise run --simulate TRACE`: policies on a recorded trace, compared with Belady's bound.

use crate::terminal;
use anyhow::{Context, Result, bail};
use pagewise_model::answer::Document;
use pagewise_model::paging_simulation::{PagingSimulation, PolicyOutcome, UsesOfPages};
use pagewise_policy::replay::Replay;
use pagewise_policy::trace::Trace;
use pagewise_policy::{Config, POLICIES, Policy, by_name};
use pagewise_report::text;
use pagewise_simulate::paging::{Memory, Outcome, footprint, in_another_order, min, run};
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
        knew_the_run: false,
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
    refuse_presumed(&trace, path)?;
    let answer = Document::new(answer(&trace, &bytes, policies, pages)?);
    terminal::present(&answer, as_json, text::paging_simulation::render)
}

/// Which pages that the recorded run read ahead were used, and when, nobody has seen: where they are most
/// of the trace, it cannot tell which policy waits less.
fn refuse_presumed(trace: &Trace, path: &Path) -> Result<()> {
    let (presumed, uses) = (trace.presumed, trace.references.len() as u64);
    if presumed * 2 > uses {
        bail!(
            "{}: {} % of its uses are pages that the recorded run read ahead. Whether and when they were used is not known, so it cannot tell which policy waits less. Record the program without read-ahead: pagewise run --policy alone+2q --record-faults FILE",
            path.display(),
            presumed * 100 / uses.max(1)
        );
    }
    Ok(())
}

/// `replay` of the simulated run itself, as another run would fare that uses the same pages in another
/// order: the run knows its own future, and no other does.
fn replay_in_another_order(trace: &Trace, config: &Config) -> Result<PolicyOutcome> {
    let inner = by_name("2q", config, |_| Err(String::new()))?;
    let other = in_another_order(trace, config.budget);
    let replay = Replay::new(&other, inner, config.budget);
    let outcome = run(trace, &replay, Memory::new(config.budget));
    Ok(row(&format!("{}, another order", replay.name()), &outcome))
}

fn answer(trace: &Trace, bytes: &[u8], policies: &str, pages: u32) -> Result<PagingSimulation> {
    let memory = Memory::new(pages);
    let config = Config {
        pages: trace.pages(),
        budget: pages,
    };
    let mut rows = Vec::new();
    for name in policies.split(',').map(str::trim) {
        let read = |path: &str| std::fs::read(path).map_err(|why| why.to_string());
        let policy = by_name(name, &config, read).context("--policy")?;
        let found = row(policy.name(), &run(trace, &*policy, memory));
        let replayed = name.strip_prefix("replay:");
        match replayed.is_some_and(|path| std::fs::read(path).is_ok_and(|read| read == bytes)) {
            false => rows.push(found),
            true => {
                rows.push(PolicyOutcome {
                    policy: format!("{}, same order", found.policy),
                    knew_the_run: true,
                    ..found
                });
                rows.push(replay_in_another_order(trace, &config)?);
            }
        }
    }
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
