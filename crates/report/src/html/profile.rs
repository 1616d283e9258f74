//! The page about a profile: what it shows, and its samples.

use super::bytes::Columns;
use super::pack::{Pack, pack};
use super::{Error, TEXT_STYLE, TEXT_WIDTH, encode, generator, page_with};
use crate::visible::command_line;
use pagewise_model::profile::Profile;
use pagewise_model::profile_findings::ProfileFindings;
use serde::Serialize;

/// The data as the page expects them (`web/src/data/profile.ts`).
#[derive(Serialize)]
pub(super) struct ProfileData<'a> {
    name: &'a str,
    findings: &'a ProfileFindings,
    losses: Vec<(&'static str, u64)>,
    pack: Pack<'a>,
}

impl<'a> ProfileData<'a> {
    pub(super) fn of(
        profile: &'a Profile,
        findings: &'a ProfileFindings,
        name: &'a str,
        columns: &mut Columns,
    ) -> Result<Self, Error> {
        let losses = findings.losses.iter();
        Ok(Self {
            name,
            findings,
            losses: losses
                .map(|(kind, count)| (kind.counted(count), count))
                .collect(),
            pack: pack(&[(profile, name)], columns)?,
        })
    }
}

#[derive(Serialize)]
struct ProfilePage<'a> {
    kind: &'static str,
    generator: String,
    command_line: String,
    #[serde(flatten)]
    data: ProfileData<'a>,
}

/// The page about a profile called `name`.
///
/// # Errors
/// Only if the profile could not be encoded, which the model's types rule out.
pub fn render_profile(
    profile: &Profile,
    findings: &ProfileFindings,
    name: &str,
) -> Result<String, Error> {
    let mut columns = Columns::default();
    let data = ProfilePage {
        kind: "profile",
        generator: generator(),
        command_line: command_line(&profile.command),
        data: ProfileData::of(profile, findings, name, &mut columns)?,
    };
    let text = crate::text::profile::render(findings, TEXT_WIDTH, TEXT_STYLE);
    Ok(page_with(&encode(&data)?, &columns, &text))
}
