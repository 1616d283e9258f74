//! What `pagewise run` would cost a program that a memory limit holds down.
//!
//! One run at a limit shows one point of a curve: how many evicted pages come back with the memory
//! that it had, and how long each wait took. Two things are needed beyond it.
//!
//! * **How the pages are used.** The kernel reads up to eight swapped pages at a time where faults go
//!   through memory in order (swap_vma_readahead() in mm/swap_state.c), and one where they do not.
//!   So pages read per wait tell the share of streams. A stream over more than memory misses every
//!   page under the kernel's lists; `pagewise run` keeps a fixed part of it, so that it misses the
//!   part that does not fit, and reads that in large pieces. Pages without order are missed in
//!   proportion to what is not in memory, which is the same for both.
//! * **What a wait costs.** The disk is taken to be the same: a page without order takes as long as it
//!   did (docs/notes/paging.md: random reads of 1 to 8 threads 0.94 to 1.13 times as fast as swap),
//!   one of a stream a twelfth of that (6.5 µs beside 80 µs).
//!
//! A curve of misses is convex where hot pages are kept: between the memory that the program had and
//! what it needs the straight line is the most, below it the least. The interval says by how much.

use pagewise_model::findings::{Diagnosis, Findings, Severity};
use pagewise_model::paging_forecast::{
    ForecastBasis, ForecastOutcome, ForecastSize, PagingForecast,
};
use pagewise_model::quantity::factor_digits;
use pagewise_model::units::{Bytes, Estimate, Nanos};

/// Findings about memory that a limit takes away.
const OF_A_LIMIT: [&str; 4] = ["limit", "thrashing", "reclaim", "swap"];
/// Sizes that are foretold, as percentages of what is needed.
const PERCENT: [u8; 3] = [75, 50, 25];
/// Fewer waits tell too little.
const LEAST_WAITS: u64 = 200;
/// A program that had this part of what it needs shows no curve.
const NEARLY_ALL: f64 = 0.97;
/// Pages that the kernel reads at a time along a stream (`vm.page-cluster` = 3).
const READ_AHEAD: f64 = 8.0;
/// A page of a stream under `pagewise run`, as a part of a wait, and what the part may be.
const STREAMED: Estimate = Estimate {
    value: 1.0 / 12.0,
    low: 1.0 / 24.0,
    high: 1.0 / 6.0,
};
/// A wait under `pagewise run`, as a multiple of one for swap.
const WAIT: Estimate = Estimate {
    value: 1.0,
    low: 0.7,
    high: 1.4,
};
/// Seconds of a fault that reads nothing (docs/notes/paging.md, one fault).
const FAULT_SECONDS: f64 = 1.55e-6;
/// A program of which less than this part is its own work leaves nothing to compare with.
const LEAST_PART: f64 = 0.02;
/// How far from the straight line the number of misses may be, as a power of it.
const BEND: f64 = 1.5;

/// Enters the forecast into findings about a limit, and tells it in the advice.
pub fn tell(findings: &mut Findings) {
    let costs =
        |one: &Diagnosis| one.severity > Severity::Note && OF_A_LIMIT.contains(&one.id.as_str());
    if !findings.diagnoses.iter().any(costs) {
        return;
    }
    let forecast = match basis(findings) {
        Ok(basis) => of(basis),
        Err(why) => PagingForecast {
            unknown: Some(why),
            ..PagingForecast::default()
        },
    };
    let text = words(&forecast);
    let is_of_limit = |one: &&mut pagewise_model::advice::Advice| {
        one.settings.0.is_empty() && one.cures.iter().any(|id| OF_A_LIMIT.contains(&id.as_str()))
    };
    if let Some(advice) = findings.advice.iter_mut().find(is_of_limit) {
        advice.caveat = Some(match advice.caveat.take() {
            Some(caveat) => format!("{caveat} {text}"),
            None => text,
        });
    }
    findings.evidence.paging_forecast = Some(forecast);
}

