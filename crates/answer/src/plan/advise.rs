//! The rules that match, filled with this run's numbers.

use super::callers::WORTH_TRYING;
use super::case::Case;
use super::filling::Filling;
use super::fitting::numbers;
use super::kernel::is_privileged;
use super::known::{self, Sure};
use super::prediction::{avoided_share, predicted, price};
use super::rules::{Effect, Rule, Rules};
use super::symptom::Symptom;
use super::wording::words;
use super::{Surroundings, grade, heap_limit, numa, phrases, reads, writers};
use pagewise_model::advice::{Advice, Settings};
use pagewise_model::allocator::Allocator;
use pagewise_model::findings::Findings;
use std::cmp::Ordering;

/// A setting comes before manual steps for the costliest finding if the findings it fixes cost at
/// least this fraction of that.
const LEADING: f64 = 0.25;
/// Manual steps for findings that cost less than this fraction of the costliest one are left out.
const BESIDE: f64 = 0.1;
/// Another allocator is advised if the current one takes at least this share of the CPU time, and only
/// tried if it may take less: among the programs of `bench/programs` with 9 to 12 %, one gained 14 %, one
/// nothing, and one lost 12 %; one with 17 to 21 % (docs/notes/causes.md) lost 22 to 36 %.
const SURELY_HOT: f64 = 0.25;
/// A predicted speed-up below this is not worth a trial, nor is the prediction sure enough.
const WORTHWHILE: f64 = 1.05;
/// Settings of which too little is known are advised from this predicted speed-up on, and tried below it: of three programs with ×1.05
/// to ×1.08 (docs/notes/causes.md) none gained more than 1 %.
const SURELY_WORTHWHILE: f64 = 1.1;

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
        .filter(|rule| !rule.trial)
        .filter_map(|rule| Some((rule, from_rule(findings, symptoms, rule, around)?)))
        .filter(|(rule, one)| one.settings.0.is_empty() || is_sure(findings, symptoms, rule, one))
        .map(|(_, one)| one)
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

/// Whether a setting is advised without a run: by what it gained in such programs, else by the model.
fn is_sure(findings: &Findings, symptoms: &[Case], rule: &Rule, advice: &Advice) -> bool {
    let cause = advice.cures.first().map_or("", String::as_str);
    match known::sureness(findings, rule, cause) {
        Sure::Gains => true,
        Sure::MayNot => false,
        Sure::Unknown => {
            let gain = advice.predicted_speedup.value;
            gain >= SURELY_WORTHWHILE && !may_harm(rule, symptoms)
        }
    }
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
fn may_harm(rule: &Rule, symptoms: &[Case]) -> bool {
    let hot = symptoms
        .iter()
        .find(|one| one.kind == Symptom::HotAllocator);
    rule.effect == Some(Effect::FasterAllocator)
        && !rule.settings.is_empty()
        && hot.is_some_and(|hot| hot.cost.low < SURELY_HOT)
}

/// Whether what writes to the pages that forked processes share is what the rule is about.
fn is_written_by(findings: &Findings, symptoms: &[Case], rule: &Rule) -> bool {
    if rule.written_by.is_none() && rule.unless_written_by.is_empty() {
        return true;
    }
    let copies = symptoms.iter().any(|one| one.kind == Symptom::ForkCopies);
    let writer = writers::writer(findings).filter(|_| copies);
    let is_wanted = rule.written_by.is_none() || rule.written_by == writer;
    is_wanted && !writer.is_some_and(|writer| rule.unless_written_by.contains(&writer))
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
    if !heap_limit::is_near(findings, rule, allocator) {
        return None;
    }
    let other_rights = |wanted: bool| wanted != is_privileged(findings);
    if rule.privileged.is_some_and(other_rights) {
        return None;
    }
    if rule.needs_threads && !has_threads(findings) {
        return None;
    }
    if !is_written_by(findings, symptoms, rule) {
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
    let by_model = predicted(findings, rule, &cured, faults);
    let speedup = match gravest.kind {
        Symptom::Runtime => by_model,
        _ => known::with(findings, rule, gravest.kind.id(), by_model),
    };
    let is_costly = || {
        grade::severity(findings, gravest)
            .is_some_and(|severity| severity > pagewise_model::findings::Severity::Note)
    };
    let gains = speedup.value >= WORTHWHILE && speedup.low > 1.0;
    let worth_it = match rule.effect {
        _ if gravest.kind == Symptom::Runtime => true,
        _ if rule.settings.is_empty() || rule.trial => is_costly(),
        // How much of it is avoided is known only from a few programs.
        Some(Effect::Less) => match known::sureness(findings, rule, gravest.kind.id()) {
            // A short run gains as well, though it does not lose much.
            Sure::Gains => gains && findings.cost.cpu() >= WORTH_TRYING,
            Sure::MayNot => speedup.high >= WORTHWHILE && is_costly(),
            Sure::Unknown => gains && is_costly(),
        },
        _ => gains,
    };
    if !worth_it {
        return None;
    }
    let mut fill = Filling::new(findings, rule, &cured, allocator, around);
    (fill.singly, fill.node) = (singly, node);
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
        rss_price: price(findings, rule, &cured),
        risk: rule.risk,
        caveat: caveat(
            rule,
            allocator,
            rule.caveat.as_ref().map(|text| fill.text(text)),
            known::sentence(findings, rule, gravest.kind.id()),
        ),
    })
}

/// What can go wrong, whether the setting was tried on this version, and on such programs.
fn caveat(
    rule: &Rule,
    allocator: Option<&Allocator>,
    caveat: Option<String>,
    known: Option<String>,
) -> Option<String> {
    let untried = allocator
        .filter(|_| !rule.settings.is_empty())
        .and_then(|found| {
            let family = pagewise_families::family(found.kind)?;
            let (tried, version) = (family.tried.as_deref()?, found.version.as_deref()?);
            let is_newer = numbers(version)? > numbers(tried)?;
            is_newer.then(|| phrases::untried(&family.name, version, tried))
        });
    let all: Vec<String> = caveat.into_iter().chain(untried).chain(known).collect();
    (!all.is_empty()).then(|| all.join(" "))
}

/// Whether a process with several threads faulted.
fn has_threads(findings: &Findings) -> bool {
    let mut threads = findings.by_thread.iter();
    threads.any(|thread| thread.tid != thread.pid)
}
