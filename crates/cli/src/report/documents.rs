//! What other commands wrote by `--json`, opened again: shown as the command itself showed it.

use super::Args;
use crate::stored::same_version;
use crate::{page, terminal};
use anyhow::{Context, Result, bail};
use pagewise_model::balance::{BALANCE_VERSION, Balance};
use pagewise_model::bench::{
    ALLOCATOR_BENCH_VERSION, AllocatorBench, FAULT_BENCH_VERSION, FaultBench,
};
use pagewise_model::capability::{CHECK_VERSION, Check};
use pagewise_model::document::Kind;
use pagewise_model::fault_diff::FaultDiff;
use pagewise_model::gate::Gate;
use pagewise_model::huge_simulation::HugeSimulation;
use pagewise_model::huge_undo::{HUGE_UNDO_VERSION, HugeUndo};
use pagewise_model::mined::{MINED_VERSION, Mined};
use pagewise_model::paged_run::{PAGED_RUN_VERSION, PagedRun};
use pagewise_model::paging::{PAGING_TIMELINE_VERSION, PagingTimeline};
use pagewise_model::paging_simulation::{PAGING_SIMULATION_VERSION, PagingSimulation};
use pagewise_model::probe::{PROBE_VERSION, Probe};
use pagewise_model::profile_diff::ProfileDiff;
use pagewise_model::profile_findings::ProfileFindings;
use pagewise_model::run_diff::RunDiff;
use pagewise_model::tuning::{TUNING_VERSION, Tuning};
use pagewise_model::{fault_diff, gate, huge_simulation, profile_diff, profile_findings, run_diff};
use pagewise_report::text::{self, Style};
use pagewise_report::{html, json};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::Write;

/// Makes a page of a document and its text.
type Page<D> = fn(&D, &str) -> Result<String, html::Error>;

/// Makes the text about a document.
type Text<D> = fn(&D, usize, Style) -> String;

/// A document as it was found, and what is asked of it.
struct Opened<'a> {
    bytes: &'a [u8],
    version: Option<u32>,
    args: &'a Args,
}

impl Opened<'_> {
    fn show<D: DeserializeOwned + Serialize>(
        &self,
        version: u32,
        text: Text<D>,
        page: Option<Page<D>>,
    ) -> Result<()> {
        same_version(self.version, version, "make it anew")?;
        let document: D = serde_json::from_slice(self.bytes).context("it is not whole")?;
        let page = match (&self.args.output, page) {
            (None, _) => None,
            (Some(path), Some(page)) => {
                let plain = Style {
                    color: false,
                    unicode: true,
                };
                Some((path, page(&document, &text(&document, 100, plain))?))
            }
            (Some(_), None) => bail!("there is no page about it: leave out -o"),
        };
        let text = match self.args.json {
            true => json::to_string(&document)?,
            false => text(&document, terminal::width(), terminal::style()),
        };
        let mut out = terminal::output(self.args.json);
        out.write_all(text.as_bytes())?;
        out.flush()?;
        page.map_or(Ok(()), |(path, page)| page::write(path, &page))
    }
}

/// Reports on the document in `bytes`. Whether it is of a kind that is shown here.
///
/// # Errors
/// When it is not whole, of another version, or asked for what it does not hold.
pub fn report(kind: Kind, version: Option<u32>, bytes: &[u8], args: &Args) -> Result<bool> {
    let steps = !args.descent.steps().map_err(anyhow::Error::msg)?.is_empty();
    let of_recordings = args.export.is_some() || args.calibrate.is_some() || args.sums;
    let is_shown_here = match kind {
        Kind::Run | Kind::FaultPaths => return Ok(false),
        _ => !steps && !of_recordings && args.cgroup.is_none(),
    };
    if !is_shown_here {
        bail!(
            "--export, --sums, --cgroup, --calibrate and parts go with recordings, which it is not"
        );
    }
    let opened = Opened {
        bytes,
        version,
        args,
    };
    match kind {
        Kind::Tuning => opened.show::<Tuning>(TUNING_VERSION, text::tune::render, None),
        Kind::HugeBalance => opened.show::<Balance>(
            BALANCE_VERSION,
            text::huge_balance::render,
            Some(html::render_huge_balance),
        ),
        Kind::HugeProbe => opened.show::<Probe>(PROBE_VERSION, text::huge_probe::render, None),
        Kind::HugeSimulation => opened.show::<HugeSimulation>(
            huge_simulation::SCHEMA_VERSION,
            text::huge_simulation::render,
            Some(html::render_huge_simulation),
        ),
        Kind::Profile => opened.show::<ProfileFindings>(
            profile_findings::PROFILE_VERSION,
            text::profile::render,
            None,
        ),
        Kind::FaultDiff => opened.show::<FaultDiff>(
            fault_diff::SCHEMA_VERSION,
            pagewise_report::fault_diff::render,
            Some(html::render_fault_diff),
        ),
        Kind::ProfileDiff => opened.show::<ProfileDiff>(
            profile_diff::PROFILE_DIFF_VERSION,
            text::profile_diff::render,
            None,
        ),
        Kind::RunDiff => opened.show::<RunDiff>(
            run_diff::RUN_DIFF_VERSION,
            text::run_diff::render,
            Some(html::render_run_diff),
        ),
        Kind::Gate => opened.show::<Gate>(gate::GATE_VERSION, text::gate::render, None),
        Kind::PagedRun => opened.show::<PagedRun>(PAGED_RUN_VERSION, text::paged_run::render, None),
        Kind::PagingTimeline => opened.show::<PagingTimeline>(
            PAGING_TIMELINE_VERSION,
            text::paging_timeline::render,
            Some(|document, _| html::render_paging(document)),
        ),
        Kind::PagingSimulation => opened.show::<PagingSimulation>(
            PAGING_SIMULATION_VERSION,
            text::paging_simulation::render,
            None,
        ),
        Kind::Check => opened.show::<Check>(CHECK_VERSION, text::check::render, None),
        Kind::AllocatorBench => {
            opened.show::<AllocatorBench>(ALLOCATOR_BENCH_VERSION, text::bench_alloc::render, None)
        }
        Kind::FaultBench => {
            opened.show::<FaultBench>(FAULT_BENCH_VERSION, text::bench_faults::render, None)
        }
        Kind::Mined => opened.show::<Mined>(MINED_VERSION, text::mined::render, None),
        Kind::HugeUndo => opened.show::<HugeUndo>(HUGE_UNDO_VERSION, text::huge_undo::render, None),
        Kind::GateBaseline => {
            bail!("it is what later runs are judged by: pagewise gate --baseline")
        }
        Kind::Watch => bail!("it is one reading of pagewise watch, which shows itself"),
        Kind::Run | Kind::FaultPaths => unreachable!("shown elsewhere"),
    }?;
    Ok(true)
}
