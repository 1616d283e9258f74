//! Documents written by other commands with `--json`, shown as the command itself showed them.

use super::request::{Action, Request, Show};
use super::tables;
use crate::stored::this_version;
use crate::{page, terminal};
use anyhow::{Context, Result, bail};
use pagewise_model::answer::{Document, Evidence, Head, Kind};
use pagewise_model::balance::Balance;
use pagewise_model::bench::{AllocatorBench, FaultBench};
use pagewise_model::capability::Check;
use pagewise_model::fault_diff::FaultDiff;
use pagewise_model::gate::Gate;
use pagewise_model::huge_simulation::HugeSimulation;
use pagewise_model::huge_undo::HugeUndo;
use pagewise_model::memory::Memory;
use pagewise_model::memory_limit::MemoryLimit;
use pagewise_model::mined::Mined;
use pagewise_model::paged_run::PagedRun;
use pagewise_model::paging::PagingTimeline;
use pagewise_model::paging_simulation::PagingSimulation;
use pagewise_model::probe::Probe;
use pagewise_model::profile_diff::ProfileDiff;
use pagewise_model::profile_findings::ProfileSummary;
use pagewise_model::run_diff::RunDiff;
use pagewise_model::tuning::Tuning;
use pagewise_report::exports::tables::privacy::redacted;
use pagewise_report::html;
use pagewise_report::text::{self, Style};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Makes a page from a document and its text.
type Page<D> = fn(&D, &str) -> Result<String, html::Error>;

/// Makes the text of a document.
type Text<D> = fn(&D, usize, Style) -> String;

/// An opened document, and the options for it.
struct Opened<'a> {
    bytes: &'a [u8],
    head: &'a Head,
    show: Show<'a>,
}

impl Opened<'_> {
    fn show<E: Evidence + Serialize + DeserializeOwned>(
        &self,
        text: Text<Document<E>>,
        page: Option<Page<Document<E>>>,
    ) -> Result<()> {
        this_version(self.head, "make it anew")?;
        let document: Document<E> =
            serde_json::from_slice(self.bytes).context("it is incomplete")?;
        let document = document.with_own_verdict();
        let document = match self.show.redact {
            true => redacted(&document)?,
            false => document,
        };
        let page = match (self.show.page, page) {
            (None, _) => None,
            (Some(path), Some(page)) => {
                let plain = text(&document, 100, Style::PLAIN);
                Some((path, page(&document, &plain)?))
            }
            (Some(_), None) => bail!("it has no page: leave out -o"),
        };
        terminal::present(&document, self.show.json, text)?;
        page.map_or(Ok(()), |(path, page)| page::write(path, &page))
    }
}

/// Reports on the document in `bytes`.
///
/// # Errors
/// If it is truncated, of another version, or lacks what is requested.
pub fn report(kind: Kind, head: &Head, bytes: &[u8], request: &Request<'_>) -> Result<()> {
    let show = match &request.action {
        Action::Tables(wanted) => {
            this_version(head, "make it anew")?;
            return wanted.write(tables::tables(kind, bytes, wanted.include)?);
        }
        Action::Show(show) => *show,
        Action::Export(_) | Action::Push(_) => bail!("a stored result has no samples"),
    };
    let opened = Opened { bytes, head, show };
    match kind {
        Kind::Tuning => opened.show::<Tuning>(text::tune::render, Some(html::render_tuning)),
        Kind::HugeBalance => {
            opened.show::<Balance>(text::huge_balance::render, Some(html::render_huge_balance))
        }
        Kind::HugeProbe => opened.show::<Probe>(text::huge_probe::render, None),
        Kind::HugeSimulation => opened.show::<HugeSimulation>(
            text::huge_simulation::render,
            Some(html::render_huge_simulation),
        ),
        Kind::Profile => opened.show::<ProfileSummary>(text::profile::render, None),
        Kind::FaultDiff => opened.show::<FaultDiff>(
            pagewise_report::fault_diff::render,
            Some(html::render_fault_diff),
        ),
        Kind::ProfileDiff => opened.show::<ProfileDiff>(text::profile_diff::render, None),
        Kind::RunDiff => {
            opened.show::<RunDiff>(text::run_diff::render, Some(html::render_run_diff))
        }
        Kind::Gate => opened.show::<Gate>(text::gate::render, Some(html::render_gate)),
        Kind::PagedRun => opened.show::<PagedRun>(text::paged_run::render, None),
        Kind::PagingTimeline => opened.show::<PagingTimeline>(
            text::paging_timeline::render,
            Some(|document, _| html::render_paging(document)),
        ),
        Kind::PagingSimulation => {
            opened.show::<PagingSimulation>(text::paging_simulation::render, None)
        }
        Kind::Check => opened.show::<Check>(text::check::render, Some(html::render_check)),
        Kind::AllocatorBench => {
            opened.show::<AllocatorBench>(text::bench_alloc::render, Some(html::render_allocators))
        }
        Kind::FaultBench => {
            opened.show::<FaultBench>(text::bench_faults::render, Some(html::render_faults))
        }
        Kind::Mined => opened.show::<Mined>(text::mined::render, Some(html::render_mined)),
        Kind::Memory => opened.show::<Memory>(text::memory::render, Some(html::render_memory)),
        Kind::MemoryLimit => opened.show::<MemoryLimit>(text::memory_limit::render, None),
        Kind::HugeUndo => opened.show::<HugeUndo>(text::huge_undo::render, None),
        Kind::GateBaseline => {
            bail!("it is a baseline for later runs: use pagewise gate --baseline")
        }
        Kind::Watch => bail!(
            "it holds readings of pagewise watch, which have no report: observe the program with pagewise doctor, or read them with jq"
        ),
        Kind::Run | Kind::FaultPaths => bail!("it is shown as a run or as a trace"),
    }
}
