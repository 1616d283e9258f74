//! What an experiment decides, with runs by a script: settings that help, useless ones, failing
//! ones, and budgets of all sizes.

use super::scripted::{Scene, Scripted};
use super::*;
use pagewise_model::advice::{Setting, Settings};
use pagewise_model::run::{Ending, RunCost};
use pagewise_model::units::{Bytes, Nanos};

fn candidate(name: &str) -> Candidate {
    let setting = Setting::Env {
        name: "CURE".to_owned(),
        value: name.to_owned(),
    };
    Candidate {
        name: name.to_owned(),
        settings: Settings(vec![setting]),
        fewer_faults: true,
        ..Candidate::default()
    }
}

/// A candidate that need not avoid faults.
fn other(name: &str) -> Candidate {
    Candidate {
        fewer_faults: false,
        ..candidate(name)
    }
}

/// The unchanged program, and a setting by which it is three times as fast.
fn churn(arm: &Candidate, _: usize) -> Scene {
    match arm.name.as_str() {
        "cure" | "first" | "second" => Scene::new(0.1, 1_000),
        "broken" => Scene::failing(9),
        _ => Scene::new(0.3, 6_000),
    }
}

fn quick(pairs: u32) -> Options {
    Options {
        stopping: Stopping {
            min_pairs: pairs,
            max_pairs: pairs,
            ..Stopping::default()
        },
        ..Options::default()
    }
}

fn within(budget: Duration) -> Options {
    Options {
        budget,
        ..Options::default()
    }
}

/// A run of the unchanged program before, of so many seconds.
fn took(seconds: f64) -> Finished {
    let cost = RunCost {
        wall: Nanos::from_secs_f64(seconds),
        ..RunCost::default()
    };
    let ending = Ending::Exited(0);
    Finished { ending, cost }
}

/// Asserts that all runs were over when the budget was.
#[track_caller]
fn is_kept<S: Fn(&Candidate, usize) -> Scene>(runner: &Scripted<S>, options: &Options) {
    let most = options.budget + super::scripted::AROUND;
    assert!(runner.elapsed() <= most, "{:?}", runner.elapsed());
}

fn has_note(proof: &Proof, start: &str) -> bool {
    proof.notes.iter().any(|note| note.starts_with(start))
}

fn runs_of(proof: &Proof, name: &str) -> usize {
    let arm = proof.arms.iter().find(|arm| arm.name == name);
    arm.map_or(0, |arm| arm.runs.len())
}

#[test]
fn one_fix_is_proved_among_useless_and_failing_settings() {
    let arms = ["cure", "nothing", "broken"].map(candidate);
    let proof = prove_by(&Scripted::new(churn), &arms, &quick(7), &|_| ()).unwrap();
    assert_eq!(proof.winner.as_deref(), Some("cure"), "{proof:?}");
    assert!(
        proof.summary.starts_with("Proved: 'cure' makes it "),
        "{}",
        proof.summary
    );
    // Its trial run left it without a competitor, so the runs after that prove it.
    assert_eq!(proof.confirmation, None);
    let fix = &proof.comparisons[0];
    assert_eq!(fix.verdict, Verdict::Faster, "{fix:?}");
    assert!((3..=7).contains(&fix.pairs), "{fix:?}");
    assert_eq!(runs_of(&proof, "cure"), fix.pairs as usize);
    assert!(
        has_note(
            &proof,
            "'broken' is rejected: with it, the command ends with status 9."
        ),
        "{:?}",
        proof.notes
    );
    let names: Vec<&str> = proof.arms.iter().map(|arm| arm.name.as_str()).collect();
    assert_eq!(names, ["baseline", "cure", "nothing", "broken"]);
    let failed = proof.arms.iter().filter_map(|arm| arm.failed.as_deref());
    assert!(failed.eq(["the command ends with status 9"]));
    let useless = &proof.comparisons[1];
    assert_eq!(
        (&*useless.arm, useless.verdict),
        ("nothing", Verdict::TriedOnce)
    );
}

