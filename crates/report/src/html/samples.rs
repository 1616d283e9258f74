//! The parts of a page about samples: one profile, or two for comparison.

use super::Error;
use super::bytes::Columns;
use super::pack::{Pack, pack};
use pagewise_model::answer::Document;
use pagewise_model::profile::Profile;
use pagewise_model::profile_diff::{DiffNode, ProfileDiff};
use pagewise_model::profile_findings::ProfileSummary;
use serde::Serialize;

/// A profile (`web/src/data/profile.ts`).
#[derive(Serialize)]
pub(super) struct ProfileData<'a> {
    name: &'a str,
    findings: &'a ProfileSummary,
    pack: Pack<'a>,
}

impl<'a> ProfileData<'a> {
    pub(super) fn new(
        profile: &'a Profile,
        findings: &'a ProfileSummary,
        name: &'a str,
        columns: &mut Columns,
    ) -> Result<Self, Error> {
        Ok(Self {
            name,
            findings,
            pack: pack(&[(profile, name)], columns)?,
        })
    }
}

/// Two profiles: their differences, and the samples of both over one tree of stacks.
#[derive(Serialize)]
pub(super) struct ProfileDiffData<'a> {
    diff: ProfileDiff,
    pack: Pack<'a>,
}

impl<'a> ProfileDiffData<'a> {
    pub(super) fn new(
        diff: &'a Document<ProfileDiff>,
        a: &'a Profile,
        b: &'a Profile,
        columns: &mut Columns,
    ) -> Result<Self, Error> {
        let sides = [(a, &*diff.a.name), (b, &*diff.b.name)];
        Ok(Self {
            pack: pack(&sides, columns)?,
            // The page overlays both trees itself, for any range; the whole runs are a separate
            // part.
            diff: ProfileDiff {
                tree: Vec::<DiffNode>::new(),
                run: None,
                ..diff.evidence.clone()
            },
        })
    }
}
