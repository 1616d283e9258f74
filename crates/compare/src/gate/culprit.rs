//! The reasons for growth: causes of faults and stacks that have more faults than before.
//!
//! Each side was observed once, so this explains what the gate has found and does not find growth
//! itself.

use crate::run_diff::causes;
use pagewise_model::findings::{Cause, Findings, Site};
use pagewise_model::gate::{Culprit, FaultsSeen, StackGrowth};
use pagewise_model::run_diff::CauseChange;
use std::collections::BTreeMap;

/// Stacks that are named …
const STACKS: usize = 3;
/// … if their growth is at least this fraction of the largest one's.
const OF_LARGEST: f64 = 0.25;
/// Smaller differences are sampling noise.
const LEAST_FAULTS: f64 = 8.0;
/// Causes that are named …
const CAUSES: usize = 3;
/// … if their growth is at least this fraction of the largest one's.
const CAUSE_OF_LARGEST: f64 = 0.1;
/// A cause that makes up this fraction of all growth is reported for each stack that grew, whatever
/// other causes the stack has.
const MOST_OF_ALL: f64 = 0.75;
/// Fraction of a run's faults that may be missing if each should be recorded: causes of two runs
/// are compared by the recorded ones.
const MISSING: f64 = 0.01;
/// … and faults before the program starts, for which there are no events.
const BEFORE_START: f64 = 64.0;

/// The observation of one side.
#[derive(Clone, Copy, Debug)]
pub struct Observed<'a> {
    /// Its faults.
    pub faults: &'a FaultsSeen,
    /// Their total number.
    pub total: f64,
}

/// Where a program faulted and why: the places from a run whose samples have whole stacks, the
/// causes from a run without stacks in which `each` fault was recorded. `None` if nothing was
/// recorded.
#[must_use]
pub fn faults_seen(stacks: &Findings, each: Option<&Findings>) -> Option<FaultsSeen> {
    let each = each.filter(|each| is_complete(each));
    let because = |site: &Site| Site {
        main_cause: each
            .and_then(|each| cause_in(site.stack.last()?, &each.sites))
            .unwrap_or(site.main_cause),
        ..site.clone()
    };
    (stacks.samples > 0).then(|| FaultsSeen {
        by_cause: each.unwrap_or(stacks).by_cause.clone(),
        sites: stacks.sites.iter().map(because).collect(),
    })
}

/// Whether almost no fault is missing.
fn is_complete(findings: &Findings) -> bool {
    let faults = findings.cost.faults() as f64;
    findings.samples as f64 >= (1.0 - MISSING) * faults - BEFORE_START
}

/// The most frequent cause of faults in this innermost function.
fn cause_in(function: &str, sites: &[Site]) -> Option<Cause> {
    let here = |site: &&Site| site.stack.last().is_some_and(|name| name == function);
    let mut causes: BTreeMap<Cause, f64> = BTreeMap::new();
    for site in sites.iter().filter(here) {
        *causes.entry(site.main_cause).or_default() += site.faults;
    }
    let most = causes.into_iter().max_by(|a, b| a.1.total_cmp(&b.1));
    most.map(|(cause, _)| cause)
}

/// Causes and stacks with more faults than before.
#[must_use]
pub fn culprit(old: Observed<'_>, new: Observed<'_>) -> Culprit {
    let mut grown = causes(
        &old.faults.by_cause,
        &new.faults.by_cause,
        old.total.max(new.total),
    );
    let growth = |cause: &CauseChange| cause.b.value - cause.a.value;
    let most = grown.iter().map(growth).fold(0.0, f64::max);
    grown.retain(|cause| growth(cause) >= LEAST_FAULTS.max(CAUSE_OF_LARGEST * most));
    grown.truncate(CAUSES);
    let mut stacks = stacks(&old.faults.sites, &new.faults.sites);
    let all: f64 = grown.iter().map(growth).sum();
    if let Some(main) = grown
        .first()
        .filter(|main| growth(main) >= MOST_OF_ALL * all)
    {
        for stack in &mut stacks {
            stack.cause = main.cause;
            stack.label.clone_from(&main.label);
        }
    }
    Culprit {
        causes: grown,
        stacks,
        ..Culprit::default()
    }
}

/// Stacks that grew. Functions are compared first: a build that inlines another call changes all
/// stacks through it, but not the responsible function.
fn stacks(old: &[Site], new: &[Site]) -> Vec<StackGrowth> {
    let unseen = unseen(old);
    let (before, after) = (by_function(old), by_function(new));
    let mut grown: Vec<(&str, f64, f64)> = after
        .iter()
        .map(|(&function, &now)| {
            (
                function,
                before.get(function).copied().unwrap_or(unseen),
                now,
            )
        })
        .filter(|(_, then, now)| now - then >= LEAST_FAULTS)
        .collect();
    grown.sort_by(|a, b| (b.2 - b.1).total_cmp(&(a.2 - a.1)));
    let most = grown.first().map_or(0.0, |(_, then, now)| now - then);
    grown.retain(|(_, then, now)| now - then >= OF_LARGEST * most);
    grown.truncate(STACKS);
    let heaviest = |function: &str| {
        let of = new.iter().filter(|site| site.culprit == function);
        of.max_by(|a, b| growth(a, old, unseen).total_cmp(&growth(b, old, unseen)))
    };
    let message = |(function, then, now): (&str, f64, f64)| {
        let site = heaviest(function)?;
        let before = same_in(old, site);
        let (then, now) = match before {
            Some(before) => (before.faults, site.faults),
            None => (then, now),
        };
        Some(StackGrowth {
            stack: site.stack.clone(),
            culprit: function.to_owned(),
            cause: site.main_cause,
            label: Cause::label(site.main_cause).to_owned(),
            old: then,
            new: now,
        })
    };
    grown.into_iter().filter_map(message).collect()
}