#[test]
fn of_two_fixes_one_is_chosen_and_confirmed_by_fresh_runs() {
    let arms = ["first", "second"].map(candidate);
    let proof = prove_by(&Scripted::new(churn), &arms, &quick(7), &|_| ()).unwrap();
    let winner = proof.winner.as_deref().expect("a winner");
    assert!(["first", "second"].contains(&winner), "{proof:?}");
    let confirmation = proof.confirmation.unwrap();
    assert_eq!(confirmation.arm, winner);
    assert_eq!(confirmation.verdict, Verdict::Faster);
    assert!((3..=7).contains(&confirmation.pairs), "{confirmation:?}");
}

#[test]
fn a_command_that_ends_differently_ends_the_proof() {
    let script = |arm: &Candidate, run: usize| match arm.name.as_str() {
        "baseline" if run > 0 => Scene::failing(1),
        _ => Scene::new(0.1, 1_000),
    };
    let proof = prove_by(
        &Scripted::new(script),
        &[candidate("any")],
        &quick(7),
        &|_| (),
    )
    .unwrap();
    assert_eq!(proof.winner, None);
    assert!(
        has_note(
            &proof,
            "The unchanged command ends with status 1, unlike before"
        ),
        "{:?}",
        proof.notes
    );
}

#[test]
fn an_interrupted_proof_keeps_its_complete_rounds() {
    let runner = Scripted::new(churn).interrupted_at(6);
    let proof = prove_by(&runner, &[candidate("cure")], &quick(20), &|_| ()).unwrap();
    // One run before the first round, and two in each.
    assert_eq!(runs_of(&proof, "cure"), 2);
    assert!(has_note(&proof, "Interrupted"), "{:?}", proof.notes);
    let runner = Scripted::new(churn).interrupted_at(0);
    let error = prove_by(&runner, &[candidate("cure")], &quick(20), &|_| ()).unwrap_err();
    assert!(error.to_string().contains("interrupted before"), "{error}");
}

#[test]
fn every_arm_gets_one_run_and_the_best_gets_the_rest() {
    let script = |arm: &Candidate, _: usize| match arm.name.as_str() {
        "last" => Scene::new(0.05, 1_000),
        _ => Scene::new(0.5, 6_000),
    };
    let names = ["a", "b", "c", "d", "e", "f", "last"];
    let runner = Scripted::new(script);
    let options = within(Duration::from_secs(9));
    let proof = prove_by(&runner, &names.map(other), &options, &|_| ()).unwrap();
    assert_eq!(proof.winner.as_deref(), Some("last"), "{proof:?}");
    for name in ["a", "b", "c", "d", "e", "f"] {
        assert_eq!(runs_of(&proof, name), 1, "{proof:?}");
    }
    is_kept(&runner, &options);
}

#[test]
fn what_was_not_tried_is_named_and_has_no_result() {
    // The first run, the baseline's trial and those of two arms fill the time before the pairs.
    let script = |arm: &Candidate, _: usize| match arm.name.as_str() {
        "cure" => Scene::new(0.2, 1_000),
        _ => Scene::new(0.5, 6_000),
    };
    let arms = ["cure", "b", "c", "d", "e"].map(other);
    let runner = Scripted::new(script);
    let options = within(Duration::from_millis(5_000));
    let proof = prove_by(&runner, &arms, &options, &|_| ()).unwrap();
    assert_eq!(proof.winner.as_deref(), Some("cure"), "{proof:?}");
    let untried: Vec<&str> = ["b", "c", "d", "e"]
        .into_iter()
        .filter(|name| runs_of(&proof, name) == 0)
        .collect();
    assert!(!untried.is_empty(), "{proof:?}");
    let names = untried.iter().map(|name| format!("'{name}'"));
    let note = format!(
        "Not tried for lack of time: {}.",
        names.collect::<Vec<_>>().join(", ")
    );
    assert!(has_note(&proof, &note), "{note} in {:?}", proof.notes);
    let compared = |name: &str| proof.comparisons.iter().any(|one| one.arm == name);
    assert!(untried.iter().all(|name| !compared(name)), "{proof:?}");
    is_kept(&runner, &options);
}

