//! What other commands wrote by `--json`, opened again: shown as the command itself showed it.

use super::stored::same_version;
use super::{Args, write_page};
use crate::terminal;
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

/// How a document is shown.
struct View<D> {
    version: u32,
    text: fn(&D, usize, Style) -> String,
    page: Option<Page<D>>,
}

impl<D: DeserializeOwned + Serialize> View<D> {
    fn show(&self, bytes: &[u8], found: Option<u32>, args: &Args) -> Result<()> {
        same_version(found, self.version, "make it anew")?;
        let document: D = serde_json::from_slice(bytes).context("it is not whole")?;
        let page = match (&args.output, self.page) {
            (None, _) => None,
            (Some(path), Some(page)) => {
                let plain = Style {
                    color: false,
                    unicode: true,
                };
                Some((path, page(&document, &(self.text)(&document, 100, plain))?))
            }
            (Some(_), None) => bail!("there is no page about it: leave out -o"),
        };
        let text = match args.json {
            true => json::to_string(&document)?,
            false => (self.text)(&document, terminal::width(), terminal::style()),
        };
        let mut out = terminal::output(args.json);
        out.write_all(text.as_bytes())?;
        out.flush()?;
        page.map_or(Ok(()), |(path, page)| write_page(path, &page))
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
        Kind::Run | Kind::FaultPaths | Kind::PagingTimeline => return Ok(false),
        _ => !steps && !of_recordings && args.cgroup.is_none(),
    };
    if !is_shown_here {
        bail!(
            "--export, --sums, --cgroup, --calibrate and parts go with recordings, which it is not"
        );
    }
    match kind {
        Kind::Tuning => View::<Tuning> {
            version: TUNING_VERSION,
            text: |document, width, _| text::tune::render(document, width),
            page: None,
        }
        .show(bytes, version, args)?,
        Kind::HugeBalance => View::<Balance> {
            version: BALANCE_VERSION,
            text: text::huge_balance::render,
            page: Some(html::render_huge_balance),
        }
        .show(bytes, version, args)?,
        Kind::HugeProbe => View::<Probe> {
            version: PROBE_VERSION,
            text: text::huge_probe::render,
            page: None,
        }
        .show(bytes, version, args)?,
        Kind::HugeSimulation => View::<HugeSimulation> {
            version: huge_simulation::SCHEMA_VERSION,
            text: |document, _, _| text::huge_simulation::render(document),
            page: Some(html::render_huge_simulation),
        }
        .show(bytes, version, args)?,
        Kind::Profile => View::<ProfileFindings> {
            version: profile_findings::PROFILE_VERSION,
            text: text::profile::render,
            page: None,
        }
        .show(bytes, version, args)?,
        Kind::FaultDiff => View::<FaultDiff> {
            version: fault_diff::SCHEMA_VERSION,
            text: |document, width, _| pagewise_report::fault_diff::render(document, width),
            page: Some(html::render_fault_diff),
        }
        .show(bytes, version, args)?,
        Kind::ProfileDiff => View::<ProfileDiff> {
            version: profile_diff::PROFILE_DIFF_VERSION,
            text: text::profile_diff::render,
            page: None,
        }
        .show(bytes, version, args)?,
        Kind::RunDiff => View::<RunDiff> {
            version: run_diff::RUN_DIFF_VERSION,
            text: text::run_diff::render,
            page: None,
        }
        .show(bytes, version, args)?,
        Kind::Gate => View::<Gate> {
            version: gate::GATE_VERSION,
            text: text::gate::render,
            page: None,
        }
        .show(bytes, version, args)?,
        Kind::PagingSimulation => View::<PagingSimulation> {
            version: PAGING_SIMULATION_VERSION,
            text: |document, _, _| text::paging_simulation::render(document),
            page: None,
        }
        .show(bytes, version, args)?,
        Kind::Check => View::<Check> {
            version: CHECK_VERSION,
            text: text::check::render,
            page: None,
        }
        .show(bytes, version, args)?,
        Kind::AllocatorBench => View::<AllocatorBench> {
            version: ALLOCATOR_BENCH_VERSION,
            text: |document, width, _| text::bench_alloc::render(document, width),
            page: None,
        }
        .show(bytes, version, args)?,
        Kind::FaultBench => View::<FaultBench> {
            version: FAULT_BENCH_VERSION,
            text: |document, _, _| text::bench_faults::render(document),
            page: None,
        }
        .show(bytes, version, args)?,
        _ => bail!("report does not show this kind of result"),
    }
    Ok(true)
}
