//! The cost of faults: measured latencies if there are any, otherwise a model.
//!
//! A latency runs from the fault's begin event to its end event, both inside the kernel, minus the
//! recorder's own cost. The time of the processor and the entry code before and after is added as a
//! constant. A task that is switched out in the middle makes a latency long without costing CPU
//! time; such outliers are cut to a multiple of the median.

use crate::attribute::{Scale, Z95};
use crate::causes::Attribution;
use pagewise_model::findings::Cause;
use pagewise_model::histogram::Histogram;
use pagewise_model::units::{Estimate, Nanos};
use std::collections::BTreeMap;

/// Exception entry and exit outside the two events, in nanoseconds: 0.10 µs on a processor that
/// needs no page-table isolation, up to 0.45 µs with it and in a virtual machine.
const ENTRY_AND_EXIT: Estimate = Estimate {
    value: 250.0,
    low: 100.0,
    high: 450.0,
};
/// Latencies beyond this many medians are time off the processor.
const OUTLIER: u64 = 50;
/// The same where latencies only divide time among causes: on a busy machine, one fault in some hundreds
/// is preempted, and few of a rare cause are timed.
const PREEMPTED: u64 = 10;
/// Error of the correction for recording: 0.1 µs in a fault of about 1 µs.
const CORRECTION_ERROR: f64 = 0.10;
/// Windows of full detail see bursts: their latencies count as this much fewer independent ones.
const DESIGN_EFFECT: f64 = 4.0;
/// Fewest latencies for a separate mean of a cause.
const LEAST: u64 = 30;

/// Time of the faults of one recording.
#[derive(Clone, Debug, Default)]
pub(crate) struct Times {
    /// All latencies.
    pub(crate) measured: Option<Histogram>,
    /// All faults together, in nanoseconds.
    pub(crate) total_ns: Option<Estimate>,
    /// Time by cause.
    pub(crate) by_cause: BTreeMap<Cause, Nanos>,
    /// `measured` or `modelled`.
    pub(crate) method: &'static str,
}

/// Latency of a fault if none was measured, in nanoseconds: medians on Linux 6.18, x86-64 (a fresh
/// page 1.0 to 1.4 µs, zero page then write 2.3, copy 3.0, read from disk 60). Machines differ by a
/// factor of two either way.
fn usual(cause: Cause) -> f64 {
    match cause {
        Cause::WriteAfterRead | Cause::FileCopy => 2_300.0,
        Cause::CopyOnWrite => 3_000.0,
        Cause::FileMajor | Cause::SwapIn => 60_000.0,
        Cause::FileMinor => 800.0,
        Cause::HugePage => 180_000.0,
        Cause::WriteProtect => 700.0,
        _ => 1_200.0,
    }
}

/// Times of all faults, never more than the run's system time.
pub(crate) fn times(
    attribution: &Attribution,
    causes: &BTreeMap<Cause, f64>,
    scale: &Scale,
    system: Nanos,
) -> Times {
    let mut measured = Histogram::default();
    for histogram in attribution.tally.latency.values() {
        measured.merge(histogram);
    }
    let known = measured.count() >= LEAST;
    let overall = mean(&measured);
    let usual = measured.quantile(0.5);
    let mut total = Estimate::exact(0.0);
    let mut parts = Vec::new();
    for (&cause, &faults) in causes {
        let own = attribution.tally.latency.get(&cause);
        let own = own.filter(|held| held.count() >= LEAST);
        let each = match own {
            Some(histogram) => mean(histogram),
            None if known && !is_special(cause) => overall,
            None => model(cause),
        };
        let on_cpu = match own.filter(|_| !is_special(cause)) {
            Some(histogram) => mean_up_to(histogram, PREEMPTED, usual),
            None => each,
        };
        let faults = faults * scale.factor;
        let sum = add(each, ENTRY_AND_EXIT).scaled(faults);
        let weight = (on_cpu.value + ENTRY_AND_EXIT.value) * faults;
        parts.push((cause, sum.value, weight));
        total = add(total, sum);
    }
    let by_cause = divided(&parts);
    Times {
        measured: (measured.count() > 0).then_some(measured),
        total_ns: (total.value > 0.0).then(|| within(total, system)),
        by_cause,
        method: if known { "measured" } else { "modelled" },
    }
}