#[test]
fn a_budget_for_trials_alone_says_what_they_showed() {
    let options = Options {
        observed: Some(took(0.3)),
        ..within(Duration::from_millis(1_000))
    };
    let runner = Scripted::new(churn);
    let proof = prove_by(&runner, &["nothing", "cure"].map(other), &options, &|_| ()).unwrap();
    assert_eq!(proof.winner, None);
    let start = "Not proved: one run took ";
    assert!(proof.summary.starts_with(start), "{}", proof.summary);
    assert!(proof.summary.contains("with 'cure'"), "{}", proof.summary);
    assert!(proof.summary.contains("--budget "), "{}", proof.summary);
    is_kept(&runner, &options);
}

#[test]
fn of_many_promising_arms_the_budget_covers_some() {
    let script = |arm: &Candidate, _: usize| match arm.name.as_str() {
        "baseline" => Scene::new(0.5, 6_000),
        _ => Scene::new(0.45, 6_000),
    };
    let options = within(Duration::from_secs(15));
    let runner = Scripted::new(script);
    let arms = ["a", "b", "c", "d", "e"].map(other);
    let proof = prove_by(&runner, &arms, &options, &|_| ()).unwrap();
    let is_about_trials = |note: &String| note.contains("gained least in a trial run");
    assert!(proof.notes.iter().any(is_about_trials), "{:?}", proof.notes);
    is_kept(&runner, &options);
}

#[test]
fn a_first_run_that_hangs_is_ended_by_the_budget() {
    let options = Options {
        observed: Some(took(0.05)),
        ..within(Duration::from_secs(1))
    };
    let runner = Scripted::new(|_: &Candidate, _| Scene::new(1e6, 1_000));
    let error = prove_by(&runner, &[candidate("any")], &options, &|_| ()).unwrap_err();
    let message = error.to_string();
    assert!(
        message.starts_with("the unchanged command took 50.0 ms before"),
        "{message}"
    );
    is_kept(&runner, &options);
}

#[test]
fn a_budget_too_small_for_a_proof_says_what_is_missing() {
    let script = |arm: &Candidate, _: usize| match arm.name.as_str() {
        "cure" => Scene::new(0.1, 1_000),
        _ => Scene::new(0.4, 6_000),
    };
    // 0.4 s for the first run, and two pairs.
    let options = within(Duration::from_millis(1_500));
    let runner = Scripted::new(script);
    let proof = prove_by(&runner, &[candidate("cure")], &options, &|_| ()).unwrap();
    is_kept(&runner, &options);
    let found = &proof.comparisons[0];
    assert_eq!((found.pairs, found.verdict), (2, Verdict::Undecided));
    assert_eq!(proof.winner, None);
    assert!(has_note(&proof, "The time budget"), "{:?}", proof.notes);
}

#[test]
fn a_budget_for_two_runs_goes_to_a_pair() {
    let options = Options {
        observed: Some(took(0.3)),
        ..within(Duration::from_millis(700))
    };
    let runner = Scripted::new(churn);
    let proof = prove_by(&runner, &[candidate("cure")], &options, &|_| ()).unwrap();
    // The observed run takes the place of the first one; after the pair, 0.3 s are left.
    assert_eq!((runner.runs(), proof.comparisons[0].pairs), (2, 1));
    assert!(
        has_note(&proof, "The time budget ended after 1 pair of runs"),
        "{:?}",
        proof.notes
    );
    is_kept(&runner, &options);
}

#[test]
fn a_budget_for_six_runs_proves_what_three_pairs_prove() {
    let options = Options {
        observed: Some(took(0.3)),
        ..within(Duration::from_millis(1_850))
    };
    let runner = Scripted::new(churn);
    let proof = prove_by(&runner, &[candidate("cure")], &options, &|_| ()).unwrap();
    assert_eq!(proof.winner.as_deref(), Some("cure"), "{proof:?}");
    is_kept(&runner, &options);
}

