//! What `pagewise doctor --json` and `pagewise report --json` wrote of a run, opened again.

use anyhow::{Context, Result, bail};
use pagewise_model::findings::{FINDINGS_VERSION, Findings};
use pagewise_model::profile_findings::ProfileFindings;
use serde::Deserialize;

/// A run's findings, with those of its samples where they were stored with it.
pub struct Stored {
    /// The run.
    pub findings: Findings,
    /// Where its time went.
    pub profile: Option<ProfileFindings>,
}

/// Enough to tell what a document is. Findings have no `kind`.
#[derive(Deserialize)]
struct Head {
    schema_version: Option<u32>,
    kind: Option<String>,
    verdict: Option<String>,
    by_cause: Option<serde::de::IgnoredAny>,
}

/// The findings that a document holds; `None` where it is something else.
///
/// # Errors
/// When it is no JSON, cut off, or written by another version.
pub fn findings(text: &[u8]) -> Result<Option<Stored>> {
    let head: Head = serde_json::from_slice(text).context("it is not JSON")?;
    if head.kind.is_some() || head.verdict.is_none() || head.by_cause.is_none() {
        return Ok(None);
    }
    if head.schema_version != Some(FINDINGS_VERSION) {
        bail!(
            "its schema_version is {}, this pagewise reads {FINDINGS_VERSION}: observe the program \
             again",
            head.schema_version
                .map_or("missing".to_owned(), |version| version.to_string()),
        );
    }
    // Not one structure with `flatten`: that has serde read numbers that are keys as text.
    #[derive(Deserialize)]
    struct Profile {
        profile: Option<ProfileFindings>,
    }
    let findings = serde_json::from_slice(text).context("not a whole result of pagewise doctor")?;
    let profile: Profile = serde_json::from_slice(text).context("its profile is not whole")?;
    Ok(Some(Stored {
        findings,
        profile: profile.profile,
    }))
}
