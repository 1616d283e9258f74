//! The part of a page about the faults of a recording.

use crate::visible::command_line;
use pagewise_model::advice::Settings;
use pagewise_model::findings::{Cause, Findings, FlameNode, RegionKind, Run};
use serde::Serialize;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Thresholds below which frames of the flame graph are dropped, tried in turn.
const PRUNING: [f64; 4] = [1e-6, 1e-5, 1e-4, 1e-3];

/// The findings, with texts that are produced only here (`web/src/data/types.ts`).
#[derive(Serialize)]
pub(super) struct Faults<'a> {
    command_line: String,
    findings: Cow<'a, Run>,
    exports: Vec<Vec<(&'static str, String)>>,
    labels: Labels,
    churn_causes: Vec<Cause>,
    frames_left_out: usize,
    /// How often frames were dropped.
    #[serde(skip)]
    pruned: usize,
}

/// Human-readable names, defined once, in the model.
#[derive(Serialize)]
struct Labels {
    causes: BTreeMap<Cause, &'static str>,
    regions: BTreeMap<RegionKind, &'static str>,
}

impl<'a> Faults<'a> {
    pub(super) fn new(findings: &'a Findings) -> Self {
        let labels = labels(findings);
        let exports = findings.advice.iter();
        let churn = labels
            .causes
            .keys()
            .copied()
            .filter(|cause| cause.is_churn());
        // Its samples are a separate part of the page.
        let run = match &findings.profile {
            None => Cow::Borrowed(&findings.evidence),
            Some(_) => Cow::Owned(Run {
                profile: None,
                ..findings.evidence.clone()
            }),
        };
        Self {
            command_line: command_line(&findings.subject.command),
            exports: exports
                .map(|advice| labelled_exports(&findings.exported(&advice.settings)))
                .collect(),
            churn_causes: churn.collect(),
            frames_left_out: 0,
            pruned: 0,
            findings: run,
            labels,
        }
    }

    /// Drops the smallest frames; returns whether there were any left to drop.
    pub(super) fn shrink(&mut self) -> bool {
        let Some(share) = PRUNING.get(self.pruned) else {
            return false;
        };
        let flame = &mut self.findings.to_mut().flame;
        let least = flame.total * share;
        self.frames_left_out += prune(flame, least);
        self.pruned += 1;
        true
    }
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

/// The label and text of each export, for the page.
pub(super) fn labelled_exports(settings: &Settings) -> Vec<(&'static str, String)> {
    let exports = crate::settings_export::exports(settings);
    exports
        .into_iter()
        .map(|export| (export.label, export.text))
        .collect()
}

/// Names of everything that occurs.
fn labels(findings: &Run) -> Labels {
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
