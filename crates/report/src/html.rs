//! Findings as one HTML file that opens offline.
//!
//! The page is a committed bundle (`assets/report.html`, built from `web/`); only data are put
//! in. They travel as JSON in a script element of a type that browsers do not run, with `<`
//! written as `\u003c`, so that no name in them can end the element. Above [`PLAIN_LIMIT`] they
//! travel deflated in base64; and should even that be too large, the smallest frames of the
//! flame graph are left out, counted.

use crate::text::{Style, render as render_text};
use crate::visible::command_line;
use pagewise_model::advice::Settings;
use pagewise_model::findings::{Cause, Findings, FlameNode, RegionKind};
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::Write;

/// The front end. `web/check-fresh` holds it equal to a fresh build.
const SHELL: &str = include_str!("../assets/report.html");
const DATA_MARK: &str = r#"type="application/json">PAGEWISE-DATA<"#;
const TEXT_MARK: &str = "PAGEWISE-TEXT";

/// Bytes of JSON that go in as they are: readable by eye and by other tools.
const PLAIN_LIMIT: usize = 256 << 10;
/// Bytes that the data may take in the file; with the shell the file stays below 5 MB.
const DATA_LIMIT: usize = 4_500_000;
/// Shares of the flame graph below which frames are dropped, tried in turn.
const PRUNING: [f64; 5] = [0.0, 1e-6, 1e-5, 1e-4, 1e-3];

/// What goes wrong when a page is made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A figure could not be written as JSON.
    #[error("the findings could not be written as JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// Compression failed.
    #[error("the findings could not be compressed: {0}")]
    Deflate(#[from] std::io::Error),
}

/// The data as the page expects them (`web/src/data/types.ts`).
#[derive(Serialize)]
struct Report<'a> {
    kind: &'static str,
    generator: String,
    command_line: String,
    findings: &'a Findings,
    exports: Vec<Vec<(&'static str, String)>>,
    labels: Labels,
    churn_causes: Vec<Cause>,
    losses: Vec<Loss>,
    frames_left_out: usize,
}

/// Names for people, worded once, in the model.
#[derive(Serialize)]
struct Labels {
    causes: BTreeMap<Cause, &'static str>,
    regions: BTreeMap<RegionKind, &'static str>,
}

#[derive(Serialize)]
struct Loss {
    text: &'static str,
    count: u64,
}

/// The page.
///
/// # Errors
/// Only if the findings could not be encoded, which the model's types rule out.
pub fn render(findings: &Findings) -> Result<String, Error> {
    let (encoding, data) = fitting_data(findings)?;
    let element = format!(r#"type="application/json" data-encoding="{encoding}">{data}<"#);
    let style = Style {
        color: false,
        unicode: true,
    };
    let text = escaped(&render_text(findings, 100, style));
    Ok(SHELL
        .replacen(TEXT_MARK, &text, 1)
        .replacen(DATA_MARK, &element, 1))
}

fn fitting_data(findings: &Findings) -> Result<(&'static str, String), Error> {
    let mut pruned;
    let mut encoded = encode(findings, 0)?;
    for share in PRUNING.into_iter().skip(1) {
        if encoded.1.len() <= DATA_LIMIT {
            break;
        }
        pruned = findings.clone();
        let left_out = prune(&mut pruned.flame, findings.flame.total * share);
        encoded = encode(&pruned, left_out)?;
    }
    Ok(encoded)
}

/// Removes frames lighter than `least`; returns how many.
fn prune(node: &mut FlameNode, least: f64) -> usize {
    let mut removed = 0;
    node.children.retain(|child| {
        let keeps = child.total >= least;
        removed += if keeps { 0 } else { frames(child) };
        keeps
    });
    let deeper = node.children.iter_mut().map(|child| prune(child, least));
    removed + deeper.sum::<usize>()
}

fn frames(node: &FlameNode) -> usize {
    1 + node.children.iter().map(frames).sum::<usize>()
}

fn encode(findings: &Findings, frames_left_out: usize) -> Result<(&'static str, String), Error> {
    let json = serde_json::to_string(&report(findings, frames_left_out))?;
    if json.len() <= PLAIN_LIMIT {
        return Ok(("plain", json.replace('<', "\\u003c")));
    }
    let level = flate2::Compression::new(6);
    let mut deflate = flate2::write::ZlibEncoder::new(Vec::new(), level);
    deflate.write_all(json.as_bytes())?;
    Ok(("deflate", base64(&deflate.finish()?)))
}

fn report(findings: &Findings, frames_left_out: usize) -> Report<'_> {
    let losses = findings.losses.iter().map(|(kind, count)| Loss {
        text: kind.describe(),
        count,
    });
    let labels = labels(findings);
    Report {
        kind: "findings",
        generator: format!("pagewise {}", env!("CARGO_PKG_VERSION")),
        command_line: command_line(&findings.command),
        findings,
        exports: findings
            .advice
            .iter()
            .map(|advice| labelled_exports(&advice.settings))
            .collect(),
        churn_causes: labels
            .causes
            .keys()
            .copied()
            .filter(|cause| cause.is_churn())
            .collect(),
        labels,
        losses: losses.collect(),
        frames_left_out,
    }
}

