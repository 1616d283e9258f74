//! Settings in which two hosts differ; those known to affect what changed come first.

use pagewise_model::host::HostSnapshot;
use pagewise_model::side::SettingChange;
use pagewise_profile::matches;
use pagewise_rules::{Content, RuleError, RuleFile, rule_file};
use serde::Deserialize;
use std::collections::BTreeSet;

const SHIPPED: RuleFile = rule_file!("settings.toml");

/// Which settings affect which functions.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SettingRules {
    touches: Vec<Touch>,
    /// Settings that differ between any two hosts and are irrelevant.
    passed_over: Vec<String>,
}

impl Content for SettingRules {}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Touch {
    /// Names of settings; `*` stands for one part.
    settings: Vec<String>,
    /// Functions, `*` at the end for any that begin so.
    functions: Vec<String>,
    reason: String,
}

impl SettingRules {
    /// The built-in rules.
    ///
    /// # Errors
    /// [`RuleError`] if one has a mistake; a test checks that none has.
    pub fn shipped() -> Result<Self, RuleError> {
        SHIPPED.read()
    }

    /// Settings that differ, given the functions that changed.
    pub(crate) fn changes(
        &self,
        a: &HostSnapshot,
        b: &HostSnapshot,
        changed: &[String],
    ) -> Vec<SettingChange> {
        // A host that was not recorded differs in everything, which is meaningless.
        if a.settings.is_empty() || b.settings.is_empty() {
            return Vec::new();
        }
        let (in_a, in_b) = (facts(a), facts(b));
        let names: BTreeSet<&str> = in_a.keys().chain(in_b.keys()).map(String::as_str).collect();
        let mut changes: Vec<(usize, SettingChange)> = names
            .into_iter()
            .filter(|name| in_a.get(*name) != in_b.get(*name))
            .filter(|name| {
                !self
                    .passed_over
                    .iter()
                    .any(|pattern| matches(name, pattern))
            })
            .map(|name| {
                let (rank, touches, reason) = self.touched(name, changed);
                let change = SettingChange {
                    name: name.to_owned(),
                    a: in_a.get(name).cloned(),
                    b: in_b.get(name).cloned(),
                    touches,
                    reason,
                };
                (rank, change)
            })
            .collect();
        changes.sort_by_key(|(rank, _)| *rank);
        changes.into_iter().map(|(_, change)| change).collect()
    }

    /// The first rule by which a setting affects what changed: its position, the functions, the
    /// reason.
    fn touched(&self, name: &str, changed: &[String]) -> (usize, Vec<String>, String) {
        for (rank, touch) in self.touches.iter().enumerate() {
            if !touch.settings.iter().any(|pattern| matches(name, pattern)) {
                continue;
            }
            let is_touched = |function: &&String| {
                touch
                    .functions
                    .iter()
                    .any(|pattern| match pattern.strip_suffix('*') {
                        Some(prefix) => function.starts_with(prefix),
                        None => *function == pattern,
                    })
            };
            let found: Vec<String> = changed.iter().filter(is_touched).cloned().collect();
            if !found.is_empty() {
                return (rank, found, touch.reason.clone());
            }
        }
        (self.touches.len(), Vec::new(), String::new())
    }
}

/// All data of a snapshot, under one kind of name.
fn facts(host: &HostSnapshot) -> std::collections::BTreeMap<String, String> {
    let mut facts = host.settings.clone();
    for (name, value) in [
        ("kernel", host.kernel.clone()),
        ("architecture", host.architecture.clone()),
        ("cpu", host.cpu.clone()),
        ("cpus", host.cpus.to_string()),
        ("memory_bytes", host.memory_bytes.to_string()),
        ("page_size", host.page_size.to_string()),
    ] {
        facts.insert(name.to_owned(), value);
    }
    facts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(settings: &[(&str, &str)]) -> HostSnapshot {
        let pairs = settings
            .iter()
            .map(|&(name, value)| (name.to_owned(), value.to_owned()));
        HostSnapshot {
            settings: pairs.collect(),
            ..HostSnapshot::default()
        }
    }

    #[test]
    fn what_touches_the_grown_functions_comes_first() {
        let names = ["block.vda.nr_requests", "block.vda.scheduler", "a.b"];
        let a = host(&[(names[0], "128"), (names[1], "none"), (names[2], "60")]);
        let b = host(&[(names[0], "256"), (names[1], "kyber"), (names[2], "10")]);
        let rules = SettingRules::shipped().unwrap();
        let changed = ["kyber_has_work", "blk_mq_run_hw_queue"].map(str::to_owned);
        let changes = rules.changes(&a, &b, &changed);
        let message: Vec<&str> = changes.iter().map(|change| change.name.as_str()).collect();
        assert_eq!(message, [names[1], names[0], names[2]]);
        assert_eq!(changes[0].touches, ["kyber_has_work"]);
        assert!(!changes[1].reason.is_empty() && changes[2].reason.is_empty());
    }

    #[test]
    fn a_host_that_was_not_recorded_differs_in_nothing() {
        let rules = SettingRules::shipped().unwrap();
        let a = host(&[("vm.swappiness", "60")]);
        assert!(rules.changes(&a, &host(&[]), &[]).is_empty());
    }
}
