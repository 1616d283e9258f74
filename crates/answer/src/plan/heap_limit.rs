//! Whether a runtime's heap comes near the limit that the user has set for it.

use super::rules::Rule;
use pagewise_model::allocator::Allocator;
use pagewise_model::findings::Findings;

/// The share of the limit from which the peak of resident memory is near it: a part of the heap is not
/// resident, and a part of what is resident is not heap.
const NEAR: f64 = 0.8;
const MIB: f64 = 1_048_576.0;

/// Whether the process comes near the limit, in MiB, that the rule's setting is. Rules about other settings
/// ask for nothing.
pub(super) fn is_near(findings: &Findings, rule: &Rule, allocator: Option<&Allocator>) -> bool {
    if !rule.near_limit {
        return true;
    }
    let name = rule.when_set.as_deref().unwrap_or_default();
    let value = allocator.and_then(|allocator| value_of(allocator, name));
    let limit = value.and_then(|value| value.parse::<f64>().ok());
    limit.is_some_and(|limit| findings.cost.max_rss.0 as f64 >= NEAR * limit * MIB)
}

/// The value of a setting, which may be one of a list: `NODE_OPTIONS=--a=1 --b=2`.
pub(super) fn value_of<'a>(allocator: &'a Allocator, name: &str) -> Option<&'a str> {
    let listed = || {
        let mut all = allocator.settings.values().flat_map(|list| list.split(' '));
        all.find_map(|one| one.strip_prefix(name)?.strip_prefix('='))
    };
    let plain = allocator.settings.get(name).map(String::as_str);
    plain.or_else(listed)
}
