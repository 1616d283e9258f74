//! The rules that match, filled with this run's numbers.

use super::case::{Case, USUAL_FAULT_NS, nanos_each};
use super::kernel::is_privileged;
use super::numa::{self, FittingNode};
use super::reads::{self, SinglePages};
use super::rules::{Effect, Price, Rule, Rules, SettingTemplate, numbers};
use super::symptom::Symptom;
use super::wording::words;
use super::{Surroundings, grade, say, works};
use crate::gain::predicted_speedup;
use pagewise_faults::runtimes::Runtimes;
use pagewise_model::advice::{Advice, Setting, Settings};
use pagewise_model::allocator::{Allocator, AllocatorKind};
use pagewise_model::findings::{Cause, Findings};
use pagewise_model::histogram::Histogram;
use pagewise_model::quantity::percent;
use pagewise_model::units::{Bytes, Estimate};
use pagewise_rules::Template;
use std::cmp::Ordering;

/// A setting comes before manual steps for the costliest finding if the findings it fixes cost at
/// least this fraction of that.
const LEADING: f64 = 0.25;
/// Manual steps for findings that cost less than this fraction of the costliest one are left out.
const BESIDE: f64 = 0.1;
/// Another allocator is advised if the current one takes this share of the CPU time, and only tried
/// if it takes less: among the programs of `bench/programs` with 9 to 12 %, one gained 14 %, one
/// nothing, and one lost 12 %.
const SURELY_HOT: f64 = 0.2;
/// A predicted speed-up below this is not worth a change, nor is the prediction sure enough.
const WORTHWHILE: f64 = 1.05;
/// Share of the targeted faults that a setting avoids (the others are first touches of the memory
/// that is kept, and growth between phases). Measured over the programs of `bench/programs`.
const VANISHING: Estimate = Estimate {
    value: 0.97,
    low: 0.92,
    high: 1.0,
};
/// Position of the likeliest cost of a fault between the measured cost and the bound. The programs
/// of `bench/programs` gained 3 to 15 % more than the midpoint predicts.
const BOUND_WEIGHT: f64 = 0.8;
/// If the largest stretch is this many times as large as nine of ten stretches, the latter are
/// reported.
const SPREAD: u64 = 4;
const MOST_OF_THEM: f64 = 0.9;
/// Smallest amount that the allocator is advised to keep.
const LEAST_KEPT: u64 = 1 << 20;

/// Advice for all symptoms, best first. Settings come only from rules with a sufficient predicted
/// gain; manual steps only for symptoms that cost enough to be mentioned.
pub(super) fn advice(
    findings: &Findings,
    symptoms: &[Case],
    rules: &Rules,
    around: &Surroundings,
) -> Vec<Advice> {
    let mut advice: Vec<Advice> = rules
        .0
        .iter()
        .filter(|rule| !rule.trial && !may_harm(rule, symptoms))
        .filter_map(|rule| from_rule(findings, symptoms, rule, around))
        .collect();
    drop_alike(&mut advice, rules);
    let cost = |one: &Advice| {
        let cured = symptoms
            .iter()
            .filter(|s| one.cures.iter().any(|id| id == s.kind.id()));
        cured
            .map(|symptom| symptom.lost(findings))
            .fold(0.0, f64::max)
    };
    let largest = symptoms
        .iter()
        .map(|one| one.lost(findings))
        .fold(0.0, f64::max);
    advice.retain(|one| !one.settings.0.is_empty() || cost(one) >= BESIDE * largest);
    let leads = |one: &Advice| !one.settings.0.is_empty() && cost(one) >= LEADING * largest;
    advice.sort_by(|a, b| {
        let gain = b
            .predicted_speedup
            .value
            .total_cmp(&a.predicted_speedup.value);
        let by_hand = a.settings.0.is_empty().cmp(&b.settings.0.is_empty());
        let same = by_hand.then(a.risk.cmp(&b.risk)).then(gain);
        match (leads(a), leads(b)) {
            (true, true) => same,
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
            (false, false) => cost(b).total_cmp(&cost(a)).then(same),
        }
    });
    advice
}

/// Leaves out advice that does much the same as other advice.
fn drop_alike(advice: &mut Vec<Advice>, rules: &Rules) {
    let names: Vec<String> = advice.iter().map(|one| one.rule.clone()).collect();
    advice.retain(|one| {
        let rule = rules.0.iter().find(|rule| rule.id == one.rule);
        !rule.is_some_and(|rule| rule.unless_beside.iter().any(|id| names.contains(id)))
    });
}

