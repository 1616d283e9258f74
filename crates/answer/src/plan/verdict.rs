//! The answer in one or two sentences.

use super::elapsed::{SHORT, is_short, kinds, mostly_waits, waits};
use super::grade::{is_vague, may_be_costly, seconds};
use super::kernel::is_privileged;
use super::open::Open;
use super::symptom::Symptom;
use super::{activity, kernel, leads, phrases};
use crate::page_sizes;
use pagewise_compare::{Criteria, promised, tried_once};
use pagewise_model::account::TimePart;
use pagewise_model::advice::Advice;
use pagewise_model::findings::{Diagnosis, Findings, Severity};
use pagewise_model::proof::{Clock, Comparison, Proof, Verdict};
use pagewise_model::quantity::{factor_digits, percent, percent_seen};
use pagewise_model::ratio::Ratio;
use pagewise_model::units::Estimate;

/// The verdict: what is wrong and whether something can be done; `trials` are what a proof tries in
/// addition to the advice.
pub(super) fn verdict(findings: &Findings, trials: &[Advice]) -> String {
    let gravest = findings.diagnoses.first();
    match gravest.filter(|gravest| gravest.severity >= Severity::Costly) {
        Some(gravest) if is_beside_waits(findings, gravest) => {
            phrases::beside_waits(waiting(findings), trouble(gravest))
        }
        Some(gravest) => {
            let remedy = remedy(findings, leads::curable(findings, gravest, trials), trials);
            let troubles = format!("{} {remedy}", troubles(findings));
            match leads::is_beside_files(findings, gravest) {
                true => activity::sentence(findings, Some(troubles)),
                false => troubles,
            }
        }
        _ if mostly_waits(findings) => waiting(findings),
        _ => match (computing_and(findings, trials), doubtful(findings)) {
            (Some(message), _) => message,
            (None, _) if !leads::large_in_little(findings).is_empty() => {
                in_little(findings, trials)
            }
            (None, Some(doubtful)) => may_be(findings, doubtful, trials),
            (None, None) => nothing_costly(findings),
        },
    }
}

fn nothing_costly(findings: &Findings) -> String {
    let mut advised = findings.advice.iter();
    match () {
        () if advised.any(|advice| !advice.settings.0.is_empty()) => beside_advice(findings),
        () if findings.cost.cpu() < SHORT => short(findings),
        () => activity::sentence(findings, None),
    }
}

/// Whether the finding costs so little of the elapsed time that waiting comes first.
fn is_beside_waits(findings: &Findings, gravest: &Diagnosis) -> bool {
    let wall = findings.cost.wall.as_secs_f64();
    mostly_waits(findings) && seconds(findings, gravest) < BESIDE_WAITS * wall
}

const BESIDE_WAITS: f64 = 0.1;

/// Advice against low costs, as far as they are known.
fn beside_advice(findings: &Findings) -> String {
    let advice = by(findings, findings.advice.first(), &[]);
    if Open::new(findings, &findings.diagnoses).bounds_memory() {
        return phrases::little(advice);
    }
    let best = findings.advice.first();
    let mut found = findings.diagnoses.iter();
    let cured = found.find(|one| best.is_some_and(|best| best.cures.contains(&one.id)));
    match cured {
        Some(cured) => phrases::and_advice(trouble(cured), advice),
        None => advice,
    }
}

/// A program with little CPU time.
fn short(findings: &Findings) -> String {
    let (cpu, wall) = (findings.cost.cpu(), findings.cost.wall);
    if is_short(findings) {
        return phrases::short(cpu, wall);
    }
    let beside = |part: &&TimePart| part.id != ON_CPU;
    let kinds = kinds(findings, findings.account.elapsed.iter().filter(beside));
    match kinds.as_str() {
        "" => phrases::short_waits_unseen(cpu, wall),
        kinds => phrases::short_waits(cpu, wall, kinds),
    }
}

/// The part of the elapsed time that is not waiting.
const ON_CPU: &str = "cpu";

fn waiting(findings: &Findings) -> String {
    let cost = &findings.cost;
    let whom = kernel::who(findings);
    let of_it = kinds(findings, waits(findings));
    let next = waits(findings).find_map(|part| part.next.as_deref());
    let next = match next {
        Some(next) => next.replace("{who}", &whom),
        None => phrases::waits_next(whom),
    };
    let gravest = findings.diagnoses.first();
    let costly = gravest.is_some_and(|gravest| gravest.severity >= Severity::Costly);
    match costly || !Open::new(findings, &findings.diagnoses).bounds_cpu() {
        true => phrases::waits(cost.wall, of_it, cost.cpu(), next),
        false => phrases::waits_little_memory(cost.wall, of_it, cost.cpu(), next),
    }
}

