//! Findings as JSON. The schema is `docs/schema/findings.json`; a test holds it true.

use pagewise_model::findings::Findings;
use pagewise_model::profile_diff::ProfileDiff;
use pagewise_model::profile_findings::ProfileFindings;
use serde::Serialize;

/// Findings as indented JSON with a newline at the end.
///
/// # Errors
/// Only if a figure could not be written, which the model's types rule out: its maps have string
/// keys and its numbers are finite or become `null`.
pub fn to_string(findings: &Findings) -> Result<String, serde_json::Error> {
    let mut text = serde_json::to_string_pretty(findings)?;
    text.push('\n');
    Ok(text)
}

/// Findings with those of the same recording's profile, where it has one, under `profile`.
///
/// # Errors
/// As [`to_string`].
pub fn with_profile(
    findings: &Findings,
    profile: Option<&ProfileFindings>,
) -> Result<String, serde_json::Error> {
    #[derive(Serialize)]
    struct Both<'a> {
        #[serde(flatten)]
        findings: &'a Findings,
        #[serde(skip_serializing_if = "Option::is_none")]
        profile: Option<&'a ProfileFindings>,
    }
    let mut text = serde_json::to_string_pretty(&Both { findings, profile })?;
    text.push('\n');
    Ok(text)
}

/// A profile's findings as indented JSON with a newline at the end; `docs/schema/profile.json`.
///
/// # Errors
/// As [`to_string`].
pub fn profile(findings: &ProfileFindings) -> Result<String, serde_json::Error> {
    let mut text = serde_json::to_string_pretty(findings)?;
    text.push('\n');
    Ok(text)
}

/// A comparison of profiles as indented JSON with a newline at the end;
/// `docs/schema/profile-diff.json`.
///
/// # Errors
/// As [`to_string`].
pub fn profile_diff(diff: &ProfileDiff) -> Result<String, serde_json::Error> {
    let mut text = serde_json::to_string_pretty(diff)?;
    text.push('\n');
    Ok(text)
}
