//! The rule base: from symptom and allocator to settings. Data, so that a new fix is a few lines of
//! TOML with its source.

use super::reads::Order;
use super::symptom::Symptom;
use super::writers::Writer;
use pagewise_model::advice::{Risk, Setting};
use pagewise_model::allocator::AllocatorKind;
use pagewise_model::findings::{Cause, Findings};
use pagewise_model::units::Estimate;
use pagewise_rules::Template;
use pagewise_rules::{Content, Mistake, RuleError, RuleFile, read, rule_file};
use serde::de::Error;
use serde::{Deserialize, Deserializer};
use toml::Spanned;

/// One rule.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// Stable name.
    pub id: String,
    /// Symptoms that it fixes; one of them suffices.
    pub(super) symptoms: Vec<Symptom>,
    /// Allocator family that must be in use; `none` requires that the program maps memory itself,
    /// `unseen` that the mapper is unknown, `fixed` and `trimmed` that the program's own calls of
    /// mallopt and `malloc_trim` decide.
    pub allocator: Option<String>,
    /// First version of the allocator to which it applies.
    pub from_version: Option<String>,
    /// First version of the allocator to which it no longer applies.
    pub before_version: Option<String>,
    /// `dynamic` or `static`.
    pub linkage: Option<Linkage>,
    /// Only if released stretches are at most this long (bytes).
    pub largest_block: Option<u64>,
    /// Only if stretches of at most this length (bytes) are most of the released memory.
    pub mostly_within: Option<u64>,
    /// The same as `largest_block`, if threads other than the main one fault.
    pub largest_block_in_threads: Option<u64>,
    /// Only if threads fault and released stretches are longer than this (bytes).
    pub smallest_block_in_threads: Option<u64>,
    /// Only if this allocator's library is installed, or `pagewise` for our own; its path is
    /// `{library}`.
    pub library: Option<String>,
    /// Only if none of these is installed.
    #[serde(default)]
    pub without_library: Vec<String>,
    /// Settings; values may contain placeholders.
    #[serde(default)]
    pub(super) settings: Vec<SettingTemplate>,
    /// What to do.
    pub(super) headline: Template,
    /// Why it helps.
    pub(super) reason: Template,
    /// What to do by hand.
    pub(super) manual: Option<Template>,
    /// Its effect other than avoiding faults.
    pub effect: Option<Effect>,
    /// Share of the faults that it avoids, if not nearly all of them.
    pub avoids: Option<Estimate>,
    /// Remaining share of the time in code of an allocator or collector.
    pub left: Option<Estimate>,
    /// Separator of a variable that contains a list: our value is appended to the current one.
    pub join: Option<String>,
    /// Only if this setting of the allocator is in force.
    pub when_set: Option<String>,
    /// Only if resident memory comes near that setting, in MiB.
    #[serde(default)]
    pub(super) near_limit: bool,
    /// Only if none of these is in force: the user's decision has priority.
    #[serde(default)]
    pub unless_set: Vec<String>,
    /// Only if the process contains none of these runtimes.
    #[serde(default)]
    pub without_runtime: Vec<AllocatorKind>,
    /// Only if this causes most copies of pages after forks.
    pub(super) written_by: Option<Writer>,
    /// Not if any of these does.
    #[serde(default)]
    pub(super) unless_written_by: Vec<Writer>,
    /// Only with huge pages in this use.
    pub(super) huge_pages: Option<HugePages>,
    /// Only if the recorder saw what privileges show (true), or did not (false).
    pub(super) privileged: Option<bool>,
    /// Only if threads other than the main one fault.
    #[serde(default)]
    pub(super) needs_threads: bool,
    /// Not if reads of mapped files are in this order.
    pub(super) unless_order: Option<Order>,
    /// Only if reading single pages of them takes less time (true), or does not (false).
    pub single_pages: Option<bool>,
    /// Only if one NUMA node holds the program and has CPUs enough (true), or none does (false).
    pub one_node: Option<bool>,
    /// Whether it may also do harm: then it is advised only after a proof.
    #[serde(default)]
    pub trial: bool,
    /// Only if the program's own calls override the allocator's settings.
    #[serde(default)]
    pub(super) overridden: bool,
    /// No use beside these rules, because it does much the same.
    #[serde(default)]
    pub(super) unless_beside: Vec<String>,
    /// Factor by which resident memory may grow, relative to its peak.
    pub memory_times: Option<f64>,
    /// Bytes by which resident memory may grow.
    pub memory_more: Option<u64>,
    /// What it gained in programs with its symptoms.
    #[serde(default)]
    pub(super) known: Vec<Known>,
    /// Memory that it may cost in addition.
    pub price: Price,
    /// Risk.
    pub risk: Risk,
    /// What can go wrong.
    pub(super) caveat: Option<Template>,
}

