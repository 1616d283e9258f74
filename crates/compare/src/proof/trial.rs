//! What the first run with settings shows: whether they deserve more.

use pagewise_model::run::RunCost;
use pagewise_model::units::Nanos;

/// Settings that change faults and memory by at most one part in this many change nothing: fault counts
/// of one program repeat within about 1 %.
const UNTOUCHED: u64 = 100;
/// The same for small programs, whose stack and libraries are at other addresses in each run.
const UNTOUCHED_FAULTS: u64 = 32;
const UNTOUCHED_BYTES: u64 = 512 << 10;
const UNTOUCHED_READS: u64 = 16;
/// System time and waits repeat less well: within one part in this many …
const UNTOUCHED_KERNEL: u64 = 4;
/// … and, if there is little of them, within two ticks of a kernel that counts 100 per second …
const UNTOUCHED_SYSTEM: Nanos = Nanos(20_000_000);
/// … and the waits of a shell for its children.
const UNTOUCHED_WAITS: u64 = 32;
/// Regardless of everything else, a setting that saves this much CPU time does something …
const GAIN: f64 = 1.05;
/// … or elapsed time, unless that can be explained by waiting for a busy CPU.
const WALL_GAIN: f64 = 1.5;
const WALL_SAVED: Nanos = Nanos(500_000_000);
/// Arms whose first run was slower than the baseline's by more than runs of one program differ get no
/// pairs.
const LEAST_GAIN: f64 = 0.97;
/// Most arms that get pairs of runs: a proof of more takes too long for what the last ones can add.
const MOST_PAIRED: usize = 4;
/// Gains of single runs within this factor do not differ: on a busy machine two runs of one program do.
const NOISE: f64 = 1.25;
/// An arm whose first run took this many times as long as that of the best is no competitor: runs of
/// one program differ by less on all but the busiest machines.
const FAR_BEHIND: f64 = 1.3;

/// Whether a run with settings equals one without in everything that settings of memory management
/// can change: faults, memory, system time, waits, and reads if each run `has_reads`, having found
/// its files on disk.
#[must_use]
pub fn changes_nothing(baseline: &RunCost, run: &RunCost, has_reads: bool) -> bool {
    let alike = |of: fn(&RunCost) -> u64, part: u64, least: u64| {
        let (a, b) = (of(baseline), of(run));
        a.abs_diff(b) <= (a.max(b) / part).max(least)
    };
    let reads = || alike(|cost| cost.major_faults, UNTOUCHED, UNTOUCHED_READS);
    alike(RunCost::faults, UNTOUCHED, UNTOUCHED_FAULTS)
        && alike(|cost| cost.max_rss.0, UNTOUCHED, UNTOUCHED_BYTES)
        && alike(|cost| cost.system.0, UNTOUCHED_KERNEL, UNTOUCHED_SYSTEM.0)
        && alike(
            |cost| cost.voluntary_switches,
            UNTOUCHED_KERNEL,
            UNTOUCHED_WAITS,
        )
        && (!has_reads || reads())
        && !is_faster(baseline, run)
}

/// Whether a run with settings against faults has as many of them, and no less system time or waits
/// than one without: it changes something else. A decrease within the variation of fault counts
/// does not count.
#[must_use]
pub fn avoids_nothing(baseline: &RunCost, run: &RunCost) -> bool {
    let no_less = |of: fn(&RunCost) -> u64, part: u64, least: u64| {
        let (without, with) = (of(baseline), of(run));
        with >= without - (without / part).max(least).min(without)
    };
    no_less(RunCost::faults, UNTOUCHED, 0)
        && no_less(|cost| cost.system.0, UNTOUCHED_KERNEL, UNTOUCHED_SYSTEM.0)
        && no_less(
            |cost| cost.voluntary_switches,
            UNTOUCHED_KERNEL,
            UNTOUCHED_WAITS,
        )
        && !is_faster(baseline, run)
}

fn is_faster(baseline: &RunCost, run: &RunCost) -> bool {
    let gained = baseline.wall.0.saturating_sub(run.wall.0);
    let saved = baseline.cpu().0.saturating_sub(run.cpu().0);
    (saved >= UNTOUCHED_SYSTEM.0 && ratio(baseline.cpu(), run.cpu()) >= GAIN)
        || (gained >= WALL_SAVED.0 && ratio(baseline.wall, run.wall) >= WALL_GAIN)
}