/// The finding that may cost most, if it is too little known to call it costly.
fn doubtful(findings: &Findings) -> Option<&Diagnosis> {
    let mut found = findings.diagnoses.iter();
    let doubtful = found.find(|one| may_be_costly(findings, one));
    doubtful.filter(|_| !activity::mostly_computes(findings))
}

/// What may be wrong, and what would settle whether it is.
fn may_be(findings: &Findings, doubtful: &Diagnosis, trials: &[Advice]) -> String {
    let trouble = trouble(doubtful);
    let sees_kernel = findings.account.sees_kernel();
    let settles = match doubtful.share_of_elapsed.is_some() || sees_kernel {
        true => phrases::settled_by_time(),
        false => phrases::settled_by_samples(),
    };
    let cured = |one: &Advice| !one.settings.0.is_empty() && one.cures.contains(&doubtful.id);
    match findings.advice.first().is_some_and(cured) || findings.proof.is_some() {
        true => format!(
            "{trouble} {settles} {}",
            by_advice(findings, doubtful, trials)
        ),
        false => format!("{trouble} {settles}"),
    }
}

/// That a program computes, and what stands beside it; `None` where nothing does.
fn computing_and(findings: &Findings, trials: &[Advice]) -> Option<String> {
    let beside = leads::named(findings)
        .next()
        .filter(|_| !is_short(findings) && activity::mostly_computes(findings))?;
    let beside = leads::curable(findings, beside, trials);
    let troubles = troubles(findings);
    let mut known = findings.advice.iter().chain(trials);
    let is_settled = known.any(|one| !one.settings.0.is_empty() && one.cures.contains(&beside.id));
    let message = match is_settled || findings.proof.is_some() {
        true => format!("{troubles} {}", by_advice(findings, beside, trials)),
        false => troubles,
    };
    Some(activity::sentence(findings, Some(message)))
}

/// What takes most of a program that uses little CPU time.
fn in_little(findings: &Findings, trials: &[Advice]) -> String {
    let troubles = troubles(findings);
    let of_little = phrases::of_little(findings.cost.cpu());
    let largest = leads::named(findings).next();
    let about = largest.map(|largest| leads::curable(findings, largest, trials));
    let cured = |one: &Advice| about.is_some_and(|about| one.cures.contains(&about.id));
    match about.filter(|_| findings.advice.iter().any(cured) || findings.proof.is_some()) {
        Some(about) => format!(
            "{troubles} {of_little} {}",
            by_advice(findings, about, trials)
        ),
        None => format!("{troubles} {of_little}"),
    }
}

/// The findings that lead: the first, and those about as large.
fn troubles(findings: &Findings) -> String {
    let mut named = leads::named(findings);
    let first = named.next().map(|first| {
        let is_work = first.id == Symptom::KernelWork.id();
        let rows = is_work
            .then(|| activity::work_of_kernel(findings))
            .flatten();
        rows.unwrap_or_else(|| trouble(first))
    });
    let first = first.unwrap_or_default();
    let others: Vec<String> = named.map(as_much).collect();
    match others.is_empty() {
        true => first,
        false => format!("{first} {}", phrases::as_much(others.join("; "))),
    }
}

/// `First use of new memory (19 % of the CPU time)`
fn as_much(one: &Diagnosis) -> String {
    let of_elapsed = one
        .share_of_elapsed
        .map(|share| (share, phrases::elapsed_time()));
    let of = of_elapsed.or_else(|| one.share_of_cpu.map(|share| (share, phrases::cpu_time())));
    match of {
        Some((share, of)) => phrases::one_as_much(&one.headline, percent(share.value), of),
        None => one.headline.clone(),
    }
}

fn trouble(gravest: &Diagnosis) -> String {
    let (share, of) = match gravest.share_of_elapsed {
        Some(share) => (Some(share), phrases::elapsed_time()),
        None => (gravest.share_of_cpu, phrases::cpu_time()),
    };
    match share {
        Some(share) if is_vague(share) => {
            let (low, high) = (percent(share.low), percent(share.high));
            phrases::takes_between(&gravest.headline, low, high, of)
        }
        Some(share) => phrases::takes(&gravest.headline, percent(share.value), of),
        None => phrases::is(&gravest.headline),
    }
}

