//! Known bottlenecks, as data: the functions that reveal them, and the settings that belong to
//! them.

use super::weigh::{Idle, frame_names, is_cpu, passing, samples_in};
use pagewise_model::findings::{Diagnosis, Severity};
use pagewise_model::host::HostSnapshot;
use pagewise_model::profile::{NodeId, Profile, ProfileEvent, WeightUnit};
use pagewise_model::units::Estimate;
use pagewise_rules::Template;
use pagewise_rules::{Content, Mistake, RuleError, RuleFile, rule_file};
use serde::Deserialize;

/// The built-in rules.
const SHIPPED: RuleFile = rule_file!("bottlenecks.toml");

/// Rules for profiles.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProfileRules {
    rule: Vec<Rule>,
}

impl Content for ProfileRules {
    fn check(&self) -> Result<(), Mistake> {
        self.rule.iter().try_for_each(|rule| {
            rule.headline.check(&["share"])?;
            rule.explanation.check(&[])?;
            rule.next.check(&[])
        })
    }
}

/// One known bottleneck.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Rule {
    id: String,
    /// The samples that it applies to.
    of: Kind,
    /// A stack matches if it contains one of these, ...
    functions: Vec<String>,
    /// ... one of these too, if any are given, ...
    #[serde(default)]
    with: Vec<String>,
    /// ... and none of these.
    #[serde(default)]
    without: Vec<String>,
    /// A setting of the host that must have another value than `unless`, if it is known; `*` stands
    /// for one part of its name.
    setting: Option<String>,
    #[serde(default)]
    unless: Vec<String>,
    /// Whether stacks alone are not sufficient: the setting must be known.
    #[serde(default)]
    needs_setting: bool,
    /// Whether findings of faults show the same, and better.
    #[serde(default)]
    is_about_faults: bool,
    /// Share of the samples' weight from which it is worth mentioning, ...
    note: f64,
    /// ... from which it is costly, ...
    costly: f64,
    /// ... and from which it is severe.
    severe: f64,
    headline: Template,
    explanation: Template,
    next: Template,
}

/// The samples that a rule examines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Kind {
    /// CPU time.
    Cpu,
    /// Waits.
    OffCpu,
    /// Waits of runnable threads, as a share of the time in which they wanted to run.
    Runnable,
    /// Requests to block devices.
    BlockIo,
}

impl Kind {
    fn covers(self, event: &str) -> bool {
        match self {
            Self::Cpu => is_cpu(event),
            Self::OffCpu => event.starts_with("off-cpu (blocked)"),
            Self::Runnable => event.starts_with("off-cpu (waiting for a CPU)"),
            Self::BlockIo => event.starts_with("block:block_rq_issue"),
        }
    }

    /// Whether an event's weight is part of the total for shares. Cycles cannot be added to waits.
    fn is_of_whole(self, event: &ProfileEvent) -> bool {
        let runs = self == Self::Runnable && is_cpu(&event.name);
        self.covers(&event.name) || (runs && event.unit == WeightUnit::Nanoseconds)
    }

    fn in_words(self) -> &'static str {
        match self {
            Self::Cpu => "CPU time",
            Self::OffCpu => "waiting time",
            Self::Runnable => "time in which threads could run",
            Self::BlockIo => "block requests",
        }
    }
}

impl ProfileRules {
    /// The built-in rules.
    ///
    /// # Errors
    /// [`RuleError`] if one has a mistake; a test checks that none has.
    pub fn shipped() -> Result<Self, RuleError> {
        SHIPPED.read()
    }

    /// The rules for a profile that is added to findings of faults.
    #[must_use]
    pub fn beside_faults(mut self) -> Self {
        self.rule.retain(|rule| !rule.is_about_faults);
        self
    }

    /// The findings of the rules.
    pub(super) fn apply(&self, profile: &Profile, idle: &Idle) -> Vec<Diagnosis> {
        let mut weights = WeightsByKind::default();
        let rules = self.rule.iter();
        rules
            .filter_map(|rule| rule.apply(profile, idle, &mut weights))
            .collect()
    }
}

/// Weights of the samples that rules examine: one pass over millions of samples serves all rules
/// of a kind.
#[derive(Default)]
struct WeightsByKind(Vec<(Kind, Weights)>);

/// Weights of busy samples.
struct Weights {
    /// Those of the kind, by stack.
    by_stack: Vec<u64>,
    /// Samples behind them.
    samples: Vec<u64>,
    /// Those whose shares are shown.
    all: u64,
    /// Samples behind that.
    all_samples: u64,
}

/// With fewer samples of CPU time in all, no share is known well enough for a finding. Waits and requests
/// are recorded each, not sampled.
const FEWEST: u64 = 10;
/// With fewer matching samples, a finding is a note, whatever its share.
const FEWEST_MATCHING: u64 = 5;