/// Whether a rule requires another allocator although the current one takes little time.
pub(super) fn may_harm(rule: &Rule, symptoms: &[Case]) -> bool {
    let hot = symptoms
        .iter()
        .find(|one| one.kind == Symptom::HotAllocator);
    rule.effect == Some(Effect::FasterAllocator)
        && !rule.settings.is_empty()
        && hot.is_some_and(|hot| hot.cost.value < SURELY_HOT)
}

/// The runtime whose garbage collector took CPU time.
fn collects_in(findings: &Findings) -> Option<AllocatorKind> {
    let collector = findings.account.collector()?;
    let mut places = collector.places.iter();
    places.find_map(|function| Runtimes::shipped().collector_of(function))
}

pub(super) fn from_rule(
    findings: &Findings,
    symptoms: &[Case],
    rule: &Rule,
    around: &Surroundings,
) -> Option<Advice> {
    let mut cured = Vec::new();
    let mut allocator: Option<&Allocator> = None;
    for symptom in symptoms {
        if let Some(fitting) = rule.fits(symptom, &findings.allocators, around) {
            allocator = allocator.or(fitting);
            cured.push(symptom);
        }
    }
    let gravest = cured.first()?;
    if rule
        .huge_pages
        .is_some_and(|wanted| !wanted.holds(findings))
    {
        return None;
    }
    let other_rights = |wanted: bool| wanted != is_privileged(findings);
    if rule.privileged.is_some_and(other_rights) {
        return None;
    }
    if rule.needs_threads && !has_threads(findings) {
        return None;
    }
    let collects_in = collects_in(findings);
    let copies = symptoms.iter().any(|one| one.kind == Symptom::ForkCopies);
    let other_collector = |kind| !copies || collects_in != Some(kind);
    if rule.collects_in.is_some_and(other_collector)
        || (rule.unless_collects && collects_in == Some(AllocatorKind::Cpython))
    {
        return None;
    }
    let not_in = |order| reads::order(findings) == Some(order);
    if rule.unless_order.is_some_and(not_in) {
        return None;
    }
    let singly = reads::single_pages(findings, gravest, around);
    if rule
        .single_pages
        .is_some_and(|wanted| wanted != singly.is_some())
    {
        return None;
    }
    let node = numa::fitting_node(findings);
    let can_be_set = || {
        findings
            .numa
            .as_ref()
            .is_some_and(|numa| numa.policy_can_be_set)
    };
    if rule.one_node.is_some_and(|wanted| wanted != node.is_some())
        || (rule.sets_nodes() && !can_be_set())
    {
        return None;
    }
    let faults: f64 = cured.iter().map(|symptom| symptom.faults).sum();
    let speedup = predicted(findings, rule, &cured, faults);
    let is_costly = || {
        grade::severity(findings, gravest)
            .is_some_and(|severity| severity > pagewise_model::findings::Severity::Note)
    };
    let gains = speedup.value >= WORTHWHILE && speedup.low > 1.0;
    let worth_it = match rule.effect {
        _ if gravest.kind == Symptom::Runtime => true,
        _ if rule.settings.is_empty() || rule.trial => is_costly(),
        // How much of it is avoided is known only from a few programs.
        Some(Effect::Less) => gains && is_costly(),
        _ => gains,
    };
    if !worth_it {
        return None;
    }
    let fill = Filling {
        singly,
        node,
        ..Filling::new(findings, rule, &cured, allocator, around)
    };
    Some(Advice {
        rule: rule.id.clone(),
        cures: cured.iter().map(|one| one.kind.id().to_owned()).collect(),
        headline: fill.text(&rule.headline),
        // A reason with figures of a symptom that was not seen has none.
        reason: match gravest.kind {
            Symptom::Runtime if rule.reason.names().next().is_some() => {
                words(Symptom::Runtime, None).explanation.plain()
            }
            _ => fill.text(&rule.reason),
        },
        settings: Settings(
            rule.settings
                .iter()
                .map(|setting| fill.setting(setting))
                .collect(),
        ),
        manual: rule.manual.as_ref().map(|text| fill.text(text)),
        predicted_speedup: speedup,
        faults_avoided: avoided_share(rule, &cured),
        rss_price: price(findings, rule),
        risk: rule.risk,
        caveat: caveat(
            rule,
            allocator,
            rule.caveat.as_ref().map(|text| fill.text(text)),
        ),
    })
}