/// What can be done about the gravest finding.
fn remedy(findings: &Findings, gravest: &Diagnosis, trials: &[Advice]) -> String {
    let cured = findings
        .advice
        .iter()
        .any(|one| one.cures.contains(&gravest.id));
    match Symptom::named(&gravest.id) {
        _ if findings.proof.is_some() || cured => by_advice(findings, gravest, trials),
        Some(Symptom::KernelWork) => elsewhere(findings),
        Some(Symptom::KernelUnexplained) if is_privileged(findings) => phrases::seen_by_calls(),
        Some(Symptom::KernelUnexplained) => phrases::seen_elsewhere(),
        _ => by_advice(findings, gravest, trials),
    }
}

/// The kernel's time is spent on something other than memory.
fn elsewhere(findings: &Findings) -> String {
    match findings.time.share_of_cpu {
        Some(share) => phrases::not_the_allocators(percent_seen(&share)),
        None => phrases::not_the_allocators_at_all(),
    }
}

/// What can be done about a finding.
fn by_advice(findings: &Findings, about: &Diagnosis, trials: &[Advice]) -> String {
    let about_it = |one: &&Advice| one.cures.contains(&about.id);
    // A runtime's heap settings may change whatever takes CPU time.
    let is_outside = Symptom::named(&about.id).is_some_and(Symptom::is_outside_heaps);
    let of_runtime = |one: &&Advice| {
        let mut cures = one.cures.iter();
        about.share_of_elapsed.is_none()
            && !is_outside
            && cures.any(|id| id == Symptom::Runtime.id())
    };
    let may_help = |one: &&Advice| about_it(one) || of_runtime(one);
    let trials: Vec<Advice> = trials.iter().filter(may_help).cloned().collect();
    let best = findings.advice.iter().find(about_it);
    match (
        findings.proof.is_some(),
        Symptom::named(&about.id),
        &*trials,
    ) {
        (false, Some(Symptom::UnknownFaults), []) => phrases::by_cause(),
        (false, Some(Symptom::UnknownFaults), trials) => {
            phrases::by_whom_trials(phrases::by_cause(), named(trials))
        }
        (_, _, trials) => by(findings, best, trials),
    }
}

/// What a piece of advice or trials do.
fn by(findings: &Findings, best: Option<&Advice>, trials: &[Advice]) -> String {
    // A proof that did not run gives the reason, and does not replace a prediction.
    if let Some(proof) = findings
        .proof
        .as_ref()
        .filter(|proof| !proof.comparisons.is_empty())
    {
        return by_proof(proof, &findings.advice);
    }
    match best {
        Some(advice) if !advice.settings.0.is_empty() => {
            let also = |trial: &&Advice| trial.cures.iter().any(|id| advice.cures.contains(id));
            let others: Vec<Advice> = trials.iter().filter(also).cloned().collect();
            match others.is_empty() {
                true => by_settings(advice),
                false => phrases::beside_trials(by_settings(advice), named(&others)),
            }
        }
        Some(advice) if advice.rule.starts_with(UNSEEN) => match trials {
            [] => phrases::by_whom(),
            trials => phrases::by_whom_trials(phrases::by_whom(), named(trials)),
        },
        Some(advice) if is_of_a_limit(advice) => phrases::by_limit(),
        by_hand if !trials.is_empty() => {
            let trials = phrases::trials(named(trials));
            match by_hand {
                Some(_) => phrases::by_hand_beside(trials),
                None => trials,
            }
        }
        Some(advice) if is_cheaper_in_huge_pages(findings, advice) => {
            phrases::by_hand_or_huge_pages()
        }
        Some(_) => phrases::by_hand(),
        None => match failed(findings) {
            arms if arms.is_empty() => phrases::no_setting(),
            arms => phrases::fails_with(arms),
        },
    }
}

/// Whether the fix is a larger limit, which is a setting too, but not one of the program.
fn is_of_a_limit(advice: &Advice) -> bool {
    let mut cured = advice.cures.iter();
    let of_limits = [Symptom::Limit.id(), Symptom::Killed.id()];
    advice.settings.0.is_empty() && cured.any(|id| of_limits.contains(&id.as_str()))
}

/// The arms of the proof with which the command failed.
fn failed(findings: &Findings) -> String {
    let arms = findings.proof.iter().flat_map(|proof| &proof.arms);
    let failed = arms.filter(|arm| arm.failed.is_some());
    listed(
        &failed
            .map(|arm| format!("'{}'", arm.name))
            .collect::<Vec<_>>(),
    )
}

/// The start of the names of the rules for memory mapped by the program or its allocator, which was not seen.
const UNSEEN: &str = "own.unseen";

