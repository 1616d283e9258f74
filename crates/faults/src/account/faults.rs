//! Combines two estimates of the time of page faults: windows in which each fault was timed, and
//! samples of CPU time below the fault handler. The account of time is made of samples, so that
//! theirs is the total, and the windows divide it among the causes: windows leave out what lies
//! outside the two events and in long faults. Of 15 programs of `bench/programs` for which both
//! were told, perf's own samples confirmed the samples in all, the windows in thirteen (docs/notes/causes.md).

use super::combined;
use crate::attribute::wilson;
use crate::latency::Times;
use pagewise_model::account::Account;
use pagewise_model::findings::Cause;
use pagewise_model::units::{Estimate, Nanos};
use std::collections::BTreeMap;

/// What is known of faults that allocated a huge page.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct HugeFaults {
    /// Their number, at most.
    pub(crate) faults: f64,
    /// Nanoseconds.
    pub(crate) time: Option<Estimate>,
    /// The share of them (0 to 1) whose memory had been freed before, so that keeping it would
    /// avoid them.
    pub(crate) churned: f64,
}

/// Kinds of work, and the causes of the faults that need it.
const GROUPS: [(&str, &[Cause]); 4] = [
    (
        "copy",
        &[
            Cause::CopyOnWrite,
            Cause::WriteAfterRead,
            Cause::WriteProtect,
        ],
    ),
    ("swap", &[Cause::SwapIn]),
    (
        "file",
        &[
            Cause::FileMinor,
            Cause::FileMajor,
            // do_cow_fault() is a part of do_fault() (mm/memory.c).
            Cause::FileCopy,
            Cause::Shared,
        ],
    ),
    (
        "anonymous",
        &[
            Cause::FirstTouch,
            Cause::StackGrowth,
            Cause::RefaultAfterMunmap,
            Cause::RefaultAfterBrk,
            Cause::RefaultAfterDontneed,
            Cause::RefaultAfterFree,
            Cause::Unknown,
        ],
    ),
];

/// Corrects the times of `faults` by cause, measured in windows, with samples of CPU time, and
/// reports where the two contradict each other.
pub(crate) fn reconcile(
    times: &mut Times,
    account: &Account,
    faults: &BTreeMap<Cause, f64>,
    huge: &HugeFaults,
    cpu: Nanos,
) -> Option<String> {
    if let Some(sampled) = account.entry("fault") {
        let every = handler_of_each(account, sampled, faults);
        for (work, causes) in GROUPS {
            let seen = account.work(work).map(|work| work.in_faults);
            let seen = seen.unwrap_or_else(|| unseen(account, cpu));
            let handler = every * sum(faults, causes);
            rescale(&mut times.by_cause, causes, shifted(seen, handler));
        }
        times.by_cause.remove(&Cause::HugePage);
        share_out(times, huge);
        let contradiction = settle(times, sampled, cpu);
        // Reclaim during faults is in the total and has its own line.
        let reclaim = account
            .work("reclaim")
            .map_or(0.0, |work| work.in_faults.value);
        let total = times.total_ns.map_or(0.0, |total| total.value);
        scale(&mut times.by_cause, total - reclaim);
        return contradiction;
    }
    let time = huge.time?;
    share_out(times, huge);
    let before = times.total_ns.unwrap_or_default();
    times.total_ns = Some(Estimate {
        value: before.value + time.value,
        low: before.low + time.low,
        high: before.high + time.high,
    });
    None
}

/// Nanoseconds that each fault takes in the handler itself, whatever its cause: entry and exit, VMA
/// lookup, cgroup charge.
fn handler_of_each(account: &Account, sampled: Estimate, faults: &BTreeMap<Cause, f64>) -> f64 {
    let of_a_kind: f64 = account.work.iter().map(|work| work.in_faults.value).sum();
    let all: f64 = faults.values().sum();
    (sampled.value - of_a_kind).max(0.0) / all.max(1.0)
}

fn sum(faults: &BTreeMap<Cause, f64>, causes: &[Cause]) -> f64 {
    causes.iter().filter_map(|cause| faults.get(cause)).sum()
}

fn shifted(estimate: Estimate, by: f64) -> Estimate {
    Estimate {
        value: estimate.value + by,
        low: estimate.low + by,
        high: estimate.high + by,
    }
}

/// Work without any sample may still have taken a little time.
fn unseen(account: &Account, cpu: Nanos) -> Estimate {
    wilson(0.0, account.samples as f64).scaled(cpu.0 as f64)
}

/// The times from windows are kept if the samples confirm them, otherwise scaled to the samples.
fn rescale(by_cause: &mut BTreeMap<Cause, Nanos>, causes: &[Cause], sampled: Estimate) {
    let of = |cause: &Cause| by_cause.get(cause).map_or(0.0, |time| time.0 as f64);
    let sum: f64 = causes.iter().map(of).sum();
    if sum <= 0.0 || sampled.covers(sum) {
        return;
    }
    let factor = sampled.value / sum;
    for cause in causes {
        if let Some(time) = by_cause.get_mut(cause) {
            *time = Nanos::from_secs_f64(time.as_secs_f64() * factor);
        }
    }
}