/// Gains in CPU time of programs with a rule's symptoms, in runs with and without its settings.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Known {
    /// Names of the programs (their processes), or beginnings of them; of any program if there is none.
    #[serde(default)]
    pub programs: Vec<String>,
    /// The finding that it fixed in them; any of the rule's if it is absent.
    pub cause: Option<Symptom>,
    /// One for each program measured.
    pub gains: Vec<f64>,
}

/// The name of the library that comes with Pagewise, in rules.
pub(super) const OWN_LIBRARY: &str = "pagewise";

/// How an allocator came into the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Linkage {
    /// A library that can be replaced by preloading and reads the environment.
    Dynamic,
    /// Part of the program.
    Static,
}

/// Use of huge pages by the machine and the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum HugePages {
    /// The kernel gives them at least on request.
    Given,
    /// It gives them on request only.
    OnRequest,
    /// The program has some, or gets them without a request.
    Used,
}

impl HugePages {
    pub(super) fn holds(self, findings: &Findings) -> bool {
        let setting = findings.host.settings.get("thp.enabled");
        // The mode alone, or all with that in force in brackets.
        let mode = setting.map(|modes| match modes.split_once('[') {
            Some((_, rest)) => rest.split(']').next().unwrap_or_default(),
            None => modes.as_str(),
        });
        let has_some = || {
            let mut causes = findings.by_cause.iter();
            causes.any(|line| line.key == Cause::HugePage && line.faults.value > 0.0)
        };
        match self {
            Self::Given => mode.is_some_and(|mode| mode != "never"),
            Self::OnRequest => mode == Some("madvise"),
            Self::Used => mode == Some("always") || has_some(),
        }
    }
}

/// An effect of a fix other than avoiding faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// Small pages instead of huge ones: more faults, each of which zeroes only what it needs.
    SmallPages,
    /// The same calls, served faster.
    FasterAllocator,
    /// Less of the symptoms' cost, by `avoids` and `left`.
    Less,
    /// Large gain or harm: only runs can show.
    Unknown,
}

/// Memory that a fix may keep resident.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Price {
    /// None.
    None,
    /// The difference between the usual resident memory and its peak.
    Keep,
    /// The same plus the allocator's own overhead.
    Peak,
}

/// All rules, in the order of preference.
#[derive(Clone, Debug, PartialEq)]
pub struct Rules(pub Vec<Rule>);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Advising {
    rule: Vec<Rule>,
}

impl Content for Advising {
    fn check(&self) -> Result<(), Mistake> {
        self.rule.iter().try_for_each(Rule::check)
    }
}

/// The rules of a family of allocators, next to what else is known of it.
#[derive(Deserialize)]
struct OfFamily {
    #[serde(default)]
    rule: Vec<Rule>,
}

impl Content for OfFamily {
    fn check(&self) -> Result<(), Mistake> {
        self.rule.iter().try_for_each(Rule::check)
    }
}

const SHIPPED: [RuleFile; 2] = [rule_file!("own.toml"), rule_file!("causes.toml")];

impl Rules {
    /// The built-in rules.
    ///
    /// # Errors
    /// [`RuleError`] for a rule file with a mistake; a test checks that there is none.
    pub fn shipped() -> Result<Self, RuleError> {
        let families = pagewise_families::sections::<OfFamily>()?.into_iter();
        let mut rules: Vec<Rule> = families.flat_map(|family| family.rule).collect();
        for file in SHIPPED {
            rules.extend(file.read::<Advising>()?.rule);
        }
        Ok(Self(rules))
    }

    /// The rules of one file.
    ///
    /// # Errors
    /// [`RuleError`] if the text is not a valid rule file.
    pub fn parse(file: &str, text: &str) -> Result<Self, RuleError> {
        Ok(Self(read::<Advising>(file, text)?.rule))
    }
}

/// A setting whose value may refer to values of the run.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct SettingTemplate {
    pub(super) setting: Setting,
    value: Template,
}

