//! What a program does if no problem takes its time: computing, work in the kernel, waiting.

use super::brief::brief;
use super::elapsed::{kinds, waits};
use super::open::Open;
use super::symptom::Symptom;
use super::wording::words;
use super::{kernel, phrases};
use crate::page_sizes;
use pagewise_faults::account::UNEXPLAINED;
use pagewise_model::account::{ALLOCATOR, CALLOC, COLLECTOR, LOCKS, TimePart};
use pagewise_model::findings::{Diagnosis, Findings, Severity};
use pagewise_model::quantity::percent;

/// A program is computing if its own code takes this share of the CPU time.
const MOSTLY: f64 = 0.5;
/// … and does hardly anything else from this one on.
const NEARLY_ALL: f64 = 0.8;
/// Other parts of the CPU time are reported from this share on, up to a limit.
const WORTH_TELLING: f64 = 0.05;
const MOST_PARTS: usize = 2;
/// Most sentences of a verdict.
const MOST_SENTENCES: usize = 3;
/// Share of the elapsed time from which waiting for a CPU is reported.
const BUSY_MACHINE: f64 = 0.1;
/// "One thread at a time" is reported if the program is on a CPU for this share of the elapsed
/// time, and uses at most this multiple of it in CPU time.
const MOST_OF_THE_TIME: f64 = 0.8;
const ONE_CPU: f64 = 1.05;

/// What the program does, in a few sentences, and how much of it is unexplained; behind the first, what is
/// told `beside` it.
pub(super) fn sentence(findings: &Findings, beside: Option<String>) -> String {
    let open = Open::new(findings, &findings.diagnoses);
    let was_sampled = !findings.account.cpu.is_empty();
    let kernels = kernels(findings);
    let mut sentences = match (own(findings), findings.account.samples) {
        // The account has the rest of what is beside its computing.
        (Some(own), _) if beside.is_some() && mostly_computes(findings) => {
            vec![computes(findings, own, String::new(), false)]
        }
        (Some(own), _) if beside.is_some() => vec![computes(findings, own, kernels, false)],
        (Some(own), _) => vec![computes(findings, own, kernels, open.is_little())],
        (None, _) if !kernels.is_empty() => vec![phrases::is_of_kernel(kernels)],
        (None, 0) if open.is_little() => vec![phrases::nothing_from_faults()],
        (None, _) if open.is_little() => vec![phrases::nothing()],
        (None, _) => vec![not_seen(findings)],
    };
    if let Some(beside) = beside {
        // The account has the rest.
        sentences.push(beside);
        return sentences.join(" ");
    }
    let waiting = open
        .of_waits()
        .map(|share| phrases::waits_too(percent(share), kinds(findings, waits(findings))));
    sentences.extend(waiting);
    sentences.extend(open.sentences(was_sampled));
    sentences.extend(wants_a_cpu(findings));
    sentences.extend(one_at_a_time(findings));
    sentences.truncate(MOST_SENTENCES);
    sentences.join(" ")
}

/// What the program does, where the kernel's work for it is the trouble: the rows of the account, if there
/// are any.
pub(super) fn work_of_kernel(findings: &Findings) -> Option<String> {
    let kernels = kernels(findings);
    if kernels.is_empty() {
        return None;
    }
    Some(match own(findings) {
        None => phrases::is_of_kernel(kernels),
        Some(own) if mostly_computes(findings) => {
            phrases::sentence(spends(findings, own, &kernels))
        }
        Some(own) => computes(findings, own, kernels, false),
    })
}

/// The program's own code as a finding, with its functions.
pub(super) fn computing(findings: &Findings) -> Option<Diagnosis> {
    let own = own(findings)?;
    let share = share(findings, own);
    let functions = own.places.iter().zip(&own.shares);
    let lines = functions.map(|(name, share)| phrases::own_function(percent(*share), name));
    let values = [("share", percent(share)), ("who", kernel::who(findings))];
    Some(words(Symptom::Computing, None).found(Severity::Healthy, &values, lines.collect()))
}

/// Whether its own code certainly takes nearly all of the CPU time.
pub(super) fn surely_computes(findings: &Findings) -> bool {
    let cpu = findings.cost.cpu().0.max(1) as f64;
    own(findings).is_some_and(|own| own.time.low / cpu >= NEARLY_ALL)
}

/// Whether its own code takes most of the CPU time.
pub(super) fn mostly_computes(findings: &Findings) -> bool {
    own(findings).is_some_and(|own| share(findings, own) >= MOSTLY)
}

/// Whether most of its own code has no names.
pub(super) fn is_mostly_unnamed(findings: &Findings) -> bool {
    let Some(own) = own(findings) else {
        return false;
    };
    let functions = own.places.iter().zip(&own.shares);
    let unnamed = functions.filter(|(name, _)| name.starts_with("[unknown in "));
    let unnamed: f64 = unnamed.map(|(_, share)| share).sum();
    unnamed >= 0.5 * share(findings, own)
}

fn own(findings: &Findings) -> Option<&TimePart> {
    findings.account.cpu.iter().find(|part| part.id == "own")
}

fn share(findings: &Findings, part: &TimePart) -> f64 {
    part.time.value / findings.cost.cpu().0.max(1) as f64
}