/// Speed-up of one run over the baseline's, in CPU time or elapsed time: an indication of where
/// more runs are worthwhile, not a measurement.
#[must_use]
pub fn trial_gain(baseline: &RunCost, run: &RunCost) -> f64 {
    ratio(baseline.wall, run.wall).max(ratio(baseline.cpu(), run.cpu()))
}

/// The runs that deserve pairs of runs, by index: those that are not far behind the best, at most some,
/// and none that lost.
#[must_use]
pub fn promising(baseline: &RunCost, runs: &[RunCost]) -> Vec<usize> {
    let gain = |run: &RunCost| trial_gain(baseline, run);
    let best = runs.iter().max_by(|a, b| gain(a).total_cmp(&gain(b)));
    let deserves = |run: &RunCost| {
        gain(run) >= LEAST_GAIN && best.is_none_or(|best| !is_far_behind(best, run))
    };
    let mut kept: Vec<usize> = (0..runs.len()).filter(|&at| deserves(&runs[at])).collect();
    kept.sort_by(|&a, &b| gain(&runs[b]).total_cmp(&gain(&runs[a])));
    kept.truncate(MOST_PAIRED);
    kept.sort_unstable();
    by_gain(kept, |at| gain(&runs[at]))
}

/// Sorts arms by the gain of their trial runs. Those within the noise of the best keep their order,
/// in which the surest and cheapest settings come first.
#[must_use]
pub fn by_gain(mut arms: Vec<usize>, gain: impl Fn(usize) -> f64) -> Vec<usize> {
    let best = arms.iter().map(|&at| gain(at)).fold(0.0, f64::max);
    let rank = |at: usize| match gain(at) {
        near if near >= best / NOISE => f64::MAX,
        less => less,
    };
    arms.sort_by(|&a, &b| rank(b).total_cmp(&rank(a)));
    arms
}

/// A peak of memory below this part of the baseline's is a gain of its own …
const LESS_MEMORY: f64 = 0.9;
/// … for programs that take no longer than so many times as long …
const FOR_MEMORY: f64 = 1.5;
/// … of this many arms at most.
const MOST_FOR_MEMORY: usize = 2;

/// The runs with least memory among those that save some, by index.
#[must_use]
pub fn smallest(baseline: &RunCost, runs: &[RunCost]) -> Vec<usize> {
    let saves = |run: &RunCost| {
        (run.max_rss.0 as f64) < LESS_MEMORY * baseline.max_rss.0 as f64
            && ratio(run.cpu(), baseline.cpu()) <= FOR_MEMORY
    };
    let mut kept: Vec<usize> = (0..runs.len()).filter(|&at| saves(&runs[at])).collect();
    kept.sort_by_key(|&at| runs[at].max_rss);
    kept.truncate(MOST_FOR_MEMORY);
    kept
}

/// Whether the first run of an arm took so much more time than that of another, by both clocks, that
/// more runs of it would hardly make it the better one.
fn is_far_behind(best: &RunCost, run: &RunCost) -> bool {
    ratio(run.wall, best.wall) >= FAR_BEHIND
        && ratio(run.cpu(), best.cpu()) >= FAR_BEHIND
        // Of short programs the clock's ticks are that much.
        && run.cpu().0 >= best.cpu().0 + UNTOUCHED_SYSTEM.0
}

