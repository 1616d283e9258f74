//! Tables of documents that other commands wrote with `--json`.

use crate::export::tables;
use anyhow::{Context, Result, bail};
use pagewise_model::answer::{Document, Evidence, Kind};
use pagewise_model::balance::Balance;
use pagewise_model::paged_run::PagedRun;
use pagewise_model::paging::PagingTimeline;
use pagewise_model::profile_findings::ProfileSummary;
use pagewise_model::tuning::Tuning;
use pagewise_model::units::Nanos;
use pagewise_report::exports::tables::privacy::Include;
use pagewise_report::exports::tables::{Figures, Tables};
use serde::de::DeserializeOwned;

/// The tables of the document in `bytes`.
///
/// # Errors
/// If it is truncated, or has nothing that tables hold.
pub fn tables(kind: Kind, bytes: &[u8], include: Include) -> Result<Tables> {
    match kind {
        Kind::PagedRun => tables::of_paged_run(&read::<PagedRun>(bytes)?, include),
        Kind::PagingTimeline => {
            let course = read::<PagingTimeline>(bytes)?;
            let figures = Figures {
                scope: "run",
                elapsed: course.points.last().map(|point| point.time),
                ..Figures::default()
            };
            let mut tables = Tables::from_document(&course, &figures, include)?;
            tables.add_paging_timeline(&course)?;
            Ok(tables)
        }
        Kind::HugeBalance => {
            let balance = read::<Balance>(bytes)?;
            let figures = observed("processes", balance.elapsed);
            let mut tables = Tables::from_document(&balance, &figures, include)?;
            tables.add_balance(&balance)?;
            Ok(tables)
        }
        Kind::Profile => {
            let profile = read::<ProfileSummary>(bytes)?;
            Tables::from_document(&profile, &observed("", profile.span), include)
                .map_err(Into::into)
        }
        Kind::Tuning => {
            Tables::from_document(&read::<Tuning>(bytes)?, &Figures::default(), include)
                .map_err(Into::into)
        }
        _ => bail!("it holds no run, so it has no tables: leave out --export"),
    }
}

fn read<E: Evidence + DeserializeOwned>(bytes: &[u8]) -> Result<Document<E>> {
    serde_json::from_slice(bytes).context("it is incomplete")
}

fn observed(scope: &'static str, elapsed: Nanos) -> Figures {
    Figures {
        scope,
        elapsed: Some(elapsed),
        ..Figures::default()
    }
}