impl WeightsByKind {
    fn weights(&mut self, kind: Kind, profile: &Profile, idle: &Idle) -> &Weights {
        let known = self.0.iter().position(|(known, _)| *known == kind);
        let at = known.unwrap_or_else(|| {
            self.0.push((kind, Weights::new(kind, profile, idle)));
            self.0.len() - 1
        });
        &self.0[at].1
    }
}

impl Weights {
    fn new(kind: Kind, profile: &Profile, idle: &Idle) -> Self {
        let events = profile.events.iter();
        let uses: Vec<(bool, bool)> = events
            .map(|event| (kind.is_of_whole(event), kind.covers(&event.name)))
            .collect();
        let mut weights = Self {
            by_stack: vec![0; profile.stacks.len()],
            samples: vec![0; profile.stacks.len()],
            all: 0,
            all_samples: 0,
        };
        if !uses.iter().any(|&(_, covered)| covered) {
            return weights;
        }
        for sample in profile.samples.iter().filter(|s| !idle.is(s.stack)) {
            let (is_of_whole, covered) = uses[usize::from(sample.event)];
            let count = samples_in(profile, &sample);
            if is_of_whole {
                weights.all += sample.weight;
                weights.all_samples += count;
            }
            if is_of_whole && covered {
                weights.by_stack[sample.stack.0 as usize] += sample.weight;
                weights.samples[sample.stack.0 as usize] += count;
            }
        }
        weights
    }
}

impl Rule {
    fn apply(
        &self,
        profile: &Profile,
        idle: &Idle,
        weights: &mut WeightsByKind,
    ) -> Option<Diagnosis> {
        let settings = self.settings(&profile.host)?;
        let shows = self.stacks(profile);
        let Weights {
            by_stack,
            samples,
            all,
            all_samples,
        } = weights.weights(self.of, profile, idle);
        let is_sampled = matches!(self.of, Kind::Cpu);
        if is_sampled && *all_samples < FEWEST {
            return None;
        }
        let matching: u64 = samples
            .iter()
            .zip(&shows)
            .filter_map(|(&samples, &shows)| shows.then_some(samples))
            .sum();
        let is_firm = !is_sampled || matching >= FEWEST_MATCHING;
        let shown = by_stack
            .iter()
            .zip(&shows)
            .map(|(&weight, &shows)| match shows {
                true => weight,
                false => 0,
            });
        let hit: u64 = shown.clone().sum();
        let share = hit as f64 / (*all).max(1) as f64;
        let severity = match share {
            _ if share >= self.severe && is_firm => Severity::Severe,
            _ if share >= self.costly && is_firm => Severity::Costly,
            _ if share >= self.note && hit > 0 => Severity::Note,
            _ => return None,
        };
        let percent = format!("{:.1} %", 100.0 * share);
        let mut evidence = vec![format!("{percent} of the {}", self.of.in_words())];
        evidence.extend(heaviest(profile, &shown.collect::<Vec<_>>(), hit));
        evidence.extend(settings);
        evidence.push(format!("Next: {}", self.next.plain()));
        Some(Diagnosis {
            id: format!("profile.{}", self.id),
            severity,
            headline: self.headline.fill(&[("share", percent)]),
            explanation: self.explanation.plain(),
            evidence,
            share_of_cpu: (self.of == Kind::Cpu).then(|| Estimate::exact(share)),
            share_of_elapsed: None,
        })
    }

    /// The stacks that match.
    fn stacks(&self, profile: &Profile) -> Vec<bool> {
        let through = |names: &[String]| {
            let frames = profile.frames.iter();
            let wanted: Vec<bool> = frames
                .map(|frame| names.iter().any(|name| is_function(&frame.name, name)))
                .collect();
            passing(profile, &wanted)
        };
        let mut shows = through(&self.functions);
        if !self.with.is_empty() {
            let with = through(&self.with);
            shows
                .iter_mut()
                .zip(with)
                .for_each(|(shows, with)| *shows &= with);
        }
        if !self.without.is_empty() {
            let without = through(&self.without);
            let pairs = shows.iter_mut().zip(without);
            pairs.for_each(|(shows, without)| *shows &= !without);
        }
        shows
    }

    /// The relevant settings, as evidence; `None` if the known ones rule it out.
    fn settings(&self, host: &HostSnapshot) -> Option<Vec<String>> {
        let Some(pattern) = &self.setting else {
            return Some(Vec::new());
        };
        let known: Vec<(&String, &String)> = host
            .settings
            .iter()
            .filter(|(name, _)| matches(name, pattern))
            .collect();
        let telling: Vec<String> = known
            .iter()
            .filter(|(_, value)| !self.unless.contains(value))
            .map(|(name, value)| format!("{name} = {value}"))
            .collect();
        // If the recording contains no such setting, the stacks alone decide, if they can.
        let stacks_decide = known.is_empty() && !self.needs_setting;
        (stacks_decide || !telling.is_empty()).then_some(telling)
    }
}

