//! The page about the findings of a recording.

use super::bytes::Columns;
use super::profile::ProfileData;
use super::{DATA_LIMIT, Encoded, Error, TEXT_STYLE, TEXT_WIDTH, encode, generator, page_with};
use crate::text::{self, render as render_text};
use crate::visible::command_line;
use pagewise_model::advice::Settings;
use pagewise_model::findings::{Cause, Findings, FlameNode, RegionKind};
use pagewise_model::profile::Profile;
use pagewise_model::profile_findings::ProfileFindings;
use serde::Serialize;
use std::collections::BTreeMap;

/// Shares of the flame graph below which frames are dropped, tried in turn.
const PRUNING: [f64; 5] = [0.0, 1e-6, 1e-5, 1e-4, 1e-3];

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
    /// CPU samples and other events of the same recording.
    profile: Option<&'a ProfileData<'a>>,
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

/// The page about a recording's findings. Should its data be too large, the smallest frames of
/// the flame graph are left out, counted.
///
/// # Errors
/// Only if the findings could not be encoded, which the model's types rule out.
pub fn render(findings: &Findings) -> Result<String, Error> {
    let data = fitting_data(findings, None)?;
    let text = render_text(findings, TEXT_WIDTH, TEXT_STYLE);
    Ok(page_with(&data, &Columns::default(), &text))
}

/// The same with what the recording's CPU samples and other events show, and those samples.
///
/// # Errors
/// As [`render`].
pub fn render_with_profile(
    findings: &Findings,
    profile: &Profile,
    profile_findings: &ProfileFindings,
    name: &str,
) -> Result<String, Error> {
    let mut columns = Columns::default();
    let part = ProfileData::of(profile, profile_findings, name, &mut columns)?;
    let data = fitting_data(findings, Some(&part))?;
    let text = text::render_with_profile(findings, profile_findings, TEXT_WIDTH, TEXT_STYLE);
    Ok(page_with(&data, &columns, &text))
}

fn fitting_data(findings: &Findings, profile: Option<&ProfileData<'_>>) -> Result<Encoded, Error> {
    let mut pruned;
    let mut encoded = encode(&report(findings, profile, 0))?;
    for share in PRUNING.into_iter().skip(1) {
        if encoded.text.len() <= DATA_LIMIT {
            break;
        }
        pruned = findings.clone();
        let left_out = prune(&mut pruned.flame, findings.flame.total * share);
        encoded = encode(&report(&pruned, profile, left_out))?;
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

fn report<'a>(
    findings: &'a Findings,
    profile: Option<&'a ProfileData<'a>>,
    frames_left_out: usize,
) -> Report<'a> {
    let losses = findings.losses.iter().map(|(kind, count)| Loss {
        text: kind.counted(count),
        count,
    });
    let labels = labels(findings);
    Report {
        kind: "findings",
        generator: generator(),
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
        profile,
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

#[cfg(test)]
mod tests {
    use super::*;

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