#[test]
fn a_budget_below_a_pair_goes_to_one_run_of_the_arm() {
    let summary = |name: &str, budget_ms: u64| {
        let options = Options {
            observed: Some(took(0.3)),
            ..within(Duration::from_millis(budget_ms))
        };
        let runner = Scripted::new(churn);
        let proof = prove_by(&runner, &[candidate(name)], &options, &|_| ()).unwrap();
        assert_eq!(runner.runs(), 1, "{proof:?}");
        assert_eq!(proof.winner, None);
        is_kept(&runner, &options);
        proof.summary
    };
    let faster = summary("cure", 250);
    assert!(
        faster.starts_with("No proof: one run took ")
            && faster.contains(" with 'cure' and 300 ms without; six pairs of runs need --budget "),
        "{faster}"
    );
    let fails = summary("broken", 500);
    assert!(
        fails.starts_with("No proof: with 'broken', the command ends with status 9;"),
        "{fails}"
    );
    let same = summary("nothing", 250);
    assert!(
        same.starts_with("No proof: one run takes 300 ms without 'nothing', and did not end"),
        "{same}"
    );
}

#[test]
fn a_run_that_passes_the_budget_is_ended_with_a_note() {
    let script = |arm: &Candidate, _: usize| match arm.name.as_str() {
        "hangs" => Scene::new(1e6, 1_000),
        _ => Scene::new(0.05, 1_000),
    };
    let runner = Scripted::new(script);
    let options = within(Duration::from_secs(2));
    let proof = prove_by(&runner, &[candidate("hangs")], &options, &|_| ()).unwrap();
    is_kept(&runner, &options);
    let is_about_it = |note: &String| note.contains("ended in the middle of a round");
    assert!(proof.notes.iter().any(is_about_it), "{:?}", proof.notes);
}

#[test]
fn settings_that_change_nothing_cost_one_trial() {
    let runner = Scripted::new(|_: &Candidate, _| Scene::new(0.2, 1_000));
    let options = Options::default();
    let proof = prove_by(&runner, &[candidate("other")], &options, &|_| ()).unwrap();
    assert_eq!(runner.runs(), 3, "a first run, and one pair");
    assert_eq!(proof.comparisons[0].verdict, Verdict::TriedOnce);
    let start = "'other' was dropped after a trial run: it changed neither";
    assert!(has_note(&proof, start), "{:?}", proof.notes);
}

#[test]
fn only_the_programs_processes_show_a_settings_reach() {
    let reached = |reach: Reach, seconds: f64| {
        let script = move |arm: &Candidate, _: usize| match arm.name.as_str() {
            "allocator" => Scene {
                reach,
                ..Scene::new(seconds, 1_000)
            },
            _ => Scene::new(0.2, 1_000),
        };
        let arms = ["allocator", "another"].map(other);
        let proof = prove_by(&Scripted::new(script), &arms, &quick(6), &|_| ()).unwrap();
        let found = proof.comparisons.iter().find(|one| one.arm == "allocator");
        (found.unwrap().verdict, proof.notes.join(" "))
    };
    // As many faults, but faster: it was loaded.
    let (verdict, notes) = reached(Reach::Reached, 0.165);
    assert_eq!(verdict, Verdict::Faster, "{notes}");
    let (verdict, notes) = reached(Reach::Not("the library is not mapped"), 0.2);
    assert_eq!(verdict, Verdict::NotReached);
    let text = "'allocator' does not reach the program: the library is not mapped.";
    assert!(notes.contains(text), "{notes}");
}

#[test]
fn a_policy_of_memory_nodes_runs_although_it_changes_no_faults() {
    let bound = Candidate {
        settings: Settings(vec![Setting::Numa {
            options: "--cpunodebind=0 --membind=0".into(),
        }]),
        ..other("one node")
    };
    let runner = Scripted::new(|_: &Candidate, _| Scene::new(0.2, 1_000));
    let proof = prove_by(&runner, &[bound], &quick(3), &|_| ()).unwrap();
    assert_eq!(proof.comparisons[0].pairs, 3, "{proof:?}");
    assert_ne!(proof.comparisons[0].verdict, Verdict::NotReached);
}