/// Divides the sum of the causes' times by weights; those of special causes are theirs already. Each part is
/// a cause with its time and its weight, in nanoseconds.
fn divided(parts: &[(Cause, f64, f64)]) -> BTreeMap<Cause, Nanos> {
    let plain = || parts.iter().filter(|(cause, ..)| !is_special(*cause));
    let all: f64 = plain().map(|(_, time, _)| time).sum();
    let weights: f64 = plain().map(|(.., weight)| weight).sum();
    let part = |&(cause, time, weight): &(Cause, f64, f64)| match is_special(cause) {
        false if weights > 0.0 => (cause, Nanos::from_secs_f64(all * weight / weights * 1e-9)),
        _ => (cause, Nanos::from_secs_f64(time * 1e-9)),
    };
    parts.iter().map(part).collect()
}

/// Causes whose cost is very different from the others'.
fn is_special(cause: Cause) -> bool {
    matches!(cause, Cause::FileMajor | Cause::SwapIn | Cause::HugePage)
}

fn model(cause: Cause) -> Estimate {
    let value = usual(cause);
    Estimate {
        value,
        low: value / 2.0,
        high: value * 2.0,
    }
}

/// Mean of the latencies with its interval, outliers cut.
fn mean(histogram: &Histogram) -> Estimate {
    mean_up_to(histogram, OUTLIER, 0)
}

/// The same, cut at so many times the median, or so many times `usual` if that is more.
fn mean_up_to(histogram: &Histogram, times: u64, usual: u64) -> Estimate {
    let count = histogram.count() as f64;
    if count <= 0.0 {
        return Estimate::exact(0.0);
    }
    let middle = histogram.quantile(0.5).max(usual);
    let most = middle.saturating_mul(times).max(1) as f64;
    let (mut sum, mut squares) = (0.0, 0.0);
    for (low, high, times) in histogram.buckets() {
        let value = f64::midpoint(low as f64, (high - 1) as f64).min(most);
        sum += value * times as f64;
        squares += value * value * times as f64;
    }
    let mean = sum / count;
    let variance = (squares / count - mean * mean).max(0.0);
    let spread = Z95 * (variance * DESIGN_EFFECT / count).sqrt() + CORRECTION_ERROR * mean;
    Estimate {
        value: mean,
        low: (mean - spread).max(0.0),
        high: mean + spread,
    }
}

/// A sum of values with common errors, as from a wrong correction.
fn add(a: Estimate, b: Estimate) -> Estimate {
    Estimate {
        value: a.value + b.value,
        low: a.low + b.low,
        high: a.high + b.high,
    }
}

/// Faults are handled in system time, so they take at most all of it. An unmeasured system time
/// does not limit them.
fn within(total: Estimate, system: Nanos) -> Estimate {
    let most = if system.0 == 0 {
        f64::INFINITY
    } else {
        system.0 as f64
    };
    Estimate {
        value: total.value.min(most),
        low: total.low.min(most),
        high: total.high.min(most),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_preempted_fault_does_not_move_the_mean() {
        let mut histogram = Histogram::default();
        histogram.record_many(1000, 999);
        histogram.record(40_000_000);
        let mean = mean(&histogram).value;
        assert!((1000.0..1100.0).contains(&mean), "{mean}");
    }

    #[test]
    fn preempted_faults_do_not_move_time_between_causes() {
        let histogram = |preempted: u64| {
            let mut histogram = Histogram::default();
            histogram.record_many(1_000, 200 - preempted);
            histogram.record_many(4_000_000, preempted);
            histogram
        };
        let each = |of: &Histogram| mean_up_to(of, PREEMPTED, 1_000).value;
        let (quiet, busy) = (histogram(0), histogram(4));
        assert!(each(&busy) < 1.2 * each(&quiet), "{}", each(&busy));
        let apart = [
            (Cause::FirstTouch, 5.0, 1.0),
            (Cause::RefaultAfterBrk, 1.0, 3.0),
        ];
        let message = divided(&apart.map(|(cause, time, weight)| (cause, time * 1e9, weight)));
        assert_eq!(message[&Cause::FirstTouch], Nanos(1_500_000_000));
        assert_eq!(message[&Cause::RefaultAfterBrk], Nanos(4_500_000_000));
    }

    #[test]
    fn faults_take_no_more_than_the_system_time() {
        let total = Estimate {
            value: 5e9,
            low: 1e9,
            high: 9e9,
        };
        let bound = within(total, Nanos(2_000_000_000));
        assert_eq!((bound.low, bound.value, bound.high), (1e9, 2e9, 2e9));
    }
}
