//! Tests advice: the command with and without the advised settings, and with others that may help.

use super::{Candidate, Load, Options, prove};
use super::{larger_limit, paged};
use crate::Listener;
use crate::explain::{OwnLibrary, trials};
use anyhow::Result;
use pagewise_answer::page_sizes;
use pagewise_answer::plan::{Symptom, proved};
use pagewise_compare::proof::{cold, driven, not_run, predictions};
use pagewise_linux::process::{Finished, Input, interrupt};
use pagewise_model::advice::{Advice, Setting};
use pagewise_model::findings::{Findings, Severity};
use pagewise_model::proof::Proof;
use pagewise_model::secrets;
use pagewise_model::units::Nanos;
use std::ffi::OsString;
use std::time::Duration;

/// The command to run repeatedly.
pub struct Request<'a> {
    /// The observed command.
    pub command: &'a [OsString],
    /// Standard input of each run.
    pub input: Input,
    /// The load that drives it, if it is a server.
    pub load: Option<&'a Load>,
    /// Time for all runs.
    pub budget: Duration,
    /// Our library, which a proof may try.
    pub library: OwnLibrary,
}

/// Receivers of messages.
pub struct Listeners<'a> {
    /// Messages on what is started, each once.
    pub begun: &'a Listener<'a>,
    /// Progress messages, updated repeatedly.
    pub progress: &'a Listener<'a>,
}

/// Findings of one run, with a proof of their advice; the winning settings become the first advice.
/// If a proof did not run, it contains the reason: the explanation is valid without it.
///
/// # Errors
/// If a rule that ships with Pagewise is invalid.
pub fn prove_advice(
    mut findings: Findings,
    request: &Request<'_>,
    listeners: &Listeners<'_>,
) -> Result<Findings> {
    let trials = trials(&findings, request.command, request.library)?;
    let mut not_tried = Vec::new();
    let mut tried = |arm: Option<Result<Candidate, String>>, words: fn(&str) -> String| {
        let arm = arm?.map_err(|why| not_tried.push(words(&why)));
        arm.ok()
    };
    let limit = larger_limit::for_arm(&findings).map(|limit| limit.map(Candidate::with));
    let larger = tried(limit, larger_limit::not_tried);
    let paged = tried(
        paged::candidate(&findings, request.command),
        paged::not_tried,
    );
    // First, because the limit is what the findings are about.
    let mut arms: Vec<Candidate> = larger.iter().chain(&paged).cloned().collect();
    let settled = findings.advice.iter();
    let settled = settled.filter(|advice| !advice.settings.0.is_empty());
    let tried = trials.iter().filter(|trial| !trial.settings.0.is_empty());
    arms.extend(settled.chain(tried).map(candidate));
    let mut proof = proof(&findings, &arms, request, listeners);
    for why in not_tried {
        larger_limit::tell(&mut findings.advice, &why);
        proof.notes.push(why);
    }
    let has_won = |name: &String| proof.winner.as_ref() == Some(name);
    let larger = larger.filter(|arm| has_won(&arm.name));
    let proved_larger = larger
        .and_then(|arm| arm.larger_limit)
        .map(|limit| limit.proved());
    // Told although a larger limit is faster still: not everybody can have that.
    let proved_paged = paged.and_then(|arm| paged::proved(&arm, &proof.comparisons));
    for what in proved_larger.into_iter().chain(proved_paged) {
        larger_limit::tell(&mut findings.advice, &what);
    }
    if let Some(won) = trials.into_iter().find(|trial| has_won(&trial.name())) {
        findings.advice.insert(0, won);
    }
    Ok(proved(findings, proof))
}

/// A program that takes longer is not run again by the way.
const WORTH_OFFERING: Nanos = Nanos(10_000_000_000);
/// Names in an offer.
const MOST_NAMED: usize = 4;

/// What a proof of a short program would try, in one line; `None` if there is nothing to try, or nothing
/// to gain.
///
/// # Errors
/// If a rule that ships with Pagewise is invalid.
pub fn offer(
    findings: &Findings,
    command: &[OsString],
    library: OwnLibrary,
) -> Result<Option<String>> {
    let took = findings.cost.wall;
    let gravest = findings.diagnoses.first();
    let says_nothing = gravest
        .is_none_or(|one| one.severity == Severity::Healthy || one.id == Symptom::Short.id());
    if took > WORTH_OFFERING || says_nothing {
        return Ok(None);
    }
    let trials = trials(findings, command, library)?;
    let settled = findings.advice.iter();
    let settled = settled.filter(|advice| !advice.settings.0.is_empty());
    let others = trials.iter().filter(|trial| !trial.settings.0.is_empty());
    let names: Vec<String> = settled
        .chain(others)
        .map(|one| format!("'{}'", one.name()))
        .collect();
    let named = names[..names.len().min(MOST_NAMED)].join(", ");
    let tried = match names.len() {
        0 => return Ok(None),
        1 => format!("{named} by runs of about {took}"),
        count if count <= MOST_NAMED => format!("{named} by runs of about {took} each"),
        count => format!("{count} settings by runs of about {took} each: {named} and others"),
    };
    Ok(Some(format!("pagewise doctor --prove tries {tried}.")))
}

/// Runs the command with and without the advised settings, if there are any.
fn proof(
    findings: &Findings,
    candidates: &[Candidate],
    request: &Request<'_>,
    listeners: &Listeners<'_>,
) -> Proof {
    if interrupt::requested().is_some() {
        return not_run("it was interrupted first");
    }
    if candidates.is_empty() {
        return not_run("no setting is known that could be applied to this program");
    }
    (listeners.begun)(
        "Proving: one run with each setting that can be applied, then pairs of runs with the best.",
    );
    let cold = cold::files(findings);
    let options = Options {
        cold: cold.clone(),
        budget: request.budget,
        observed: Some(Finished {
            ending: findings.ending,
            cost: findings.cost,
        })
        .filter(|run| run.cost.wall > Nanos(0)),
        input: request.input.clone(),
        load: request.load.cloned(),
        ..Options::default()
    };
    match prove(request.command, candidates, &options, listeners.progress) {
        Ok(mut proof) => {
            predictions::judge(&mut proof, &findings.advice);
            proof.notes.extend(page_sizes::verdict(&proof));
            proof.notes.extend(cold::note(findings, &cold, &proof));
            if let Some(load) = request.load {
                let notes = driven::notes(
                    &proof,
                    &secrets::masked_text(&load.command.to_string_lossy()),
                );
                proof.notes.extend(notes);
            }
            proof
        }
        Err(error) => not_run(&format!("{error:#}")),
    }
}

/// An arm that applies advice. Another allocator may gain by other means than fewer faults.
fn candidate(advice: &Advice) -> Candidate {
    let is_library = |setting: &Setting| matches!(setting, Setting::Preload { .. });
    let another_allocator = advice.settings.0.iter().any(is_library);
    Candidate {
        name: advice.name(),
        settings: advice.settings.clone(),
        fewer_faults: advice.faults_avoided > 0.0 && !another_allocator,
        ..Candidate::default()
    }
}
