//! The search: one run of each setting, successive halving over those that deserve more, the smallest
//! value that suffices, and a confirmation with fresh runs.

use super::Trial;
use crate::Listener;
use crate::experiment::{Candidate, Experiment, Live, Options, Outcome, Runner, confirm};
use anyhow::Result;
use pagewise_compare::proof::most_promising;
use pagewise_compare::tune::{Gain, placebo, points, quieter_clock, survivors};
use pagewise_compare::{Criteria, FEWEST_PAIRS, correct_for_many, sentence};
use pagewise_model::answer::{Document, Subject};
use pagewise_model::proof::{Comparison, Verdict};
use pagewise_model::tuning::{Tuning, Winner};
use pagewise_model::units::Bytes;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::time::{Duration, Instant};

/// Result for the best setting.
enum Fate {
    Confirmed(Box<Winner>),
    /// A placebo does just as well.
    Luck,
    Refuted,
}

/// Rounds between two halvings.
const RUNG: usize = 2;
/// Number of settings in the last, long rung.
const FINALISTS: usize = 3;
/// Shares of the budget used up after one run of each setting, after the sweep over those that deserve
/// more, and after the search for the smallest value; the rest is for confirmation.
const AFTER_SCREENING: f64 = 0.4;
const AFTER_SWEEP: f64 = 0.65;
const AFTER_SMALLEST: f64 = 0.8;
/// Pairs per step of the search for the smallest value.
const PAIRS_PER_STEP: usize = 3;
/// No allocator threshold below this is worth setting: glibc's default is 128 KiB.
const LEAST_VALUE: u64 = 128 << 10;

/// Tries `trials` on `command`. Writing down the winner for a shell and others is left to the
/// caller.
///
/// # Errors
/// If the command cannot be run.
pub fn search(
    command: &[OsString],
    trials: &[Trial],
    options: &Options,
    notes: Vec<String>,
    progress: &Listener<'_>,
) -> Result<Document<Tuning>> {
    let subject = Subject::of_command(
        command
            .iter()
            .map(|word| word.to_string_lossy().into_owned())
            .collect(),
    );
    let found = search_by(
        &Live::new(command, options),
        trials,
        options,
        notes,
        progress,
    )?;
    Ok(found.about(subject))
}

/// The same, with runs and time of `runner`.
fn search_by(
    runner: &dyn Runner,
    trials: &[Trial],
    options: &Options,
    notes: Vec<String>,
    progress: &Listener<'_>,
) -> Result<Document<Tuning>> {
    let started = runner.now();
    let candidates: Vec<Candidate> = trials.iter().map(|trial| trial.candidate.clone()).collect();
    let mut experiment = Experiment::begin(runner, &candidates, options, progress)?;
    notes.iter().for_each(|note| experiment.note(note));
    let until = |share: f64| started + options.budget.mul_f64(share);

    // Where the first run took long, of what is left.
    let left = until(1.0).saturating_duration_since(experiment.now());
    let screening = experiment.now() + left.mul_f64(AFTER_SCREENING);
    if experiment.screen(screening.max(until(AFTER_SCREENING)), progress)? == Outcome::Complete {
        experiment.keep_promising();
        experiment.keep_small();
        sweep(&mut experiment, options, progress, until(AFTER_SWEEP))?;
    }
    let mut comparisons = experiment.comparisons(&options.criteria);
    correct_for_many(&mut comparisons, &options.criteria);
    let leader =
        most_promising(&comparisons, &options.criteria).map(|best| experiment.arm_named(&best.arm));
    let fate = match leader {
        Some(at) if !experiment.was_stopped() => {
            let trial = &trials[at - 1];
            let reserve = experiment.round_time(&[at]) * FEWEST_PAIRS;
            let left = until(1.0).checked_sub(reserve);
            let latest = left.unwrap_or(started).min(until(AFTER_SMALLEST));
            let smallest = smallest_value(&mut experiment, at, trial, progress, latest)?;
            let chosen = smallest.map_or_else(|| trial.clone(), |value| trial.at(value));
            confirmed(
                &mut experiment,
                trial,
                &chosen,
                options,
                progress,
                until(1.0),
            )?
        }
        _ => Fate::Refuted,
    };
    experiment.note_noise();
    let clock = quieter_clock(experiment.runs(0));
    let points = points(experiment.runs(0), &comparisons, clock);
    let (arms, notes) = experiment.into_parts();
    let (winner, luck) = match fate {
        Fate::Confirmed(winner) => (Some(*winner), false),
        Fate::Luck => (None, true),
        Fate::Refuted => (None, false),
    };
    let found = Tuning {
        arms: arms
            .into_iter()
            .filter(|arm| !arm.runs.is_empty())
            .collect(),
        comparisons,
        clock,
        time_and_memory: points,
        winner,
        luck,
    };
    Ok(Document::new(found).with_notes(notes))
}

