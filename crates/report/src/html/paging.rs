//! The page about a run under user-level paging.

use super::{Error, encode, generator, page};
use pagewise_model::paging::PagingTimeline;
use serde::Serialize;

/// The data as the page expects them (`web/src/data/paging.ts`).
#[derive(Serialize)]
struct PagingPage<'a> {
    kind: &'static str,
    generator: String,
    timeline: &'a PagingTimeline,
}

/// The page about a run. Its size is bounded: a timeline has some hundreds of points.
///
/// # Errors
/// Only if the timeline could not be encoded, which the model's types rule out.
pub fn render_paging(timeline: &PagingTimeline) -> Result<String, Error> {
    let data = encode(&PagingPage {
        kind: "paging",
        generator: generator(),
        timeline,
    })?;
    Ok(page(
        &data,
        &crate::text::paging_timeline::render(timeline, super::TEXT_WIDTH),
    ))
}