/// Whether this is about fresh pages, and huge ones would avoid a relevant number of faults.
fn is_cheaper_in_huge_pages(findings: &Findings, advice: &Advice) -> bool {
    let fresh = |id: &String| Symptom::named(id).is_some_and(Symptom::is_fresh_memory);
    let would_help = findings
        .diagnoses
        .iter()
        .any(|one| one.id == page_sizes::HELP);
    would_help && advice.cures.iter().all(fresh)
}

/// `'one size' and 'serial collector'`: the arms of a proof by their names.
fn named(trials: &[Advice]) -> String {
    let names: Vec<String> = trials
        .iter()
        .map(|trial| format!("'{}'", trial.name()))
        .collect();
    listed(&names)
}

fn listed(names: &[String]) -> String {
    match names.split_last() {
        Some((last, others)) if !others.is_empty() => {
            format!("{}{}{last}", others.join(", "), phrases::and())
        }
        _ => names.concat(),
    }
}

/// The results of the runs replace the prediction.
fn by_proof(proof: &Proof, advice: &[Advice]) -> String {
    let Some(name) = &proof.winner else {
        return unproved(proof);
    };
    let settings = advice
        .iter()
        .find(|one| one.name() == *name)
        .map_or(1, |one| one.settings.0.len());
    let measured = proof.comparisons.iter().find(|one| one.arm == *name);
    let shown = proof.confirmation.as_ref().or(measured);
    let leading = shown.map(|shown| match shown.leading() {
        (gain, Clock::Wall) => (gain, phrases::elapsed_time()),
        (gain, Clock::Cpu) => (gain, phrases::cpu_time()),
    });
    match leading.and_then(|(gain, of)| faster(gain, &of, Source::Measured)) {
        Some(gain) => phrases::proved(count(settings), gain),
        None => phrases::proved_faster(count(settings)),
    }
}

/// The results of runs that proved nothing.
fn unproved(proof: &Proof) -> String {
    let tried: Vec<&Comparison> = proof.comparisons.iter().filter(|c| c.pairs > 0).collect();
    let arms = tried.len();
    let likely = tried
        .iter()
        .filter_map(|one| promised(one, arms, &Criteria::default()).map(|words| (one, words)))
        .max_by(|(a, _), (b, _)| a.cpu_speedup.value.total_cmp(&b.cpu_speedup.value));
    let settled = |one: &&Comparison| one.verdict != Verdict::Undecided;
    match likely {
        _ if tried.is_empty() => proof.summary.clone(),
        _ if tried.iter().all(|one| one.verdict == Verdict::NotReached) => phrases::not_reached(),
        Some((one, gain)) => phrases::with_arm(&one.arm, gain),
        None if tried.iter().all(settled) => phrases::not_faster(),
        None => match tried_once(tried.iter().copied()) {
            Some(one) => phrases::once(&one.arm, factor_digits(one.cpu_speedup.value)),
            None => phrases::open(),
        },
    }
}

fn count(settings: usize) -> String {
    match settings {
        1 => phrases::one_setting(),
        2 => phrases::two_settings(),
        n => phrases::settings(n),
    }
}

fn by_settings(advice: &Advice) -> String {
    let settings = count(advice.settings.0.len());
    match faster(
        &advice.predicted_speedup,
        &phrases::cpu_time(),
        Source::Predicted,
    ) {
        Some(gain) => phrases::predicted(settings, gain),
        None => phrases::not_predicted(settings),
    }
}

/// The source of a gain.
#[derive(Clone, Copy)]
enum Source {
    Measured,
    Predicted,
}

/// `about 3.2 times as fast in CPU time (predicted 2.8 to 3.6)`; at most what the interval
/// supports, `None` if that is nothing.
fn faster(gain: &Estimate, of: &str, source: Source) -> Option<String> {
    match Ratio::from_estimate(gain) {
        Ratio::Measured(gain) => {
            let [times, low, high] = [gain.value, gain.low, gain.high].map(factor_digits);
            Some(match source {
                Source::Measured => phrases::faster_measured(times, of, low, high),
                Source::Predicted => phrases::faster_predicted(times, of, low, high),
            })
        }
        Ratio::AtLeast(least) if least >= LEAST_TOLD => {
            let times = factor_digits(least);
            Some(match source {
                Source::Measured => phrases::faster_than_measured(times, of),
                Source::Predicted => phrases::faster_than_predicted(times, of),
            })
        }
        _ => None,
    }
}

/// "More than 1.0 times as fast" would be meaningless.
const LEAST_TOLD: f64 = 1.2;