/// Makes the causes' times add up to `total` nanoseconds.
fn scale(by_cause: &mut BTreeMap<Cause, Nanos>, total: f64) {
    let sum: f64 = by_cause.values().map(|time| time.0 as f64).sum();
    if sum <= 0.0 || total <= 0.0 {
        return;
    }
    for time in by_cause.values_mut() {
        *time = Nanos::from_secs_f64(time.as_secs_f64() * total / sum);
    }
}

/// Assigns the time of huge faults to their cause: the part that keeping memory would save counts
/// as churn.
fn share_out(times: &mut Times, huge: &HugeFaults) {
    let Some(time) = huge.time.filter(|time| time.value > 0.0) else {
        return;
    };
    let churn = times.by_cause.iter().filter(|(cause, _)| cause.is_churn());
    let largest = churn
        .max_by_key(|(_, time)| **time)
        .map(|(&cause, _)| cause);
    let churned = largest.map_or(0.0, |_| huge.churned);
    let mut give = |cause: Cause, nanos: f64| {
        let held = times.by_cause.entry(cause).or_default();
        *held += Nanos::from_secs_f64(nanos * 1e-9);
    };
    if let Some(cause) = largest {
        give(cause, time.value * churned);
    }
    give(Cause::HugePage, time.value * (1.0 - churned));
}

fn settle(times: &mut Times, sampled: Estimate, cpu: Nanos) -> Option<String> {
    let Some(windows) = times.total_ns else {
        if sampled.value > 0.0 {
            times.total_ns = Some(sampled);
            times.method = "sampled";
        }
        return None;
    };
    let (spanning, apart) = combined(windows, sampled);
    times.total_ns = Some(if apart { spanning } else { sampled });
    times.method = "sampled";
    let percent = |ns: f64| 100.0 * ns * 1e-9 / cpu.as_secs_f64().max(1e-9);
    let (one, other) = (percent(windows.value), percent(sampled.value));
    // A contradiction of less than a hundredth of the time does not matter.
    (apart && (one - other).abs() >= 1.0).then(|| {
        let shown = match one < other {
            true => "The samples count: faults that take long are rarely timed in full",
            false => "The interval shown spans both",
        };
        format!(
            "Two estimates of the time of page faults disagree: single faults that were timed say \
             {one:.1} % of the CPU time, samples of CPU time in the fault handler {other:.1} %. {shown}."
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagewise_model::account::{KernelEntry, KernelWork};

    /// 717 samples of a program whose heap is freed and touched again: three fifths of the
    /// handler's time are work on anonymous memory, the rest is the handler itself.
    fn churning() -> Account {
        let around = |value: f64| Estimate {
            value,
            low: value * 0.93,
            high: value * 1.07,
        };
        Account {
            samples: 717,
            entries: vec![KernelEntry {
                id: "fault".to_owned(),
                label: String::new(),
                time: around(1.224e9),
                functions: Vec::new(),
            }],
            work: vec![KernelWork {
                id: "anonymous".to_owned(),
                time: around(0.695e9),
                in_faults: around(0.695e9),
            }],
            ..Account::default()
        }
    }

    fn timed(nanos: u64) -> Times {
        Times {
            total_ns: Some(Estimate::exact(nanos as f64)),
            by_cause: [(Cause::RefaultAfterBrk, Nanos(nanos))].into(),
            ..Times::default()
        }
    }

    #[test]
    fn the_handlers_own_time_is_of_the_faults_that_it_handles() {
        let faults = [(Cause::RefaultAfterBrk, 541_127.0)].into();
        for windows in [600_000_000, 1_200_000_000, 3_000_000_000] {
            let mut times = timed(windows);
            let huge = HugeFaults::default();
            reconcile(
                &mut times,
                &churning(),
                &faults,
                &huge,
                Nanos(2_385_000_000),
            );
            let churn = times.by_cause[&Cause::RefaultAfterBrk].as_secs_f64();
            assert!((1.13..1.31).contains(&churn), "{windows}: {churn}");
        }
    }

    #[test]
    fn one_total_is_told_and_the_causes_add_up_to_it() {
        let faults = [(Cause::RefaultAfterBrk, 900.0), (Cause::FileMinor, 100.0)].into();
        let mut times = timed(1_150_000_000);
        times.by_cause.insert(Cause::FileMinor, Nanos(50_000_000));
        let (account, huge) = (churning(), HugeFaults::default());
        let message = reconcile(&mut times, &account, &faults, &huge, Nanos(2_385_000_000));
        assert_eq!(message, None, "the two agree");
        assert_eq!(times.total_ns, account.entry("fault"));
        let sum: f64 = times.by_cause.values().map(|time| time.as_secs_f64()).sum();
        assert!((sum - 1.224).abs() < 1e-6, "{sum}");
    }

    #[test]
    fn few_faults_have_a_small_part_of_the_handlers_time() {
        let faults = [(Cause::RefaultAfterBrk, 990.0), (Cause::FileMinor, 10.0)].into();
        let mut times = timed(1_200_000_000);
        times.by_cause.insert(Cause::FileMinor, Nanos(100_000_000));
        let huge = HugeFaults::default();
        reconcile(
            &mut times,
            &churning(),
            &faults,
            &huge,
            Nanos(2_385_000_000),
        );
        assert!(times.by_cause[&Cause::FileMinor] < Nanos(20_000_000));
    }
}