#[test]
fn settings_against_faults_that_avoid_none_cost_one_trial() {
    let script = |arm: &Candidate, _: usize| match arm.name.as_str() {
        "other" => Scene::new(0.2, 9_000),
        _ => Scene::new(0.2, 1_000),
    };
    let options = Options::default();
    let proof = prove_by(
        &Scripted::new(script),
        &[candidate("other")],
        &options,
        &|_| (),
    )
    .unwrap();
    assert_eq!(runs_of(&proof, "other"), 1, "{proof:?}");
    let start = "'other' was dropped after a trial run: it avoids no page faults";
    assert!(has_note(&proof, start), "{:?}", proof.notes);
    assert!(
        proof.winner.is_none() && proof.summary.starts_with("Not proved"),
        "{}",
        proof.summary
    );
}

#[test]
fn an_arm_without_hope_is_dropped_with_a_note() {
    // Slower by half with the setting, with the same number of faults.
    let script = |arm: &Candidate, _: usize| match arm.name.as_str() {
        "slower" => Scene {
            peak: Bytes(80 << 20),
            ..Scene::new(0.3, 1_000)
        },
        _ => Scene::new(0.2, 1_000),
    };
    let options = Options::default();
    let proof = prove_by(
        &Scripted::new(script),
        &[other("slower")],
        &options,
        &|_| (),
    )
    .unwrap();
    assert!((3..25).contains(&runs_of(&proof, "slower")), "{proof:?}");
    assert!(
        has_note(&proof, "'slower' was dropped after "),
        "{:?}",
        proof.notes
    );
}

/// A run within a limit pays for each page that it makes room for; the number of faults does not
/// show what it saves.
#[test]
fn only_settings_against_faults_are_doubted_for_avoiding_few() {
    let run = |seconds: f64, faults: u64| RunCost {
        wall: Nanos::from_secs_f64(seconds),
        user: Nanos::from_secs_f64(seconds),
        major_faults: faults,
        ..RunCost::default()
    };
    let notes = |fewer_faults: bool| {
        let arm = Candidate {
            fewer_faults,
            ..candidate("arm")
        };
        let (runner, options) = (Scripted::new(churn), quick(2));
        let mut experiment = Experiment::begin(&runner, &[arm], &options, &|_| ()).unwrap();
        experiment.arms[0].runs = vec![run(3.0, 4_000); 6];
        experiment.arms[1].runs = vec![run(1.0, 1_000); 6];
        experiment.notes.clear();
        experiment.note_doubt("arm");
        experiment.notes
    };
    assert!(notes(true)[0].contains("something else changed too"));
    assert_eq!(notes(false), Vec::<String>::new());
}

#[test]
fn a_confirmation_runs_under_the_same_program_as_the_trial() {
    let wrapped = Candidate {
        under: ["env", "UNDER=env"].map(OsString::from).to_vec(),
        ..other("wrapped")
    };
    let (runner, options) = (Scripted::new(churn), quick(2));
    let experiment =
        Experiment::begin(&runner, std::slice::from_ref(&wrapped), &options, &|_| ()).unwrap();
    let mut fresh = experiment.fresh(1);
    assert_eq!(fresh.round(&[1]).unwrap(), Outcome::Complete);
    let mut last = runner.played().split_off(1);
    last.sort_by_key(|arm| arm.under.len());
    assert_eq!(last[0].under, Vec::<OsString>::new());
    assert_eq!(last[1], wrapped);
    assert_eq!(last.len(), 2);
}

#[test]
fn an_arm_far_behind_another_gets_one_run() {
    let script = |arm: &Candidate, _: usize| match arm.name.as_str() {
        "best" => Scene::new(0.1, 5_000),
        "worse" => Scene::new(0.5, 5_000),
        _ => Scene::new(0.6, 1_000),
    };
    let arms = ["worse", "best"].map(other);
    let proof = prove_by(&Scripted::new(script), &arms, &quick(6), &|_| ()).unwrap();
    assert_eq!(proof.winner.as_deref(), Some("best"), "{proof:?}");
    let mut found = proof.comparisons.iter();
    let worse = found.find(|one| one.arm == "worse").map(|one| one.pairs);
    assert_eq!(worse, Some(1), "{proof:?}");
}