/// The forecast in a sentence.
fn words(forecast: &PagingForecast) -> String {
    let Some(basis) = forecast.basis else {
        let why = forecast.unknown.as_deref().unwrap_or("nothing was seen");
        return format!("What it would cost under pagewise run cannot be foretold: {why}.");
    };
    let sizes = forecast.sizes.iter().map(|one| {
        let [value, low, high] =
            [one.slowdown.value, one.slowdown.low, one.slowdown.high].map(factor_digits);
        format!("{} ×{value} ({low} to {high})", one.memory)
    });
    format!(
        "It needs {}. Elapsed time expected under pagewise run --memory, as a multiple of that with enough memory: {}.",
        basis.needs,
        sizes.collect::<Vec<_>>().join(", ")
    )
}

/// The forecast for the usual sizes.
#[must_use]
pub fn of(basis: ForecastBasis) -> PagingForecast {
    let sizes = PERCENT.map(|percent| {
        // Whole MiB, so that the size can be given as it is told.
        let memory = Bytes((basis.needs.0 / 100 * u64::from(percent) + 50) >> 20 << 20);
        ForecastSize {
            percent,
            memory,
            slowdown: slowdown(&basis, memory),
        }
    });
    PagingForecast {
        basis: Some(basis),
        sizes: sizes.to_vec(),
        unknown: None,
    }
}

/// The expected slowdown with this much memory.
#[must_use]
#[expect(
    clippy::cast_precision_loss,
    reason = "sizes, times and counts below 2^53"
)]
pub fn slowdown(basis: &ForecastBasis, memory: Bytes) -> Estimate {
    let (needs, had) = (basis.needs.0 as f64, basis.had.0 as f64);
    let missing = (needs - memory.0 as f64).max(0.0);
    let wait = basis.lost.as_secs_f64() / basis.waits.max(1) as f64;
    let (pages, waits) = (basis.pages as f64, basis.waits as f64);
    // Each wait is for a page without order, or for eight of a stream.
    let streamed = ((pages - waits) * READ_AHEAD / (READ_AHEAD - 1.0)).clamp(0.0, pages);
    let scattered = (pages - streamed).min(waits);
    let line = missing / (needs - had).max(1.0);
    let bent = line.powf(BEND);
    let of_streams = streamed * wait * missing / needs;
    let of_others = scattered * wait;
    let at = |misses: f64, wait: f64, streamed: f64| {
        let lost = of_others * misses * wait + of_streams * streamed;
        1.0 + lost / basis.unhindered.as_secs_f64().max(1e-9)
    };
    Estimate {
        value: at(line, WAIT.value, STREAMED.value),
        low: at(line.min(bent), WAIT.low, STREAMED.low),
        high: at(line.max(bent), WAIT.high, STREAMED.high),
    }
}

/// How far off the forecast was for a run under `memory` that took `wall`.
#[must_use]
pub fn outcome(basis: &ForecastBasis, memory: Bytes, wall: Nanos) -> ForecastOutcome {
    let expected = slowdown(basis, memory);
    let measured = wall.as_secs_f64() / basis.unhindered.as_secs_f64().max(1e-9);
    ForecastOutcome {
        expected,
        measured,
        off_by: expected.value / measured - 1.0,
    }
}

