//! The texts and settings of a rule, filled with this run's numbers.

use super::Surroundings;
use super::case::Case;
use super::numa::FittingNode;
use super::prediction::LEAST_KEPT;
use super::reads::SinglePages;
use super::rules::{Rule, SettingTemplate};
use super::{heap_limit, phrases};
use pagewise_model::advice::Setting;
use pagewise_model::allocator::Allocator;
use pagewise_model::findings::Findings;
use pagewise_model::histogram::Histogram;
use pagewise_model::quantity::percent;
use pagewise_model::units::Bytes;
use pagewise_rules::Template;

/// If the largest stretch is this many times as large as nine of ten stretches, the latter are
/// reported.
const SPREAD: u64 = 4;
const MOST_OF_THEM: f64 = 0.9;

/// Values for placeholders.
pub(super) struct Filling<'a> {
    freed: Bytes,
    /// Size that most stretches do not exceed.
    usual: Bytes,
    share: f64,
    keep: u64,
    version: &'a str,
    library: &'a str,
    join: Option<&'a str>,
    allocator: Option<&'a Allocator>,
    /// The setting that the rule asks for, with its value.
    in_force: Option<(&'a str, &'a str)>,
    pub(super) singly: Option<SinglePages>,
    pub(super) node: Option<FittingNode>,
}

impl<'a> Filling<'a> {
    pub(super) fn new(
        findings: &Findings,
        rule: &'a Rule,
        cured: &[&Case],
        allocator: Option<&'a Allocator>,
        around: &'a Surroundings,
    ) -> Self {
        let mut sizes = Histogram::default();
        for symptom in cured {
            sizes.merge(&symptom.sizes);
        }
        let freed = sizes.max();
        let held = findings
            .cost
            .max_rss
            .0
            .max(freed.saturating_mul(2))
            .max(LEAST_KEPT);
        Self {
            freed: Bytes(freed),
            usual: Bytes(match sizes.count() {
                0 => 0,
                _ => sizes.quantile(MOST_OF_THEM),
            }),
            share: cured.iter().map(|symptom| symptom.share.value).sum(),
            keep: held.checked_next_power_of_two().unwrap_or(1 << 62),
            version: allocator
                .and_then(|one| one.version.as_deref())
                .unwrap_or("unknown version"),
            library: rule
                .library
                .as_deref()
                .and_then(|name| rule.path_of(name, around))
                .unwrap_or(""),
            join: rule.join.as_deref(),
            allocator,
            in_force: rule.when_set.as_deref().and_then(|name| {
                let value = heap_limit::value_of(allocator?, name)?;
                Some((name, value))
            }),
            singly: None,
            node: None,
        }
    }

    pub(super) fn text(&self, template: &Template) -> String {
        let (freed, stretches) = match self.freed {
            Bytes(0) => (phrases::any_size(), phrases::stretches()),
            size if self.usual.0 > 0 && self.usual.0 < size.0 / SPREAD => {
                (size.to_string(), phrases::stretches_mostly(self.usual))
            }
            size => (size.to_string(), phrases::stretches_up_to(size)),
        };
        let settings = self.allocator.into_iter().flat_map(|one| &one.settings);
        let mut values: Vec<(&str, String)> = vec![
            ("stretches", stretches),
            ("freed", freed),
            ("share", percent(self.share)),
            ("keep", self.keep.to_string()),
            ("version", self.version.to_owned()),
            ("library", self.library.to_owned()),
        ];
        if let Some(singly) = self.singly {
            values.push(("now", singly.now.to_string()));
            values.push(("alone", singly.alone.to_string()));
        }
        if let Some(fitting) = &self.node {
            values.push(("node", fitting.node.to_string()));
            values.push(("cpus", fitting.cpus.clone()));
        }
        values.extend(settings.map(|(name, value)| (name.as_str(), value.clone())));
        values.extend(self.in_force.map(|(name, value)| (name, value.to_owned())));
        template.fill(&values)
    }

    /// A value appended to the variable's current one, if that is a list.
    fn joined(&self, name: &str, value: String) -> String {
        let before = self.allocator.and_then(|one| one.settings.get(name));
        match (self.join, before.filter(|before| !before.is_empty())) {
            (Some(join), Some(before)) => format!("{before}{join}{value}"),
            _ => value,
        }
    }

    /// The name under which the allocator found reads a variable of its family.
    fn read_as(&self, name: &str) -> String {
        let own = self.allocator.and_then(|one| {
            let family = pagewise_families::family(one.kind)?;
            (family.prefixed.as_deref() == Some(name)).then_some(one.variable.as_deref()?)
        });
        own.unwrap_or(name).to_owned()
    }

    pub(super) fn setting(&self, setting: &SettingTemplate) -> Setting {
        let change = |variable: Option<&str>, value: &Template| match variable {
            Some(name) => self.joined(name, self.text(value)),
            None => self.text(value),
        };
        setting.filled(|name| self.read_as(name), change)
    }
}