/// Whether a frame is this function; the compiler's copies (`.isra.0`, `.constprop.0`) count as
/// well.
fn is_function(frame: &str, function: &str) -> bool {
    match function.strip_suffix('*') {
        Some(prefix) => frame.starts_with(prefix),
        None => frame
            .strip_prefix(function)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('.')),
    }
}

/// Whether a dotted name fits a pattern in which `*` stands for one part.
#[must_use]
pub fn matches(name: &str, pattern: &str) -> bool {
    let (mut parts, mut wanted) = (name.split('.'), pattern.split('.'));
    loop {
        match (parts.next(), wanted.next()) {
            (None, None) => return true,
            (Some(_), Some("*")) => {}
            (Some(part), Some(want)) if part == want => {}
            _ => return false,
        }
    }
}

/// The heaviest matching stack, shortened to its inner end.
fn heaviest(profile: &Profile, by_stack: &[u64], all: u64) -> Option<String> {
    const INNERMOST: usize = 7;
    let at = (0..by_stack.len()).max_by_key(|&at| by_stack[at])?;
    let names = frame_names(profile, NodeId(u32::try_from(at).ok()?));
    let from = names.len().saturating_sub(INNERMOST);
    let start = if from > 0 { "… → " } else { "" };
    let share = 100.0 * by_stack[at] as f64 / all.max(1) as f64;
    Some(format!(
        "{share:.0} % of that in {start}{}",
        names[from..].join(" → ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made::Maker;

    fn found(
        stacks: &[(&str, u64)],
        events: &[&'static str],
        settings: &[(&str, &str)],
    ) -> Vec<String> {
        let mut maker = Maker::default();
        maker.events = events.to_vec();
        for &(stack, count) in stacks {
            maker.samples(stack, count);
        }
        let mut profile = maker.finish();
        for &(name, value) in settings {
            profile
                .host
                .settings
                .insert(name.to_owned(), value.to_owned());
        }
        let rules = ProfileRules::shipped().unwrap();
        let found = rules.apply(&profile, &Idle::new(&profile));
        found.into_iter().map(|diagnosis| diagnosis.id).collect()
    }

    #[test]
    fn each_shipped_rule_says_what_to_do_and_has_sane_limits() {
        for rule in ProfileRules::shipped().unwrap().rule {
            assert!(
                rule.note <= rule.costly && rule.costly <= rule.severe,
                "{}",
                rule.id
            );
            assert!(
                rule.next.plain().len() > 20 && rule.explanation.plain().len() > 20,
                "{}",
                rule.id
            );
            assert!(!rule.functions.is_empty(), "{}", rule.id);
        }
    }

    #[test]
    fn a_scheduler_before_a_fast_device_is_named_unless_none_is_set() {
        let stacks = [
            (
                "fio;submit_bio_k;blk_mq_submit_bio_k;kyber_limit_depth_k",
                10,
            ),
            ("fio;work", 90),
        ];
        let with = |value| {
            found(
                &stacks,
                &["cpu-clock"],
                &[("block.nvme0n1.scheduler", value)],
            )
        };
        assert_eq!(with("kyber"), ["profile.io_scheduler"]);
        assert!(with("none").is_empty());
        assert_eq!(
            found(&stacks, &["cpu-clock"], &[]),
            ["profile.io_scheduler"]
        );
    }

    #[test]
    fn rules_for_waits_do_not_look_at_cpu_time() {
        let stacks = [("db;balance_dirty_pages_k;io_schedule_timeout_k", 10)];
        assert_eq!(
            found(&stacks, &["off-cpu (blocked)"], &[]),
            ["profile.writeback"]
        );
        assert!(found(&stacks, &["cpu-clock"], &[]).is_empty());
    }

    #[test]
    fn copies_of_a_function_count_as_the_function() {
        assert!(is_function("shrink_node.isra.0", "shrink_node"));
        assert!(!is_function("shrink_node_memcgs", "shrink_node"));
        assert!(is_function("kyber_limit_depth", "kyber_*"));
    }

    #[test]
    fn one_sample_is_no_finding_and_few_are_never_severe() {
        let stack = "app;native_queued_spin_lock_slowpath_k";
        assert!(found(&[(stack, 1)], &["cpu-clock"], &[]).is_empty());
        let severity = |hits: u64| {
            let mut maker = Maker::default();
            maker.samples(stack, hits);
            maker.samples("app;work", 10 - hits);
            let profile = maker.finish();
            let rules = ProfileRules::shipped().unwrap();
            rules.apply(&profile, &Idle::new(&profile))[0].severity
        };
        assert_eq!(severity(4), Severity::Note);
        assert!(severity(5) >= Severity::Costly);
    }
}
