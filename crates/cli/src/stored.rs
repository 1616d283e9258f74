//! Findings of a run written by `pagewise doctor --json` and `pagewise report --json`, opened
//! again.

use anyhow::{Context, Result, bail};
use pagewise_formats::sniff::HEAD;
use pagewise_model::answer::{Head, Kind};
use pagewise_model::findings::Findings;
use serde::Deserialize;
use serde::de::IgnoredAny;

/// Enough to identify a document from an earlier pagewise, which has no `kind`.
#[derive(Deserialize)]
struct Fields {
    verdict: Option<IgnoredAny>,
    by_cause: Option<IgnoredAny>,
    /// Earlier paging timelines were identified by this.
    pagewise: Option<IgnoredAny>,
}

/// The kind of a document, and its first fields.
///
/// # Errors
/// If it is not JSON, or not a document of Pagewise.
pub fn kind(text: &[u8]) -> Result<(Kind, Head)> {
    let head = head(text)?;
    match (known(&head, text)?, &head.kind) {
        (Some(kind), _) => Ok((kind, head)),
        (None, Some(kind)) => bail!("its kind is \"{kind}\", which this pagewise does not know"),
        (None, None) => match crate::foreign::describe(&text[..text.len().min(HEAD)]) {
            Some(what) => bail!("{what}"),
            None => bail!("it is JSON, but not written by pagewise"),
        },
    }
}

fn head(text: &[u8]) -> Result<Head> {
    Head::parse(text).or_else(|error| {
        // Readings of pagewise watch are lines of JSON, each a document.
        let line = text.split(|byte| *byte == b'\n').next().unwrap_or_default();
        match Head::parse(line) {
            Ok(head) if head.known() == Some(Kind::Watch) => Ok(head),
            _ => Err(error).context("it is not JSON"),
        }
    })
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

/// The findings in a document; `None` if it is something else.
///
/// # Errors
/// If it is not JSON, truncated, or written by another version.
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

/// Checks that a document is of this program's version.
///
/// # Errors
/// If it is not; `otherwise` is the remedy.
pub fn this_version(head: &Head, otherwise: &str) -> Result<()> {
    match head.other_version() {
        Some(why) => bail!("{why}: {otherwise}"),
        None => Ok(()),
    }
}