/// `, most of it in main (40 %)`.
fn functions(own: &TimePart) -> String {
    let shares = own.places.iter().zip(&own.shares);
    let functions: Vec<String> = shares
        .map(|(name, share)| phrases::function(brief(name), percent(*share)))
        .collect();
    match functions.is_empty() {
        true => String::new(),
        false => phrases::functions(functions.join(", ")),
    }
}

/// `; also 8.1 % reading (pread64)`.
fn also(kernels: &str) -> String {
    match kernels.is_empty() {
        true => String::new(),
        false => phrases::beside(kernels),
    }
}

fn spends(findings: &Findings, own: &TimePart, kernels: &str) -> String {
    phrases::spends(percent(share(findings, own)), functions(own)) + &also(kernels)
}

fn computes(findings: &Findings, own: &TimePart, kernels: String, is_all: bool) -> String {
    let functions = functions(own);
    let own_share = share(findings, own);
    let beside = also(&kernels);
    let of_kernel: Vec<&TimePart> = others(findings).filter(|part| is_kernels(part)).collect();
    let kernel_share: f64 = of_kernel.iter().map(|part| share(findings, part)).sum();
    let what = match () {
        () if own_share >= MOSTLY => phrases::computes(percent(own_share), functions) + &beside,
        () if kernel_share >= MOSTLY => {
            let kinds = listed(findings, of_kernel.into_iter());
            phrases::is_mostly_kernel(kinds, percent(own_share), functions)
        }
        () => spends(findings, own, &kernels),
    };
    match is_all {
        true if findings.diagnoses.iter().any(page_sizes::is_note) => of_page_sizes(findings, what),
        true => phrases::nothing_of_memory(what),
        false => phrases::sentence(what),
    }
}

/// What only runs or counters can show about page sizes, with the arm that a proof would try.
fn of_page_sizes(findings: &Findings, what: String) -> String {
    let enabled = findings.host.settings.get("thp.enabled");
    match enabled.and_then(|enabled| page_sizes::other_size(findings, enabled)) {
        Some((trial, _)) if !findings.collection.attached && findings.proof.is_none() => {
            phrases::nothing_of_faults_trial(what, trial)
        }
        _ => phrases::nothing_of_faults(what),
    }
}

/// `8.1 % reading (pread64) and 6.5 % forcing files to disk`: the work outside the program's own
/// code.
fn kernels(findings: &Findings) -> String {
    listed(findings, others(findings))
}

fn listed<'a>(findings: &Findings, parts: impl Iterator<Item = &'a TimePart>) -> String {
    let message: Vec<String> = parts
        .take(MOST_PARTS)
        .map(|part| phrases::part(percent(share(findings, part)), &part.label))
        .collect();
    message.join(&phrases::and())
}

/// Whether a part of the CPU time is what the kernel does for the program.
fn is_kernels(part: &TimePart) -> bool {
    ![ALLOCATOR, COLLECTOR, LOCKS, CALLOC, "observer"].contains(&&*part.id)
}

/// What is not the program's own code and takes a share worth telling, largest first.
fn others(findings: &Findings) -> impl Iterator<Item = &TimePart> {
    let parts = || findings.account.cpu.iter();
    let of_calls = parts().filter(|part| part.id.starts_with("call."));
    let largest = of_calls.map(|part| part.time.value).fold(0.0, f64::max);
    let says_little = move |part: &TimePart| {
        part.id == "gate" && part.time.value < kernel::MANY_TINY_CALLS * largest
    };
    parts().filter(move |part| {
        !["own", UNEXPLAINED].contains(&&*part.id)
            && !says_little(part)
            && share(findings, part) >= WORTH_TELLING
    })
}

fn not_seen(findings: &Findings) -> String {
    let cost = &findings.cost;
    let share = cost.system.0 as f64 / cost.cpu().0.max(1) as f64;
    match share >= WORTH_TELLING {
        true => phrases::not_seen(cost.cpu(), cost.system, percent(share)),
        false => phrases::not_sampled(),
    }
}

/// Share of the elapsed time of one of its parts.
fn of_elapsed(findings: &Findings, id: &str) -> f64 {
    let mut parts = findings.account.elapsed.iter().filter(|part| part.id == id);
    let nanos = parts.next().map_or(0.0, |part| part.time.value);
    nanos * 1e-9 / findings.cost.wall.as_secs_f64().max(1e-9)
}

fn wants_a_cpu(findings: &Findings) -> Option<String> {
    let share = of_elapsed(findings, "ready");
    (share >= BUSY_MACHINE).then(|| phrases::wants_a_cpu(percent(share)))
}

/// One thread at a time, although other CPUs were available.
fn one_at_a_time(findings: &Findings) -> Option<String> {
    let cost = &findings.cost;
    let used = cost.cpu().as_secs_f64() / cost.wall.as_secs_f64().max(1e-9);
    let is_one = (MOST_OF_THE_TIME..=ONE_CPU).contains(&used);
    let others = findings.host.cpus > 1 && of_elapsed(findings, "ready") < BUSY_MACHINE;
    let message = is_one && others && !findings.collection.whole_machine;
    message.then(|| phrases::one_at_a_time(findings.host.cpus))
}