/// What can go wrong, and whether the setting was tried on this version.
fn caveat(rule: &Rule, allocator: Option<&Allocator>, caveat: Option<String>) -> Option<String> {
    let untried = allocator
        .filter(|_| !rule.settings.is_empty())
        .and_then(|found| {
            let family = pagewise_families::of(found.kind)?;
            let (tried, version) = (family.tried.as_deref()?, found.version.as_deref()?);
            let is_newer = numbers(version)? > numbers(tried)?;
            is_newer.then(|| say::untried(&family.name, version, tried))
        });
    let all: Vec<String> = caveat.into_iter().chain(untried).collect();
    (!all.is_empty()).then(|| all.join(" "))
}

/// A rule without a price changes when faults happen, not whether: it avoids none for certain.
fn avoided_share(rule: &Rule, cured: &[&Case]) -> f64 {
    let share: f64 = cured.iter().map(|symptom| symptom.share.value).sum();
    if rule.price == Price::None {
        0.0
    } else {
        (share * VANISHING.value).min(1.0)
    }
}

fn predicted(findings: &Findings, rule: &Rule, cured: &[&Case], faults: f64) -> Estimate {
    match rule.effect {
        _ if cured[0].kind == Symptom::Runtime => return ANY_GAIN,
        Some(Effect::Unknown) => return ANY_GAIN,
        Some(Effect::SmallPages) => return by_small_pages(findings, faults),
        Some(Effect::FasterAllocator) => {
            let left = rule.left.unwrap_or(LEFT_TO_ANOTHER);
            return by_another_allocator(cured[0].cost, left);
        }
        Some(Effect::Less) => return by_parts(rule, cured),
        None => {}
    }
    if rule.price == Price::None {
        let cost: f64 = cured.iter().map(|symptom| symptom.cost.value).sum();
        let most = 1.0 / (1.0 - cost.clamp(0.0, 0.95));
        return Estimate {
            value: 1.0,
            low: 1.0,
            high: most,
        };
    }
    let vanishing = VANISHING.scaled(faults);
    let gain = predicted_speedup(&findings.cost, vanishing, kernel_ns(findings, faults));
    with_larger_forks(findings, rule, gain)
}

/// The gain where forks copy the tables of what is kept, too: as much more as it is of what the process
/// usually holds, at most in all forks and at least in none.
#[allow(clippy::cast_precision_loss, reason = "ratios of sizes")]
fn with_larger_forks(findings: &Findings, rule: &Rule, gain: Estimate) -> Estimate {
    let Some(forks) = works::forks(findings) else {
        return gain;
    };
    let kept = kept(findings, Price::Keep).0;
    if rule.price == Price::None || kept == 0 {
        return gain;
    }
    let usual = findings.cost.max_rss.0.saturating_sub(kept).max(LEAST_KEPT);
    let times = kept as f64 / usual as f64;
    let slower = |gain: f64, more: f64| 1.0 / (1.0 / gain + more * times);
    Estimate {
        // When they happen is not known.
        value: slower(gain.value, forks.value / times.max(1.0)),
        low: slower(gain.low, forks.high),
        high: gain.high,
    }
}

/// The prediction if only runs can decide: too wide to be reported.
pub(super) const ANY_GAIN: Estimate = Estimate {
    value: 1.0,
    low: 0.2,
    high: 5.0,
};

/// The share of the time in an allocator's own code that remains with another allocator. Of
/// `hot_malloc` (bench/causes) tcmalloc 2.10, jemalloc 5.3 and mimalloc 2 leave 0.13, 0.18 and
/// 0.25, of `hot_malloc_threads` 0.50, 0.64 and 0.23; other programs may gain nothing.
const LEFT_TO_ANOTHER: Estimate = Estimate {
    value: 0.3,
    low: 0.1,
    high: 0.95,
};