/// Halves the field of those in play every [`RUNG`] rounds, then runs the finalists until their intervals are
/// narrow.
fn sweep(
    experiment: &mut Experiment<'_>,
    options: &Options,
    progress: &Listener<'_>,
    deadline: Instant,
) -> Result<()> {
    let mut active = experiment.in_play();
    if !experiment.has_time(&active, deadline, 0) {
        return Ok(());
    }
    let stopping = options.stopping.among(active.len(), options.criteria.level);
    while !active.is_empty() {
        let rung = if active.len() > FINALISTS { RUNG } else { 1 };
        for _ in 0..rung {
            progress(&experiment.status(&active, options));
            if experiment.round(&active)? == Outcome::Stopped {
                return Ok(());
            }
        }
        let in_play = experiment.in_play();
        let mut field: Vec<(usize, Comparison)> = active
            .iter()
            .filter(|at| in_play.contains(at))
            .map(|&at| (at, experiment.compare(at, &options.criteria)))
            .collect();
        drop_the_greedy(experiment, &mut field, &options.criteria);
        active = if field.len() > FINALISTS {
            let kept = survivors(&field, FINALISTS);
            if kept.len() == field.len() {
                kept[..field.len() - 1].to_vec()
            } else {
                kept
            }
        } else {
            field.retain(|(_, comparison)| !stopping.enough(comparison));
            field.into_iter().map(|(at, _)| at).collect()
        };
        if !experiment.has_time(&active, deadline, RUNG) {
            return Ok(());
        }
    }
    Ok(())
}

/// Settings that need more memory than allowed get no more runs.
fn drop_the_greedy(
    experiment: &mut Experiment<'_>,
    field: &mut Vec<(usize, Comparison)>,
    criteria: &Criteria,
) {
    let Some(most) = criteria.max_rss else { return };
    field.retain(|(at, _)| {
        let peak = experiment
            .runs(*at)
            .iter()
            .map(|run| run.max_rss)
            .min()
            .unwrap_or_default();
        if peak > most {
            let name = experiment.candidate(*at).name.clone();
            experiment.note(&format!(
                "'{name}' needs {peak}, more than the {most} allowed."
            ));
        }
        peak <= most
    });
}

/// Bisects the winner's value, in powers of two, down to the smallest that keeps its gain. `None`
/// if it has no value, or no smaller one suffices.
fn smallest_value(
    experiment: &mut Experiment<'_>,
    winner: usize,
    trial: &Trial,
    progress: &Listener<'_>,
    deadline: Instant,
) -> Result<Option<Bytes>> {
    let Some(won_at) = trial.value else {
        return Ok(None);
    };
    let gain = Gain::from_comparison(&experiment.compare(winner, &Criteria::default()));
    // Invariant: `good` suffices, `bad` does not.
    let (mut good, mut bad) = (won_at.0.ilog2(), LEAST_VALUE.ilog2() - 1);
    let mut best = None;
    while good - bad > 1 {
        let middle = bad + (good - bad) / 2;
        let smaller = trial.at(Bytes(1 << middle));
        progress(&format!("is {} enough?", smaller.candidate.name));
        let mut step = experiment.fresh_pair(trial.candidate.clone(), smaller.candidate.clone());
        for _ in 0..PAIRS_PER_STEP {
            if step.now() + step.round_time(&[1]) > deadline {
                experiment.note("The budget ended before the smallest sufficient value was found.");
                return Ok(best);
            }
            if step.round(&[1])? == Outcome::Stopped {
                experiment.adopt_notes(&step);
                return Ok(best);
            }
        }
        if !step.in_play().is_empty() && gain.is_kept(&step.compare(1, &Criteria::default())) {
            good = middle;
            best = Some(Bytes(1 << middle));
        } else {
            bad = middle;
        }
    }
    Ok(best)
}

