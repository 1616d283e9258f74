//! Notes on proofs whose runs drove a server.

use crate::FEWEST_EARLY;
use pagewise_model::proof::Proof;
use pagewise_model::quantity::shown_factor;
use pagewise_model::run::RunCost;

/// Loads whose elapsed times differ by less than one part in this many ran for a fixed time …
const SET_TIME: u64 = 200;
/// … if CPU time differs by more than this many times that.
const MORE: u64 = 4;

/// What was measured, what that means for requests, and whether the load can show it.
#[must_use]
pub fn notes(proof: &Proof, load: &str) -> Vec<String> {
    let mut notes = vec![format!(
        "Each run started the server, drove it with '{load}' and stopped it. Elapsed time is the load's; CPU time, faults and memory are those of the server's processes."
    )];
    let runs = || proof.arms.iter().flat_map(|arm| &arm.runs);
    if has_set_time(runs) {
        notes.push(
            "The load takes the same time in each run: if it runs for a fixed time instead of a fixed number of requests, neither clock shows what a setting gains."
                .to_owned(),
        );
    } else {
        notes.extend(requests(proof));
    }
    notes
}

/// The winner's gain in requests.
fn requests(proof: &Proof) -> Option<String> {
    let name = proof.winner.as_deref()?;
    let compared = proof.comparisons.iter().find(|one| one.arm == name);
    let found = proof.confirmation.as_ref().or(compared)?;
    let (wall, cpu) = (
        shown_factor(&found.wall_speedup)?,
        shown_factor(&found.cpu_speedup)?,
    );
    Some(format!(
        "If the load sends the same requests each time, '{name}' serves {wall} as many per second, and {cpu} as many per CPU second."
    ))
}

/// Whether elapsed time is the same whatever the server does.
fn has_set_time<'a, I: Iterator<Item = &'a RunCost>>(runs: impl Fn() -> I) -> bool {
    let spread = |of: fn(&RunCost) -> u64| {
        let (least, most) = (runs().map(of).min(), runs().map(of).max());
        let (least, most) = (least.unwrap_or(0), most.unwrap_or(0));
        (most - least, most)
    };
    let (wall, longest) = spread(|run| run.wall.0);
    let (cpu, _) = spread(|run| run.cpu().0);
    runs().count() >= 2 * FEWEST_EARLY as usize
        && wall < longest / SET_TIME
        && cpu > wall.saturating_mul(MORE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagewise_model::advice::Settings;
    use pagewise_model::proof::{Arm, Comparison, Verdict};
    use pagewise_model::units::{Estimate, Nanos};

    fn proof(seconds: [f64; 2], cpu: [f64; 2]) -> Proof {
        let runs = |at: usize| {
            let wall = |round: usize| seconds[at] * (1.0 + 0.0001 * round as f64);
            let run = |round| RunCost {
                wall: Nanos::from_secs_f64(wall(round)),
                user: Nanos::from_secs_f64(cpu[at]),
                ..RunCost::default()
            };
            (0..6).map(run).collect()
        };
        let arm = |name: &str, at| Arm {
            name: name.to_owned(),
            settings: Settings::default(),
            runs: runs(at),
            failed: None,
        };
        let ratio = |value| Estimate {
            value,
            low: value - 0.1,
            high: value + 0.1,
        };
        Proof {
            arms: vec![arm("baseline", 0), arm("cure", 1)],
            comparisons: vec![Comparison {
                arm: "cure".to_owned(),
                wall_speedup: ratio(seconds[0] / seconds[1]),
                cpu_speedup: ratio(cpu[0] / cpu[1]),
                fault_ratio: Estimate::exact(0.1),
                rss_change_bytes: 0.0,
                p_adjusted: 0.01,
                pairs: 6,
                verdict: Verdict::Faster,
            }],
            winner: Some("cure".to_owned()),
            confirmation: None,
            summary: String::new(),
            notes: Vec::new(),
        }
    }

    #[test]
    fn a_gain_is_told_in_requests() {
        let notes = notes(&proof([3.0, 2.0], [2.0, 1.0]), "ab -n 9000");
        assert!(notes[0].contains("drove it with 'ab -n 9000'"), "{notes:?}");
        let message = "'cure' serves ×1.50 [1.40, 1.60] as many per second, and ×2.0 [1.90, 2.1] as many \
                    per CPU second.";
        assert!(notes[1].ends_with(message), "{notes:?}");
    }

    #[test]
    fn a_load_of_a_set_time_is_told_to_tell_nothing() {
        let notes = notes(&proof([3.0, 3.0], [2.0, 1.9]), "wrk -d 3s");
        assert!(notes[1].contains("runs for a fixed time"), "{notes:?}");
        assert_eq!(notes.len(), 2);
    }
}
