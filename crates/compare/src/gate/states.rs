//! Figures that have two states: an arena more or less, a huge page or none. How often a run is in
//! which state is no growth of either.

use super::figures;
use pagewise_model::gate::{GateSide, GateVerdict, Judged};

/// The gap between two states, as a share of the lower one, is at least this …
const LEAST_GAP: f64 = 0.02;
/// … and the runs of one state differ by at most this share of it: more is no state.
const WITHIN: f64 = 0.01;

/// Two states, and how many runs of the old and the new side were in the higher one.
#[derive(Clone, Copy, Debug, PartialEq)]
struct States {
    lower: f64,
    higher: f64,
    old: usize,
    new: usize,
}

/// Takes growth back that is a change of how often runs are in one of two states, which both sides
/// have or the old side shows by itself; says so in a sentence.
pub(super) fn withdraw(figure: &mut Judged, old: &GateSide, new: &GateSide) -> Option<String> {
    if figure.metric.is_time() || figure.verdict != GateVerdict::Grown {
        return None;
    }
    let (of_old, of_new) = (
        figures(&old.runs, figure.metric),
        figures(&new.runs, figure.metric),
    );
    let states = states(&of_old, &of_new)?;
    figure.verdict = GateVerdict::Unsure;
    Some(format!(
        "Runs are in one of two states of {}: {} or {}. {} of {} old runs and {} of {} new ones were in the higher: how often has changed, not how much; more --pairs tell the shares.",
        figure.metric.label(),
        figure.metric.amount(states.lower),
        figure.metric.amount(states.higher),
        states.old,
        of_old.len(),
        states.new,
        of_new.len(),
    ))
}

/// The states, if all runs are in one of two and one side was seen in both.
fn states(old: &[f64], new: &[f64]) -> Option<States> {
    let mut all = [old, new].concat();
    all.sort_by(f64::total_cmp);
    let (at, gap) = (1..all.len())
        .map(|at| (at, all[at] - all[at - 1]))
        .max_by(|a, b| a.1.total_cmp(&b.1))?;
    let (low, high) = all.split_at(at);
    let is_tight = |state: &[f64]| state[state.len() - 1] - state[0] <= WITHIN * state[0];
    let are_apart = gap >= LEAST_GAP * low[low.len() - 1].max(1.0);
    if !are_apart || !is_tight(low) || !is_tight(high) {
        return None;
    }
    let is_high = |side: &[f64]| side.iter().filter(|&&value| value >= high[0]).count();
    let (of_old, of_new) = (is_high(old), is_high(new));
    let is_in_both = (1..old.len()).contains(&of_old) || (1..new.len()).contains(&of_new);
    is_in_both.then(|| States {
        lower: low[low.len() / 2],
        higher: high[high.len() / 2],
        old: of_old,
        new: of_new,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_that_both_sides_have_is_named() {
        let old = [100.0, 100.1, 110.0, 100.2, 100.0, 100.1];
        let found = states(&old, &[110.0, 110.1, 110.2, 110.0, 110.1, 110.0]);
        let found = found.unwrap();
        assert_eq!((found.old, found.new), (1, 6));
        assert!(found.lower < 101.0 && found.higher > 109.0, "{found:?}");
    }

    #[test]
    fn growth_and_spread_are_no_states() {
        let old = [100.0, 100.1, 100.2, 100.0];
        assert_eq!(states(&old, &[110.0, 110.1, 110.2, 110.0]), None);
        assert_eq!(states(&[100.0, 103.0, 300.0], &[110.0, 114.0, 118.0]), None);
        assert_eq!(states(&[100.0, 100.0, 300.0], &[110.0, 110.0, 110.0]), None);
        assert_eq!(states(&[100.0], &[100.0]), None);
        assert_eq!(states(&[], &[]), None);
    }
}
