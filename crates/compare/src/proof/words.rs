//! The texts about a proof.

use super::fate::Fate;
use crate::{Criteria, causal_doubt, noise, promised, sentence, tried_once};
use pagewise_model::proof::{Arm, Comparison, Proof, Verdict};
use pagewise_model::quantity::{factor_digits, shown_factor};
use pagewise_model::run::RunCost;

/// Run-to-run differences from which the reader is informed.
const NOISY: f64 = 0.05;

/// A proof that did not run, with the reason.
#[must_use]
pub fn not_run(why: &str) -> Proof {
    Proof {
        arms: Vec::new(),
        comparisons: Vec::new(),
        winner: None,
        confirmation: None,
        summary: format!("No proof: {why}."),
        notes: Vec::new(),
    }
}

/// The first sentence: which arm won and by how much, as measured by `confirmation` if there is
/// one; otherwise the result of runs without a winner, where more runs may still decide if it
/// `is_open`.
#[must_use]
pub fn summary(
    comparisons: &[Comparison],
    winner: Option<&str>,
    confirmation: Option<&Comparison>,
    is_open: bool,
) -> String {
    let named = |name: &str| comparisons.iter().find(|comparison| comparison.arm == name);
    match winner.and_then(|name| confirmation.or_else(|| named(name))) {
        Some(proved) => format!("Proved: '{}' makes it {}.", proved.arm, sentence(proved)),
        None => unproved(comparisons, is_open),
    }
}

/// The result of runs without a winner.
fn unproved(comparisons: &[Comparison], is_open: bool) -> String {
    let tried = || comparisons.iter().filter(|one| one.pairs > 0);
    let arms = tried().count();
    let likely = tried()
        .filter_map(|one| Some((one, promised(one, arms, &Criteria::default())?)))
        .max_by(|(a, _), (b, _)| a.cpu_speedup.value.total_cmp(&b.cpu_speedup.value));
    if let (None, Some(one)) = (&likely, tried_once(tried())) {
        let (arm, times) = (&one.arm, factor_digits(one.cpu_speedup.value));
        return format!(
            "Not proved: one run with '{arm}' was {times} times as fast in CPU time; a longer --budget can prove it."
        );
    }
    match (likely, comparisons) {
        (_, []) => "Not proved: there was no setting left to compare; the notes say why.".to_owned(),
        (Some((one, words)), several) if several.len() > 1 => {
            format!("Not proved: with '{}' it is {words}.", one.arm)
        }
        (_, [only]) => format!("Not proved: '{}': {}.", only.arm, sentence(only)),
        _ if tried().all(|one| one.verdict != Verdict::Undecided) => {
            "Not proved: no setting made the command faster.".to_owned()
        }
        _ if !is_open => {
            "Inconclusive: in the given time, no setting could be shown to make the command faster; the notes say why."
                .to_owned()
        }
        _ => "Inconclusive: the settings tried may or may not make the command faster.".to_owned(),
    }
}

/// Why one of several arms gets no more runs although it is not decided; `pairs` is what each can
/// have.
#[must_use]
pub fn why_no_more(comparison: &Comparison, fate: &Fate, pairs: u32) -> Option<String> {
    let (name, ran) = (&comparison.arm, comparison.pairs);
    let message =
        |clock: &str, ratio| shown_factor(ratio).map(|message| format!("{clock} {message}"));
    let seen = [
        message("elapsed", &comparison.wall_speedup),
        message("CPU", &comparison.cpu_speedup),
    ];
    let seen: Vec<String> = seen.into_iter().flatten().collect();
    let seen = match seen.is_empty() {
        true => String::new(),
        false => format!(" ({})", seen.join(", ")),
    };
    match fate {
        Fate::Hopeless => Some(format!(
            "'{name}' was dropped after {ran} pairs of runs{seen}: the {pairs} pairs that the budget allows would hardly prove a gain."
        )),
        Fate::Beaten(best) => Some(format!(
            "'{name}' was stopped after {ran} pairs of runs{seen}: '{best}' is clearly faster."
        )),
        Fate::Open | Fate::Decided => None,
    }
}

/// What a reader should know about the machine, from the baseline's own runs.
#[must_use]
pub fn noise_note(baseline: &[RunCost]) -> Option<String> {
    let found = noise(baseline)?;
    (found.wall > NOISY || found.cpu > NOISY).then(|| {
        format!(
            "Noisy machine: runs of the same command differ by {:.0} % in elapsed time and {:.0} % in CPU time. Interleaving and the intervals account for that.",
            100.0 * found.wall,
            100.0 * found.cpu,
        )
    })
}

/// A gain that its supposed cause does not explain.
#[must_use]
pub fn doubt_note(baseline: &Arm, arm: &Arm) -> Option<String> {
    causal_doubt(&baseline.runs, &arm.runs).map(|doubt| format!("'{}': {doubt}.", arm.name))
}