/// Another allocator places blocks differently, which the rest of the program feels, too: of lua-tables
/// (`bench/programs`), whose allocator takes 23 to 28 %, mimalloc, jemalloc and tcmalloc saved 58, 49
/// and 41 %, of perl-hashes with 9 to 12 % mimalloc 18 %, of python-malloc with 14 to 22 % tcmalloc
/// 22 %. At most this many times the allocator's share of the rest, and no more than that of all.
const PLACED_BETTER: f64 = 2.0;
const MOST_SAVED: f64 = 0.7;

fn by_another_allocator(cost: Estimate, left: Estimate) -> Estimate {
    let alone = by_less(cost, left);
    let share = cost.high.min(0.95);
    let saved = (share + PLACED_BETTER * share * (1.0 - share)).min(MOST_SAVED);
    Estimate {
        high: alone.high.max(1.0 / (1.0 - saved)),
        ..alone
    }
}

/// The gain if `left` remains of the time that takes the share `cost`.
fn by_less(cost: Estimate, left: Estimate) -> Estimate {
    let gain = |share: f64, left: f64| 1.0 / (1.0 - share.min(0.95) * (1.0 - left));
    Estimate {
        value: gain(cost.value, left.value),
        low: gain(cost.low, left.high),
        high: gain(cost.high, left.low),
    }
}

/// The gain if a part of each symptom's time is saved.
fn by_parts(rule: &Rule, cured: &[&Case]) -> Estimate {
    let avoids = rule.avoids.unwrap_or(VANISHING);
    let left = rule.left.unwrap_or(LEFT_TO_ANOTHER);
    let mut saved = Estimate::exact(0.0);
    for symptom in cured {
        let part = match symptom.faults > 0.0 {
            true => avoids,
            false => Estimate {
                value: 1.0 - left.value,
                low: 1.0 - left.high,
                high: 1.0 - left.low,
            },
        };
        saved.value += symptom.cost.value * part.value;
        saved.low += symptom.cost.low * part.low;
        saved.high += symptom.cost.high * part.high;
    }
    by_less(saved, Estimate::exact(0.0))
}

/// Whether a process with several threads faulted.
fn has_threads(findings: &Findings) -> bool {
    let mut threads = findings.by_thread.iter();
    threads.any(|thread| thread.tid != thread.pid)
}

/// The result if the used part of each huge page is mapped by small pages instead: the range
/// between the observed share of used memory and twice as much covers the uncertainty of the
/// examination.
fn by_small_pages(findings: &Findings, huge_faults: f64) -> Estimate {
    let cpu = findings.cost.cpu().0.max(1) as f64;
    let used = 1.0
        - findings
            .huge_pages
            .and_then(|pages| pages.zeros)
            .unwrap_or(0.0);
    // Samples show the cost of zeroing, the faults' time what else they take.
    let sampled = findings.account.work("huge").map(|work| work.in_faults);
    let timed = nanos_each(findings, &[Cause::HugePage]).scaled(huge_faults);
    let zeroing = sampled.map_or(timed, |sampled| Estimate {
        high: sampled.high.max(timed.high),
        ..sampled
    });
    let small_pages = (huge_faults * base_pages(findings) * used).max(huge_faults);
    let gain = |saved: f64, spent: f64, left: f64| cpu / (cpu - saved + spent).max(cpu * left);
    Estimate {
        value: gain(
            zeroing.value,
            small_pages * USUAL_FAULT_NS.value,
            LEAST_LEFT.value,
        ),
        low: gain(
            zeroing.low,
            2.0 * small_pages * USUAL_FAULT_NS.high,
            LEAST_LEFT.high,
        ),
        high: gain(
            if zeroing.high < NEARLY_ALL * cpu {
                zeroing.high
            } else {
                cpu
            },
            small_pages * USUAL_FAULT_NS.low,
            LEAST_LEFT.low,
        ),
    }
}

/// From this share of the CPU time on, what is left may be anything.
const NEARLY_ALL: f64 = 0.9;

/// Base pages of a huge page: the entries, of 8 bytes each, of a page table that fills one base page.
/// 512 with pages of 4 KiB, 8192 with AArch64's 64 KiB.
fn base_pages(findings: &Findings) -> f64 {
    match findings.host.page_size / 8 {
        0 => 512.0,
        entries => entries as f64,
    }
}

/// Least share of the CPU time in any prediction: samples cannot show how the last few hundredths
/// are spent.
const LEAST_LEFT: Estimate = Estimate {
    value: 0.02,
    low: 0.004,
    high: 0.1,
};

