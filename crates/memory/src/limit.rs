//! Which limit to try next, to find the smallest that a program fits into.
//!
//! The interval between the largest limit that is too small and the smallest that is enough is halved
//! until it is a twentieth of the latter, which must then be enough three times. A limit that was once
//! too small is: where runs differ, the answer is the larger one.

use pagewise_model::memory_limit::{LimitOutcome, LimitRun};
use pagewise_model::units::Bytes;

/// Part of the limit (1 in so many) to which it is found.
const EXACT: u64 = 20;
/// Runs that must fit.
const AGREE: usize = 3;
/// Most runs in all.
const MOST_RUNS: usize = 20;
/// Limits are whole multiples of this, and at least so many bytes: the kernel counts pages in batches
/// of 64 for each CPU (`MEMCG_CHARGE_BATCH`).
const STEP: u64 = 64 << 10;
const LEAST: u64 = 1 << 20;

/// The limit to try after these runs, of which the first had none; `None` once the smallest is known, or
/// none up to `most` is enough.
#[must_use]
pub fn next_limit(runs: &[LimitRun], most: Bytes) -> Option<Bytes> {
    let peak = runs.first()?.peak?.0;
    if runs.len() > MOST_RUNS {
        return None;
    }
    let (low, high) = bounds(runs);
    let Some(high) = high else {
        let wanted = match low {
            0 => peak,
            low => low + low / 10,
        };
        let limit = whole(wanted.max(LEAST)).min(most.0);
        return (limit > low).then_some(Bytes(limit));
    };
    let middle = whole(low + (high - low) / 2).max(LEAST);
    if high - low > high / EXACT && middle > low && middle < high {
        return Some(Bytes(middle));
    }
    let agreed = runs.iter().filter(|run| run.limit == Some(Bytes(high)));
    (agreed.count() < AGREE).then_some(Bytes(high))
}

/// The smallest limit that is enough, and the largest that is not.
#[must_use]
pub fn smallest_limit(runs: &[LimitRun]) -> (Option<Bytes>, Option<Bytes>) {
    let (low, high) = bounds(runs);
    (high.map(Bytes), (low > 0).then_some(Bytes(low)))
}

/// The largest limit that was too small, 0 for none, and the smallest above that was enough.
fn bounds(runs: &[LimitRun]) -> (u64, Option<u64>) {
    let limits = |fits: bool| {
        let runs = runs.iter();
        let runs = runs.filter(move |run| (run.outcome == LimitOutcome::Fits) == fits);
        runs.filter_map(|run| run.limit).map(|limit| limit.0)
    };
    let low = limits(false).max().unwrap_or(0);
    (low, limits(true).filter(|limit| *limit > low).min())
}

fn whole(bytes: u64) -> u64 {
    bytes.next_multiple_of(STEP)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn run(limit: Option<Bytes>, fits: bool, peak: u64) -> LimitRun {
        LimitRun {
            limit,
            outcome: match fits {
                true => LimitOutcome::Fits,
                false => LimitOutcome::Killed,
            },
            stalled: None,
            elapsed_ns: 1,
            peak: Some(Bytes(peak)),
        }
    }

    /// What is found of a program that needs so much, and in how many runs.
    fn found(needs: impl Fn(usize) -> u64, peak: u64, most: u64) -> (Option<Bytes>, usize) {
        let mut runs = vec![run(None, true, peak)];
        while let Some(limit) = next_limit(&runs, Bytes(most)) {
            runs.push(run(Some(limit), limit.0 >= needs(runs.len()), peak));
        }
        (smallest_limit(&runs).0, runs.len())
    }

    #[test]
    fn the_smallest_limit_is_found_to_a_twentieth() {
        for needs in [2, 7, 30, 100, 333, 800, 999] {
            let needs = needs * MIB;
            let (found, runs) = found(|_| needs, 1000 * MIB, 10_000 * MIB);
            let found = found.unwrap().0;
            assert!(found >= needs, "{needs}");
            assert!(found - needs <= found / EXACT + STEP, "{needs} {found}");
            assert!(runs <= 19, "{needs} {runs}");
        }
    }

    #[test]
    fn a_program_that_needs_more_than_its_peak_gets_more() {
        let (enough, _) = found(|_| 130 * MIB, 100 * MIB, 1000 * MIB);
        let enough = enough.unwrap().0;
        assert!((130 * MIB..138 * MIB).contains(&enough), "{enough}");
        assert_eq!(found(|_| 130 * MIB, 100 * MIB, 120 * MIB).0, None);
    }

    #[test]
    fn a_limit_that_is_enough_only_once_is_not_the_answer() {
        // Runs alternate between needing 50 and 60 MiB.
        let needs = |run: usize| {
            if run.is_multiple_of(2) {
                60 * MIB
            } else {
                50 * MIB
            }
        };
        let (found, _) = found(needs, 100 * MIB, 1000 * MIB);
        assert!(found.unwrap().0 >= 57 * MIB, "{found:?}");
    }
}