impl SettingTemplate {
    /// The setting, with its value replaced by the result of `change` for its name and text, and a
    /// variable's name by that of `rename`.
    pub(super) fn filled(
        &self,
        rename: impl Fn(&str) -> String,
        change: impl Fn(Option<&str>, &Template) -> String,
    ) -> Setting {
        match &self.setting {
            Setting::Env { name, .. } => {
                let name = rename(name);
                let value = change(Some(&name), &self.value);
                Setting::Env { name, value }
            }
            Setting::Unset { name } => Setting::Unset { name: name.clone() },
            Setting::GlibcTunable { name, .. } => Setting::GlibcTunable {
                name: name.clone(),
                value: change(None, &self.value),
            },
            Setting::Preload { .. } => Setting::Preload {
                path: change(None, &self.value),
            },
            Setting::Thp { .. } => Setting::Thp {
                mode: change(None, &self.value),
            },
            Setting::Numa { .. } => Setting::Numa {
                options: change(None, &self.value),
            },
        }
    }
}

impl<'de> Deserialize<'de> for SettingTemplate {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let written = Spanned::<Setting>::deserialize(deserializer)?;
        let at = written.span().start;
        let setting = written.into_inner();
        let text = match &setting {
            Setting::Env { value, .. } | Setting::GlibcTunable { value, .. } => value,
            Setting::Unset { name } => name,
            Setting::Preload { path } => path,
            Setting::Thp { mode } => mode,
            Setting::Numa { options } => options,
        };
        let value = Template::parse(text, at).map_err(D::Error::custom)?;
        Ok(Self { setting, value })
    }
}

/// Values that the texts of a rule may refer to, in addition to a setting that is in force; see
/// `crates/families/rules/README.md`.
pub(super) const VALUES: [&str; 10] = [
    "stretches",
    "freed",
    "share",
    "keep",
    "version",
    "library",
    "now",
    "alone",
    "node",
    "cpus",
];

impl Rule {
    fn check(&self) -> Result<(), Mistake> {
        let in_force = self.when_set.as_deref();
        let given: Vec<&str> = VALUES.into_iter().chain(in_force).collect();
        let texts = [&self.headline, &self.reason].into_iter();
        let values = self.settings.iter().map(|setting| &setting.value);
        let mut texts = texts.chain(&self.manual).chain(&self.caveat).chain(values);
        texts.try_for_each(|text| text.check(&given))?;
        if self.manual.is_some() == self.settings.is_empty() {
            return Ok(());
        }
        let what = format!("{} expected either settings or 'manual'", self.id);
        Err(self.headline.mistake(what))
    }
}

#[cfg(test)]
mod tests {
    use super::super::fitting::kind_named;
    use super::*;

    #[test]
    fn shipped_rules_parse_and_name_known_allocators() {
        let rules = Rules::shipped().expect("shipped rules parse");
        for rule in &rules.0 {
            let named = rule
                .allocator
                .iter()
                .chain(&rule.library)
                .chain(&rule.without_library);
            let words = [
                "none",
                "bundled",
                "fixed",
                "trimmed",
                "threads",
                "unseen",
                OWN_LIBRARY,
            ];
            for name in named.filter(|name| !words.contains(&name.as_str())) {
                assert!(kind_named(name).is_some(), "{} names {name}", rule.id);
            }
        }
    }

    #[test]
    fn a_mistake_in_a_rule_file_is_told_with_its_place() {
        let error = Rules::parse("mine.toml", "[[rule]]\nid = 3\n").expect_err("no string");
        assert!(error.to_string().contains("mine.toml"), "{error}");
        assert!(error.to_string().contains("line 2"), "{error}");
    }

    #[test]
    fn a_rule_names_symptoms_and_values_that_there_are() {
        let refused = |change: &[&str]| {
            let text = SHIPPED[1].text.replacen(change[0], change[1], 1);
            Rules::parse("mine.toml", &text)
                .expect_err("a mistake")
                .to_string()
        };
        let symptom = refused(&["\"first_touch\"", "\"last_touch\""]);
        assert!(
            symptom.contains("line 7: unknown variant `last_touch`"),
            "{symptom}"
        );
        let value = refused(&["{share}", "{part}"]);
        assert!(
            value.contains("line 9: unknown value {part}, expected one of"),
            "{value}"
        );
        let neither = refused(&["manual = ", "caveat = "]);
        assert!(neither.contains("either settings or 'manual'"), "{neither}");
    }
}
