//! The page about two profiles: how they differ, and the samples of both over one tree of stacks.

use super::bytes::Columns;
use super::pack::{Pack, pack};
use super::{Error, TEXT_STYLE, TEXT_WIDTH, encode, generator, page_with};
use pagewise_model::profile::Profile;
use pagewise_model::profile_diff::{DiffNode, ProfileDiff};
use serde::Serialize;

/// The data as the page expects them (`web/src/data/profileDiff.ts`).
#[derive(Serialize)]
struct ProfileDiffPage<'a> {
    kind: &'static str,
    generator: String,
    diff: &'a ProfileDiff,
    pack: Pack<'a>,
}

/// The page about the comparison of two profiles.
///
/// # Errors
/// Only if the comparison could not be encoded, which the model's types rule out.
pub fn render_profile_diff(diff: &ProfileDiff, a: &Profile, b: &Profile) -> Result<String, Error> {
    let mut columns = Columns::default();
    let text = crate::text::profile_diff::render(diff, TEXT_WIDTH, TEXT_STYLE);
    // The page lays both trees over each other itself, for any range.
    let diff = ProfileDiff {
        tree: Vec::<DiffNode>::new(),
        ..diff.clone()
    };
    let sides = [(a, diff.a.name.as_str()), (b, diff.b.name.as_str())];
    let data = ProfileDiffPage {
        kind: "profile_diff",
        generator: generator(),
        pack: pack(&sides, &mut columns)?,
        diff: &diff,
    };
    Ok(page_with(&encode(&data)?, &columns, &text))
}