fn ratio(baseline: Nanos, run: Nanos) -> f64 {
    baseline.as_secs_f64() / run.as_secs_f64().max(1e-9)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagewise_model::units::Bytes;

    #[test]
    fn arms_within_the_noise_of_the_best_keep_their_order() {
        let gains = [1.3, 2.4, 1.9, 2.6, 2.0, 2.2];
        let order = by_gain((0..gains.len()).collect(), |at| gains[at]);
        assert_eq!(order, [1, 3, 5, 4, 2, 0]);
    }

    #[test]
    fn far_behind_is_what_takes_much_more_by_both_clocks() {
        let best = RunCost {
            wall: Nanos(1_000_000_000),
            user: Nanos(900_000_000),
            ..RunCost::default()
        };
        let slower = |wall: u64, user: u64| RunCost {
            wall: Nanos(wall * 1_000_000),
            user: Nanos(user * 1_000_000),
            ..RunCost::default()
        };
        assert!(is_far_behind(&best, &slower(1_500, 1_400)));
        assert!(!is_far_behind(&best, &slower(1_500, 1_000)));
        assert!(!is_far_behind(&best, &slower(1_100, 1_400)));
        assert!(!is_far_behind(&best, &best));
        let short = slower(20, 10);
        assert!(!is_far_behind(&short, &slower(60, 25)));
        assert!(is_far_behind(&short, &slower(60, 35)));
    }

    const BASELINE: RunCost = RunCost {
        wall: Nanos(3_000_000_000),
        user: Nanos(1_000_000_000),
        system: Nanos(1_000_000_000),
        minor_faults: 100_000,
        major_faults: 0,
        max_rss: Bytes(1 << 30),
        voluntary_switches: 10_000,
        involuntary_switches: 100,
    };

    #[test]
    fn another_allocator_with_as_many_faults_may_gain() {
        let faster = RunCost {
            user: Nanos(700_000_000),
            ..BASELINE
        };
        assert!(!changes_nothing(&BASELINE, &faster, false));
    }

    #[test]
    fn the_best_few_that_do_not_lose_deserve_pairs() {
        let run = |user: u64| RunCost {
            wall: Nanos(user * 1_000_000),
            user: Nanos(user * 1_000_000),
            ..RunCost::default()
        };
        let of = |users: &[u64]| {
            let runs: Vec<RunCost> = users.iter().map(|user| run(*user)).collect();
            promising(&run(1_000), &runs)
        };
        assert_eq!(of(&[1_010, 200, 1_500, 210]), [1, 3]);
        assert_eq!(of(&[990, 1_010, 980, 1_000, 970]), [0, 2, 3, 4]);
        assert!(of(&[1_100, 1_300]).is_empty());
    }

    #[test]
    fn an_arm_with_a_fraction_of_the_memory_gets_pairs_too() {
        let run = |mib: u64, user: u64| RunCost {
            max_rss: Bytes(mib << 20),
            user: Nanos(user * 1_000_000),
            ..RunCost::default()
        };
        let runs = [
            run(190, 700),
            run(14, 900),
            run(180, 900),
            run(15, 5_000),
            run(20, 900),
        ];
        assert_eq!(smallest(&run(190, 1_000), &runs), [1, 4]);
    }

    #[test]
    fn another_use_of_the_kernel_shows_a_settings_reach() {
        let untouched = |run: RunCost| changes_nothing(&BASELINE, &run, false);
        assert!(untouched(RunCost {
            minor_faults: 100_900,
            system: Nanos(1_200_000_000),
            voluntary_switches: 8_000,
            ..BASELINE
        }));
        // Fewer calls, fewer waits for a lock: neither needs to change faults or memory.
        assert!(!untouched(RunCost {
            system: Nanos(700_000_000),
            ..BASELINE
        }));
        assert!(!untouched(RunCost {
            voluntary_switches: 7_000,
            ..BASELINE
        }));
        assert!(!untouched(RunCost {
            minor_faults: 98_000,
            ..BASELINE
        }));
        assert!(!untouched(RunCost {
            wall: Nanos(1_900_000_000),
            ..BASELINE
        }));
        let short = |wall| RunCost {
            wall: Nanos(wall),
            user: Nanos(40_000_000),
            system: Nanos(10_000_000),
            ..BASELINE
        };
        assert!(changes_nothing(
            &short(400_000_000),
            &short(60_000_000),
            false
        ));
    }

    #[test]
    fn what_is_for_fewer_faults_and_has_as_many_avoids_nothing() {
        let more_memory = RunCost {
            max_rss: Bytes(2 << 30),
            ..BASELINE
        };
        assert!(!changes_nothing(&BASELINE, &more_memory, false));
        assert!(avoids_nothing(&BASELINE, &more_memory));
        for less in [
            RunCost {
                minor_faults: 98_000,
                ..more_memory
            },
            RunCost {
                system: Nanos(700_000_000),
                ..more_memory
            },
            RunCost {
                voluntary_switches: 7_000,
                ..more_memory
            },
            RunCost {
                wall: Nanos(1_900_000_000),
                ..more_memory
            },
        ] {
            assert!(!avoids_nothing(&BASELINE, &less), "{less:?}");
        }
    }

    #[test]
    fn reads_count_only_where_each_run_begins_cold() {
        let run = RunCost {
            major_faults: 500,
            ..BASELINE
        };
        assert!(changes_nothing(&BASELINE, &run, false));
        assert!(!changes_nothing(&BASELINE, &run, true));
    }

    #[test]
    fn small_programs_differ_from_run_to_run() {
        let small = RunCost {
            system: Nanos(2_000_000),
            minor_faults: 200,
            voluntary_switches: 3,
            ..BASELINE
        };
        let again = RunCost {
            system: Nanos(9_000_000),
            minor_faults: 220,
            voluntary_switches: 20,
            ..small
        };
        assert!(changes_nothing(&small, &again, false));
    }
}