/// Upper bound of the faults of a stack that is not listed.
fn unseen(sites: &[Site]) -> f64 {
    match sites.len() < Site::MOST {
        true => 0.0,
        false => sites
            .iter()
            .map(|site| site.faults)
            .fold(f64::INFINITY, f64::min),
    }
}

fn by_function(sites: &[Site]) -> BTreeMap<&str, f64> {
    let mut faults = BTreeMap::new();
    for site in sites {
        *faults.entry(&*site.culprit).or_insert(0.0) += site.faults;
    }
    faults
}

/// The same stack in a run whose stacks may contain fewer outer frames.
fn same_in<'a>(sites: &'a [Site], site: &Site) -> Option<&'a Site> {
    let same =
        |other: &&Site| other.stack.ends_with(&site.stack) || site.stack.ends_with(&other.stack);
    sites.iter().find(same)
}

fn growth(site: &Site, old: &[Site], unseen: f64) -> f64 {
    let before = same_in(old, site);
    site.faults - before.map_or(unseen, |before| before.faults)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagewise_model::findings::Share;
    use pagewise_model::units::Estimate;

    fn site(stack: &[&str], culprit: &str, faults: f64) -> Site {
        Site {
            stack: stack.iter().map(|&name| name.to_owned()).collect(),
            culprit: culprit.to_owned(),
            faults,
            main_cause: Cause::RefaultAfterBrk,
        }
    }

    fn seen(first: f64, again: f64, sites: Vec<Site>) -> FaultsSeen {
        let share = |key, faults| Share {
            key,
            faults: Estimate::exact(faults),
            time: None,
        };
        FaultsSeen {
            by_cause: vec![
                share(Cause::FirstTouch, first),
                share(Cause::RefaultAfterBrk, again),
            ],
            sites,
        }
    }

    fn found(old: &FaultsSeen, new: &FaultsSeen) -> Culprit {
        let observed = |faults, total| Observed { faults, total };
        culprit(observed(old, 10_000.0), observed(new, 11_000.0))
    }

    #[test]
    fn the_cause_and_the_stack_that_grew_are_named() {
        let old = seen(
            9_000.0,
            1_000.0,
            vec![
                site(&["main", "load"], "load", 9_000.0),
                site(&["main", "parse", "malloc"], "parse", 900.0),
            ],
        );
        let new = seen(
            9_003.0,
            2_100.0,
            vec![
                site(&["main", "load"], "load", 9_003.0),
                site(&["main", "parse", "malloc"], "parse", 700.0),
                site(&["main", "parse", "grow", "malloc"], "parse", 1_300.0),
            ],
        );
        let found = found(&old, &new);
        let causes: Vec<Cause> = found.causes.iter().map(|cause| cause.cause).collect();
        assert_eq!(causes, [Cause::RefaultAfterBrk]);
        let [stack] = found.stacks.as_slice() else {
            panic!("{:?}", found.stacks)
        };
        assert_eq!(
            (&*stack.culprit, stack.old, stack.new),
            ("parse", 900.0, 2_000.0)
        );
        assert_eq!(stack.stack, ["main", "parse", "grow", "malloc"]);
        assert_eq!(stack.cause, Cause::RefaultAfterBrk);
    }

    #[test]
    fn stacks_that_go_less_far_out_in_one_run_are_the_same() {
        let sites = |outer: &[&'static str], again: f64| {
            let stack = |inner: &[&'static str]| [outer, inner].concat();
            vec![
                site(&stack(&["main", "load", "take"]), "take", 9_000.0),
                site(&stack(&["main", "parse", "take"]), "take", again),
            ]
        };
        let old = seen(9_000.0, 1_000.0, sites(&[], 1_000.0));
        let new = seen(9_000.0, 1_400.0, sites(&["_start"], 1_400.0));
        let found = found(&old, &new);
        let stack = found.stacks.first().expect("it grew");
        assert_eq!(stack.stack, ["_start", "main", "parse", "take"]);
        assert_eq!((stack.old, stack.new), (1_000.0, 1_400.0));
    }

    #[test]
    fn the_stack_that_grew_is_named_among_several_callers() {
        let sites = |again: f64| {
            vec![
                site(&["main", "load", "take"], "take", 9_000.0),
                site(&["main", "parse", "take"], "take", again),
            ]
        };
        let mut old = seen(9_000.0, 1_000.0, sites(1_000.0));
        let mut new = seen(9_000.0, 2_000.0, sites(2_000.0));
        for site in old.sites.iter_mut().chain(&mut new.sites) {
            site.main_cause = Cause::FirstTouch;
        }
        let found = found(&old, &new);
        assert_eq!(found.stacks[0].stack, ["main", "parse", "take"]);
        assert_eq!(
            (found.stacks[0].old, found.stacks[0].new),
            (1_000.0, 2_000.0)
        );
        assert_eq!(found.stacks[0].cause, Cause::RefaultAfterBrk);
    }

    #[test]
    fn an_unlisted_function_may_equal_the_last_listed_one() {
        let listed: Vec<Site> = (0..Site::MOST)
            .map(|at| {
                let name = format!("f{at}");
                site(&["main", &name], &name, 100.0)
            })
            .collect();
        let (old, mut new) = (
            seen(0.0, 2_000.0, listed.clone()),
            seen(0.0, 2_000.0, listed),
        );
        new.sites[0] = site(&["main", "g"], "g", 104.0);
        assert_eq!(found(&old, &new).stacks, []);
        new.sites[0] = site(&["main", "g"], "g", 150.0);
        assert_eq!(found(&old, &new).stacks[0].old, 100.0);
    }
}