/// Each export as a pair for the page.
fn labelled_exports(settings: &Settings) -> Vec<(&'static str, String)> {
    let exports = crate::settings_export::exports(settings);
    exports
        .into_iter()
        .map(|export| (export.label, export.text))
        .collect()
}

/// Names of everything that occurs.
fn labels(findings: &Findings) -> Labels {
    let shares = findings.by_cause.iter().map(|share| share.key);
    let timed = findings.time.by_cause.iter().map(|(cause, _)| *cause);
    let churn = &findings.churn;
    let sites = [
        &findings.sites,
        &churn.release_sites,
        &churn.regrow_sites,
        &churn.refault_sites,
    ];
    let sited = sites.into_iter().flatten().map(|site| site.main_cause);
    let routes = || churn.routes.iter();
    let routed = routes().map(|route| route.cause);
    let causes = shares.chain(timed).chain(sited).chain(routed);
    let rows = findings.fault_map.rows.iter().map(|row| row.region);
    let regions = findings.by_region.iter().map(|share| share.key);
    let regions = regions
        .chain(rows)
        .chain(routes().map(|route| route.region));
    Labels {
        causes: causes.map(|cause| (cause, cause.label())).collect(),
        regions: regions.map(|region| (region, region.label())).collect(),
    }
}

/// Text for the inside of an element.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

/// Base64 with padding (RFC 4648 section 4).
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let byte = |at: usize| u32::from(chunk.get(at).copied().unwrap_or(0));
        let word = byte(0) << 16 | byte(1) << 8 | byte(2);
        for digit in 0..4 {
            let index = (word >> (18 - 6 * digit)) & 63;
            let is_filled = digit <= chunk.len();
            text.push(if is_filled {
                char::from(DIGITS[index as usize])
            } else {
                '='
            });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shell_has_each_mark_once_and_is_small() {
        assert_eq!(SHELL.matches(DATA_MARK).count(), 1);
        assert_eq!(SHELL.matches(TEXT_MARK).count(), 1);
        assert!(SHELL.len() <= 250_000, "{} bytes", SHELL.len());
    }

    #[test]
    fn base64_matches_the_rfcs_vectors() {
        let vectors = [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foobar", "Zm9vYmFy"),
        ];
        for (plain, coded) in vectors {
            assert_eq!(base64(plain.as_bytes()), coded);
        }
    }

    #[test]
    fn pruning_counts_what_it_removes() {
        let node = |total, children| FlameNode {
            total,
            children,
            ..FlameNode::default()
        };
        let light = node(1.0, vec![node(1.0, vec![])]);
        let mut root = node(10.0, vec![node(9.0, vec![]), light]);
        assert_eq!(prune(&mut root, 2.0), 2);
        assert_eq!(root.children.len(), 1);
    }
}