/// Fresh runs of the chosen settings, against the baseline and a placebo; a note reports if the
/// gain does not hold.
fn confirmed(
    experiment: &mut Experiment<'_>,
    trial: &Trial,
    chosen: &Trial,
    options: &Options,
    progress: &Listener<'_>,
    deadline: Instant,
) -> Result<Fate> {
    let at = experiment.add(chosen.candidate.clone());
    // At least some time, so that a spent budget does not leave a winner unconfirmed.
    let deadline = deadline.max(experiment.now() + Duration::from_secs(1));
    // The few pairs against a placebo always run.
    experiment.extend(deadline + experiment.round_time(&[at]) * LEAST_PLACEBO_PAIRS);
    let confirmation = confirm(experiment, at, options, progress, deadline)?;
    if confirmation.verdict != Verdict::Faster {
        experiment.note(&format!(
            "'{}' looked best of all, but fresh runs did not confirm it{}.",
            chosen.candidate.name,
            if confirmation.verdict == Verdict::Undecided {
                " in the time that was left"
            } else {
                ""
            }
        ));
        return Ok(Fate::Refuted);
    }
    if is_luck(experiment, chosen, options, progress, deadline)? {
        experiment.note(&format!(
            "'{}' is faster, but so is a meaningless variable of the same length: how much this command faults depends on the exact layout of its heap, which the size of its environment shifts. Any change may bring the faults back or remove them.",
            chosen.candidate.name
        ));
        return Ok(Fate::Luck);
    }
    // Both exist only if a smallest value was searched for.
    let (won_at_value, smallest_sufficient_value) = trial.value.zip(chosen.value).unzip();
    Ok(Fate::Confirmed(Box::new(Winner {
        name: chosen.candidate.name.clone(),
        exports: BTreeMap::new(),
        settings: chosen.candidate.settings.clone(),
        summary: sentence(&confirmation),
        won_at_value,
        smallest_sufficient_value,
        confirmation,
        price: trial.recipe.price.clone(),
    })))
}

/// Pairs needed to distinguish a setting from a placebo.
const PLACEBO_PAIRS: u32 = 8;
/// Fewer say nothing.
const LEAST_PLACEBO_PAIRS: u32 = 3;

/// Whether a placebo does just as well as the chosen settings. The environment is on the stack and
/// many programs copy it to their heap, so its mere size moves everything after it (Mytkowicz et
/// al., "Producing Wrong Data Without Doing Anything Obviously Wrong!", 2009).
fn is_luck(
    experiment: &mut Experiment<'_>,
    chosen: &Trial,
    options: &Options,
    progress: &Listener<'_>,
    deadline: Instant,
) -> Result<bool> {
    let Some(settings) = placebo(&chosen.candidate.settings) else {
        return Ok(false);
    };
    let placebo = Candidate {
        name: "placebo".to_owned(),
        settings,
        ..Candidate::default()
    };
    let mut duel = experiment.fresh_pair(placebo, chosen.candidate.clone());
    let mut pairs = 0;
    while pairs < PLACEBO_PAIRS && (pairs < LEAST_PLACEBO_PAIRS || duel.has_time(&[1], deadline, 0))
    {
        progress("against a placebo");
        if duel.round(&[1])? == Outcome::Stopped {
            experiment.adopt_notes(&duel);
            break;
        }
        pairs += 1;
    }
    // The gain was confirmed before; here it only must not vanish.
    let against = duel.compare(1, &options.criteria);
    Ok(against.pairs >= LEAST_PLACEBO_PAIRS
        && against.wall_speedup.low <= 1.0
        && against.cpu_speedup.low <= 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::scripted::{Scene, Scripted};
    use crate::tune::trials;

    /// A search with thresholds that make the command three times as fast, from a size on.
    fn searched(placebo_seconds: f64, budget: Duration) -> Document<Tuning> {
        let (trials, _) = trials(&["glibc thresholds".to_owned()]).unwrap();
        let options = Options {
            budget,
            ..Options::default()
        };
        let runner = Scripted::new(|arm: &Candidate, _| match arm.name.as_str() {
            "baseline" => Scene::new(0.3, 6_000),
            "placebo" => Scene::new(placebo_seconds, 6_000),
            "glibc thresholds 128K" | "glibc thresholds 256K" => Scene::new(0.29, 5_800),
            _ => Scene::new(0.1, 1_000),
        });
        let found = search_by(&runner, &trials, &options, Vec::new(), &|_| ()).unwrap();
        let few = Duration::from_secs(2);
        assert!(
            runner.elapsed() <= budget + few,
            "{budget:?}: {:?}",
            runner.elapsed()
        );
        found
    }

    #[test]
    fn the_smallest_value_that_suffices_is_confirmed() {
        let found = searched(0.3, Duration::from_secs(120));
        let winner = found.evidence.winner.expect("a winner");
        assert_eq!(winner.name, "glibc thresholds 512K");
        assert_eq!(winner.confirmation.verdict, Verdict::Faster);
        assert!(!found.evidence.luck);
    }

    #[test]
    fn a_gain_that_a_placebo_has_too_is_luck() {
        let found = searched(0.1, Duration::from_secs(120));
        assert!(found.evidence.winner.is_none() && found.evidence.luck);
    }

    #[test]
    fn a_small_budget_tries_few_settings_and_says_so() {
        let found = searched(0.3, Duration::from_millis(2_200));
        let notes = found.notes.join("\n");
        assert!(notes.contains("Not tried for lack of time: "), "{notes}");
    }
}