/// What the findings show, or why that is not enough.
fn basis(findings: &Findings) -> Result<ForecastBasis, String> {
    let points = &findings.timeline.points;
    let needs = points.iter().map(|one| (one.rss + one.swap).0).max();
    let had = points.iter().map(|one| one.rss.0).max();
    let (Some(needs), Some(had)) = (needs, had) else {
        return Err("its memory was not read while it ran".to_owned());
    };
    let delays = findings.account.delays;
    let counted = delays.and_then(|delays| Some((delays.swap?, delays.disk?, delays.ready?)));
    let Some((swap, disk, ready)) = counted else {
        return Err(
            "the kernel's delay accounting did not count its waits (pagewise check)".to_owned(),
        );
    };
    let pressure = &findings.timeline.pressure;
    let (Some(first), Some(last)) = (pressure.first(), pressure.last()) else {
        return Err("what the machine read from swap was not counted".to_owned());
    };
    if swap.count < findings.cost.major_faults / 2 {
        return Err(
            "most pages that came back are of files, which pagewise run pages only with --files"
                .to_owned(),
        );
    }
    if swap.count < LEAST_WAITS {
        return Err(format!("it waited for only {} swapped pages", swap.count));
    }
    if ratio(had, needs) > NEARLY_ALL {
        return Err("it had nearly all the memory that it needs".to_owned());
    }
    let [elapsed, cpu, ready] =
        [findings.cost.wall, findings.cost.cpu(), ready.time].map(Nanos::as_secs_f64);
    // A thread sleeps for a swapped page as for any read (io_schedule()): the kernel counts that
    // among waits for disks, and as one for swap only what it takes to begin the read.
    let read = disk.time.as_secs_f64() * ratio(swap.count, disk.count).min(1.0);
    // What faults alone take would be the same with enough memory; the rest is evicting, reclaim
    // and swapping in.
    let usual = ratio(findings.cost.minor_faults, 1) * FAULT_SECONDS;
    let kernel = (findings.cost.system.as_secs_f64() - usual).max(0.0);
    let lost = read + kernel;
    // Waiting for a CPU is left out: it is the same share with any memory.
    let other = (elapsed - ready - cpu - read).max(0.0);
    let all = cpu + read + other;
    let unhindered = all - lost;
    if unhindered < LEAST_PART * all {
        return Err("it did little but wait".to_owned());
    }
    // Times of all threads together, as parts of the elapsed time.
    let of_elapsed = elapsed / (all + ready);
    Ok(ForecastBasis {
        needs: Bytes(needs),
        had: Bytes(had),
        unhindered: Nanos::from_secs_f64(unhindered * of_elapsed),
        lost: Nanos::from_secs_f64(lost * of_elapsed),
        waits: swap.count,
        pages: last.swap_in.saturating_sub(first.swap_in).max(swap.count),
    })
}

