//! The best of several settings, or why there is none.

use crate::answer::{Evidence, Kind};
use crate::proof::{Comparison, Verdict};
use crate::tuning::Tuning;

impl Evidence for Tuning {
    const KIND: Kind = Kind::Tuning;

    fn verdict(&self) -> String {
        verdict(self)
    }
}

/// What to set, and what it gains.
fn verdict(found: &Tuning) -> String {
    match &found.winner {
        Some(winner) => format!("{}: {}.", winner.name, winner.summary),
        None => no_winner(found),
    }
}

fn no_winner(found: &Tuning) -> String {
    let undecided = |c: &&Comparison| c.verdict == Verdict::Undecided;
    let looks = |c: &Comparison| *found.clock.speed_up(c);
    let undecided: Vec<&Comparison> = found.comparisons.iter().filter(undecided).collect();
    let best = undecided
        .iter()
        .filter(|c| looks(c).low > 1.0)
        .max_by(|a, b| looks(a).low.total_cmp(&looks(b).low));
    if found.luck {
        "This is luck: the best settings make the command faster, but so does a meaningless variable of the same length, because the faults depend on the exact layout of the heap. No setting can claim the gain; see the notes."
            .to_owned()
    } else if let Some(best) = best {
        format!(
            "Inconclusive: '{}' looks {:.2} times as fast, but there were too few runs to prove it. Use a larger --budget.",
            best.arm,
            looks(best).value
        )
    } else if !undecided.is_empty() {
        "No setting was proved to make the command faster. Some are undecided: use a larger --budget or a quieter machine."
            .to_owned()
    } else if found.comparisons.iter().all(|one| one.pairs == 0) {
        "No setting was tried: the budget was too short for a run of one. Use a larger --budget."
            .to_owned()
    } else {
        "Nothing to gain here: no setting made the command faster. Leave it as it is.".to_owned()
    }
}