/// Kernel time of one churned fault, including the cost of freeing its page. System time spread
/// over all faults is an upper bound; if it is close, it is the better figure, because it includes
/// the way into the kernel and back.
fn kernel_ns(findings: &Findings, faults: f64) -> Option<Estimate> {
    findings.time.total_ns?;
    let churn: Vec<Cause> = findings
        .by_cause
        .iter()
        .map(|line| line.key)
        .filter(|cause| cause.is_churn())
        .collect();
    let fault = nanos_each(findings, &churn);
    let released = release_time(findings).scaled(1.0 / faults.max(1.0));
    let bound = findings.cost.system.0 as f64 / (findings.cost.faults() as f64).max(1.0);
    let seen = (fault.value + released.value).min(bound);
    Some(Estimate {
        value: seen + BOUND_WEIGHT * (bound.min(seen * 1.3) - seen),
        low: (fault.low + released.low).min(bound),
        high: bound.min(seen * 1.6),
    })
}

/// Nanoseconds in calls that free or allocate memory. A call may have waited between its begin and
/// end, mostly for a CPU: at most the time seen by samples of CPU time counts, if there are any. Of
/// calls that were not timed only samples tell.
fn release_time(findings: &Findings) -> Estimate {
    let calls = || {
        let all = findings.time.mm_calls.iter();
        all.filter(|cost| cost.call != "mprotect" && cost.calls > 0)
    };
    let timed: f64 = calls().filter_map(|cost| Some(cost.time?.0 as f64)).sum();
    let sampled = findings.account.entry("call.map");
    if let Some(sampled) = sampled.filter(|_| calls().any(|cost| cost.time.is_none())) {
        return sampled;
    }
    let sampled = sampled.unwrap_or(Estimate::exact(f64::INFINITY));
    Estimate {
        value: timed.min(sampled.value),
        low: (timed * 0.8).min(sampled.low),
        high: timed.min(sampled.high),
    }
}

/// Additional resident memory at most: from the usual resident memory up to its peak, plus what the
/// rule adds.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a size that is told in three digits"
)]
fn price(findings: &Findings, rule: &Rule) -> Bytes {
    let grown = findings.cost.max_rss.0 as f64 * (rule.memory_times.unwrap_or(1.0) - 1.0);
    kept(findings, rule.price) + Bytes(grown as u64 + rule.memory_more.unwrap_or(0))
}

fn kept(findings: &Findings, price: Price) -> Bytes {
    let peak = findings.cost.max_rss;
    let mut readings: Vec<Bytes> = findings
        .timeline
        .points
        .iter()
        .map(|point| point.rss)
        .filter(|rss| rss.0 > 0)
        .collect();
    readings.sort_unstable();
    let usual = readings
        .get(readings.len() / 4)
        .copied()
        .unwrap_or_default();
    match price {
        Price::None => Bytes(0),
        Price::Keep => peak - usual,
        Price::Peak => (peak - usual) + Bytes(peak.0 / 8),
    }
}

/// Values for placeholders.
struct Filling<'a> {
    freed: Bytes,
    /// Size that most stretches do not exceed.
    usual: Bytes,
    share: f64,
    keep: u64,
    version: &'a str,
    library: &'a str,
    join: Option<&'a str>,
    allocator: Option<&'a Allocator>,
    singly: Option<SinglePages>,
    node: Option<FittingNode>,
}

impl<'a> Filling<'a> {
    fn new(
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
            singly: None,
            node: None,
        }
    }

    fn text(&self, template: &Template) -> String {
        let (freed, stretches) = match self.freed {
            Bytes(0) => (say::any_size(), say::stretches()),
            size if self.usual.0 > 0 && self.usual.0 < size.0 / SPREAD => {
                (size.to_string(), say::stretches_mostly(self.usual))
            }
            size => (size.to_string(), say::stretches_up_to(size)),
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
            let family = pagewise_families::of(one.kind)?;
            (family.prefixed.as_deref() == Some(name)).then_some(one.variable.as_deref()?)
        });
        own.unwrap_or(name).to_owned()
    }

    fn setting(&self, setting: &SettingTemplate) -> Setting {
        let change = |variable: Option<&str>, value: &Template| match variable {
            Some(name) => self.joined(name, self.text(value)),
            None => self.text(value),
        };
        setting.filled(|name| self.read_as(name), change)
    }
}