#[expect(clippy::cast_precision_loss, reason = "sizes and counts below 2^53")]
fn ratio(part: u64, whole: u64) -> f64 {
    part as f64 / whole.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagewise_model::delays::{Delay, Delays};
    use pagewise_model::findings::Run;
    use pagewise_model::run::RunCost;
    use pagewise_model::timeline::{PressurePoint, TimelinePoint};

    fn seen(waits: u64, pages: u64) -> ForecastBasis {
        ForecastBasis {
            needs: Bytes(400 << 20),
            had: Bytes(200 << 20),
            unhindered: Nanos::from_secs_f64(2.0),
            lost: Nanos::from_secs_f64(8.0),
            waits,
            pages,
        }
    }

    fn at(basis: &ForecastBasis, mib: u64) -> f64 {
        slowdown(basis, Bytes(mib << 20)).value
    }

    #[test]
    fn scattered_pages_cost_what_is_not_in_memory() {
        let basis = seen(100_000, 100_000);
        assert!((at(&basis, 200) - 5.0).abs() < 1e-9, "as it was");
        assert!((at(&basis, 300) - 3.0).abs() < 1e-9, "half as much misses");
        assert!((at(&basis, 100) - 7.0).abs() < 1e-9);
        assert!((at(&basis, 500) - 1.0).abs() < 1e-9, "there is enough");
        let [large, small] = [300, 100].map(|mib| slowdown(&basis, Bytes(mib << 20)));
        assert!(
            large.low < 2.0 && large.high < 4.0,
            "hot pages stay: {large:?}"
        );
        assert!(
            small.low > 5.0 && small.high > 11.0,
            "or had to go: {small:?}"
        );
    }

    #[test]
    fn streams_cost_a_twelfth_for_the_part_that_does_not_fit() {
        let basis = seen(12_500, 100_000);
        let wait = 8.0 / 12_500.0;
        let expected = |part: f64| 1.0 + 100_000.0 * part * wait / 12.0 / 2.0;
        for (mib, part) in [(300, 0.25), (200, 0.5), (100, 0.75)] {
            assert!((at(&basis, mib) - expected(part)).abs() < 1e-6, "{mib}");
        }
    }

    #[test]
    fn the_sizes_are_parts_of_what_is_needed() {
        let forecast = of(seen(100_000, 100_000));
        let sizes: Vec<u64> = forecast
            .sizes
            .iter()
            .map(|one| one.memory.0 >> 20)
            .collect();
        assert_eq!(sizes, [300, 200, 100]);
        let text = words(&forecast);
        assert!(
            text.contains("It needs 400 MiB") && text.contains("300 MiB ×3"),
            "{text}"
        );
    }

    #[test]
    fn the_outcome_is_told_against_the_time_without_a_limit() {
        let outcome = outcome(
            &seen(100_000, 100_000),
            Bytes(300 << 20),
            Nanos::from_secs_f64(5.0),
        );
        assert!((outcome.measured - 2.5).abs() < 1e-9);
        assert!((outcome.off_by - 0.2).abs() < 1e-6);
    }

    fn findings() -> Findings {
        let delay = |count, secs| {
            Some(Delay {
                count,
                time: Nanos::from_secs_f64(secs),
            })
        };
        let mut run = Run {
            cost: RunCost {
                // Half of it another program had the CPU.
                wall: Nanos::from_secs_f64(20.0),
                user: Nanos::from_secs_f64(2.0),
                system: Nanos::from_secs_f64(2.0),
                ..RunCost::default()
            },
            ..Run::default()
        };
        run.account.delays = Some(Delays {
            tasks: 1,
            swap: delay(50_000, 0.5),
            disk: delay(50_000, 6.0),
            ready: delay(10, 10.0),
            ..Delays::default()
        });
        run.timeline.points = vec![TimelinePoint {
            rss: Bytes(100 << 20),
            swap: Bytes(60 << 20),
            ..TimelinePoint::default()
        }];
        run.timeline.pressure = vec![
            PressurePoint::default(),
            PressurePoint {
                swap_in: 60_000,
                ..PressurePoint::default()
            },
        ];
        let mut findings = Findings::of(run);
        findings.diagnoses = vec![Diagnosis::named("limit", Severity::Severe)];
        findings
    }

    #[test]
    fn what_was_seen_at_a_limit_is_told_or_why_not() {
        let mut all = findings();
        tell(&mut all);
        let forecast = all.evidence.paging_forecast.expect("it is about a limit");
        let basis = forecast.basis.expect("enough was seen");
        assert_eq!(
            (basis.needs, basis.had),
            (Bytes(160 << 20), Bytes(100 << 20))
        );
        let [lost, unhindered] = [basis.lost, basis.unhindered].map(Nanos::as_secs_f64);
        assert!((lost - 8.0).abs() < 1e-6 && (unhindered - 2.0).abs() < 1e-6);
        assert_eq!((basis.waits, basis.pages), (50_000, 60_000));

        let why = |change: fn(&mut Findings)| {
            let mut all = findings();
            change(&mut all);
            tell(&mut all);
            all.evidence.paging_forecast.and_then(|one| one.unknown)
        };
        let without = why(|all| all.evidence.account.delays = None).expect("a reason");
        assert!(without.contains("delay accounting"), "{without}");
        let files = why(|all| all.evidence.cost.major_faults = 110_000);
        assert!(files.expect("a reason").contains("--files"));
        let all = why(|all| all.evidence.timeline.points[0].swap = Bytes(1 << 20));
        assert!(all.expect("a reason").contains("nearly all"));
        assert_eq!(why(|all| all.diagnoses.clear()), None, "no limit");
    }
}
