//! Page sizes of a run's memory.

use super::document::name_of;
use super::{Tables, schema};
use crate::exports::parquet::Value;
use pagewise_model::balance::{Balance, PageState};
use pagewise_model::findings::Run;
use pagewise_model::units::Estimate;
use std::io;

/// The most memory in huge pages that was seen.
pub(super) fn write_held(run: &Run, tables: &mut Tables) -> io::Result<()> {
    let Some(huge) = run.huge_pages else {
        return Ok(());
    };
    tables.table("page_sizes", schema::PAGE_SIZES, |rows| {
        rows.of_run(&[
            Value::Text("peak"),
            Value::Optional(Some(huge.held.0)),
            Value::Optional(None),
            Value::Optional(None),
            Value::Optional(Some(run.cost.max_rss.0).filter(|&bytes| bytes > 0)),
            Value::Optional(None),
            Value::OptionalText(None),
            Value::OptionalReal(None),
            Value::OptionalReal(None),
            Value::OptionalReal(None),
        ])
    })
}

/// Before and after balancing, the latter with its effect.
pub(super) fn write_balance(balance: &Balance, tables: &mut Tables) -> io::Result<()> {
    let slot = balance.huge_page.0;
    let effect = name_of(&balance.verdict.effect);
    let change = balance.verdict.cpu_change;
    tables.table("page_sizes", schema::PAGE_SIZES, |rows| {
        let mut moment = |name, state: &PageState, effect, change: Option<Estimate>| {
            rows.of_run(&[
                Value::Text(name),
                Value::Optional(Some(state.huge * slot)),
                Value::Optional(Some(state.small * slot)),
                Value::Optional(Some(state.blocked * slot)),
                Value::Optional(Some(state.rss.0)),
                Value::Optional(Some(state.growth.0)),
                Value::OptionalText(effect),
                Value::OptionalReal(change.map(|change| change.value)),
                Value::OptionalReal(change.map(|change| change.low)),
                Value::OptionalReal(change.map(|change| change.high)),
            ])
        };
        moment("before", &balance.before, None, None)?;
        moment("after", &balance.after, Some(&effect), change)
    })
}
