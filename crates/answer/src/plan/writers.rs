//! Who writes to the pages that forked processes share with their parent.

use pagewise_families::{family, matches};
use pagewise_faults::runtimes::Runtimes;
use pagewise_model::allocator::AllocatorKind;
use pagewise_model::findings::{Cause, Findings, FlameNode, Site};
use serde::Deserialize;
use std::collections::BTreeSet;

/// What of Python writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Writer {
    /// The garbage collector, to the header of each object that it visits.
    Collector,
    /// The interpreter, to the reference count of each object that is used.
    ReferenceCounts,
    /// One or the other: its functions have no names.
    Either,
}

/// Writes are of one kind if this part of the copied pages is.
const MOST: f64 = 0.5;

/// What of Python causes most copies after forks.
pub(super) fn writer(findings: &Findings) -> Option<Writer> {
    let mut allocators = findings.allocators.iter();
    allocators.find(|one| one.kind == AllocatorKind::Cpython)?;
    let copying = |site: &&Site| site.main_cause == Cause::CopyOnWrite;
    let sites: Vec<&Site> = findings.sites.iter().filter(copying).collect();
    let faults = |is: &dyn Fn(&Site) -> bool| -> f64 {
        let those = sites.iter().filter(|site| is(site));
        those.map(|site| site.faults).sum()
    };
    let all = faults(&|_| true);
    let most = |is: &dyn Fn(&Site) -> bool| all > 0.0 && faults(is) >= MOST * all;
    if most(&|site| site.stack.iter().any(|function| is_of_collector(function))) {
        return Some(Writer::Collector);
    }
    let interpreter = functions_of_interpreter(findings);
    let has_name = |site: &Site| !site.culprit.starts_with('[');
    let is_its = |site: &Site| interpreter.contains(&*site.culprit);
    if most(&|site| is_its(site) && has_name(site)) {
        return Some(Writer::ReferenceCounts);
    }
    most(&is_its).then_some(Writer::Either)
}

fn is_of_collector(function: &str) -> bool {
    Runtimes::shipped().collector_of(function) == Some(AllocatorKind::Cpython)
}

/// The functions of Python's own program and library that fault.
fn functions_of_interpreter(findings: &Findings) -> BTreeSet<&str> {
    let heap = family(AllocatorKind::Cpython).and_then(|family| family.heap.as_ref());
    let files = heap.map_or(&[][..], |heap| &heap.files);
    let mut found = BTreeSet::new();
    let mut open: Vec<&FlameNode> = vec![&findings.flame];
    while let Some(node) = open.pop() {
        if matches(files, &node.module) {
            found.insert(&*node.name);
        }
        open.extend(&node.children);
    }
    found
}
