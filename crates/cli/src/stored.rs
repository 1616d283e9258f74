//! What `pagewise doctor --json` and `pagewise report --json` wrote of a run, opened again.

use anyhow::{Context, Result, bail};
use pagewise_model::answer::{Head, Kind};
use pagewise_model::findings::Findings;
use serde::Deserialize;
use serde::de::IgnoredAny;

/// Enough to tell what a document is that an earlier pagewise wrote: it has no `kind`.
#[derive(Deserialize)]
struct Fields {
    verdict: Option<IgnoredAny>,
    by_cause: Option<IgnoredAny>,
    /// Earlier timelines of paging said so what they are.
    pagewise: Option<IgnoredAny>,
}

/// What a document is, and its first fields.
///
/// # Errors
/// When it is no JSON, or nothing that Pagewise writes.
pub fn kind(text: &[u8]) -> Result<(Kind, Head)> {
    let head = head(text)?;
    match (known(&head, text)?, &head.kind) {
        (Some(kind), _) => Ok((kind, head)),
        (None, Some(kind)) => bail!("its kind is \"{kind}\", which this pagewise does not know"),
        (None, None) => bail!("it is JSON, but not written by pagewise"),
    }
}

fn head(text: &[u8]) -> Result<Head> {
    // Readings of pagewise watch are lines of JSON, each a document.
    let line = text.split(|byte| *byte == b'\n').next().unwrap_or_default();
    match Head::of(line) {
        Ok(head) if head.known() == Some(Kind::Watch) => Ok(head),
        _ => Head::of(text).context("it is not JSON"),
    }
}

fn known(head: &Head, text: &[u8]) -> Result<Option<Kind>> {
    if head.kind.is_some() {
        return Ok(head.known());
    }
    let fields: Fields = serde_json::from_slice(text).context("it is not JSON")?;
    if fields.pagewise.is_some() {
        bail!(
            "an earlier pagewise wrote it, in a form that this one does not read: create it again"
        );
    }
    let is_run = fields.verdict.is_some() && fields.by_cause.is_some();
    Ok(is_run.then_some(Kind::Run))
}

/// The findings that a document holds; `None` where it is something else.
///
/// # Errors
/// When it is no JSON, cut off, or written by another version.
pub fn findings(text: &[u8]) -> Result<Option<Findings>> {
    let head = head(text)?;
    if known(&head, text)? != Some(Kind::Run) {
        return Ok(None);
    }
    this_version(&head, "observe the program again")?;
    let findings =
        serde_json::from_slice(text).context("not a complete result of pagewise doctor")?;
    Ok(Some(findings))
}

/// Whether a document is of this program's version.
///
/// # Errors
/// When it is not; `otherwise` says what to do then.
pub fn this_version(head: &Head, otherwise: &str) -> Result<()> {
    match head.other_version() {
        Some(why) => bail!("{why}: {otherwise}"),
        None => Ok(()),
    }
}
