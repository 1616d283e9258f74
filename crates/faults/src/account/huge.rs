//! Faults that allocated a huge page: their number and their time.

use super::faults::HugeFaults;
use crate::attribute::Ledger;
use crate::causes::Attribution;
use crate::latency::Times;
use pagewise_model::account::Account;
use pagewise_model::findings::RegionKind;
use pagewise_model::recording::Sidecar;
use pagewise_model::units::Estimate;

/// Nanoseconds in which a processor zeroes two mebibytes: from 120 GB/s to the time measured in a
/// virtual machine that is not itself backed by huge pages, with the usual value in between.
const ZEROING: Estimate = Estimate {
    value: 200_000.0,
    low: 17_000.0,
    high: 7_000_000.0,
};
/// Faults that took longer than this count as huge-page faults, if there were any.
const LONG_NS: u64 = 60_000;
/// A huge page that is mostly zeros is used sparsely: the cost of zeroing it is due to the page
/// size.
pub const SPARSE: f64 = 0.5;

/// The huge-page faults of a run: from samples of the kernel's stacks; without those, from the
/// machine's count of huge pages allocated, if the program was seen to have some.
pub(crate) fn huge_faults(
    sidecar: &Sidecar,
    account: &Account,
    times: &Times,
    attribution: &Attribution,
    ledger: &Ledger,
) -> HugeFaults {
    let given = given(sidecar);
    let time = match account.sees_kernel() {
        true => account.work("huge").map(|work| work.in_faults),
        false => sidecar
            .huge_pages
            .and(given)
            .map(|given| bounded(given, times, sidecar)),
    };
    let Some(time) = time.filter(|time| time.value > 0.0) else {
        return HugeFaults::default();
    };
    let sparse = sidecar.huge_pages.and_then(|pages| pages.zeros);
    HugeFaults {
        faults: given.unwrap_or(time.value / ZEROING.value),
        time: Some(time),
        churned: match sparse {
            Some(zeros) if zeros >= SPARSE => 0.0,
            _ => churned(attribution, ledger),
        },
    }
}

/// Huge pages allocated by faults on this machine during the run, at most the run's number of
/// faults.
fn given(sidecar: &Sidecar) -> Option<f64> {
    let pressure = &sidecar.timeline.pressure;
    let (first, last) = (pressure.first()?, pressure.last()?);
    let given = last.thp_fault_alloc.saturating_sub(first.thp_fault_alloc);
    let given = given.min(sidecar.cost.faults());
    (given > 0).then_some(given as f64)
}

/// The time of `given` huge-page faults: as measured for long faults, and at most the kernel time
/// that no other timed work used.
fn bounded(given: f64, times: &Times, sidecar: &Sidecar) -> Estimate {
    let timed = times.total_ns.unwrap_or_default();
    let left = |timed: f64| (sidecar.cost.system.0 as f64 - timed).max(0.0);
    let each = times.measured.as_ref().and_then(|measured| {
        let long = measured.buckets().filter(|(low, ..)| *low >= LONG_NS);
        let (sum, count) = long.fold((0.0, 0.0), |sum, (low, high, count)| {
            let middle = f64::midpoint(low as f64, high as f64);
            (sum.0 + middle * count as f64, sum.1 + count as f64)
        });
        (count > 0.0).then(|| sum / count)
    });
    let low = (given * ZEROING.low).min(left(timed.high));
    let high = (given * ZEROING.high).min(left(timed.low));
    let value = match each {
        // A fault that takes longer than a window is never timed, so the usual cost may be far off.
        None if is_all_it_does(given, sidecar) => f64::midpoint(low, high),
        each => (given * each.unwrap_or(ZEROING.value)).min(left(timed.value)),
    };
    Estimate { value, low, high }
}

/// Whether most faults allocated a huge page, and most of the time was spent in the kernel.
fn is_all_it_does(given: f64, sidecar: &Sidecar) -> bool {
    let cost = &sidecar.cost;
    given * 2.0 >= cost.faults() as f64 && cost.system.0.saturating_mul(2) >= cost.cpu().0
}

/// Share of the faults on huge-page memory whose memory had been freed before.
fn churned(attribution: &Attribution, ledger: &Ledger) -> f64 {
    let eligible = &attribution.tally.huge_eligible;
    let all: f64 = eligible.values().sum();
    if all <= 0.0 {
        return ledger.churn_share(RegionKind::MmappedChunk);
    }
    let churn = eligible.iter().filter(|(cause, _)| cause.is_churn());
    // Where releases were not seen, repeats indicate churn.
    let seen = churn.map(|(_, faults)| faults).sum::<f64>() / all;
    seen.max(match attribution.sees_releases {
        true => 0.0,
        false => ledger.churn_share(RegionKind::MmappedChunk),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagewise_model::run::RunCost;
    use pagewise_model::units::Nanos;

    fn run(faults: u64) -> Sidecar {
        Sidecar {
            cost: RunCost {
                system: Nanos(4_800_000_000),
                minor_faults: faults,
                ..RunCost::default()
            },
            ..Sidecar::default()
        }
    }

    /// 2,041 of 2,119 faults allocated huge pages, in 2.3 ms each, longer than could be timed.
    #[test]
    fn where_huge_faults_are_all_it_does_they_may_take_all_its_time() {
        let time = bounded(2_041.0, &Times::default(), &run(2_119));
        assert!(time.covers(0.04e9) && time.covers(4.7e9), "{time:?}");
        assert!(time.value > 2e9, "{time:?}");
    }

    #[test]
    fn a_few_huge_faults_among_many_small_ones_cost_the_usual() {
        let time = bounded(50.0, &Times::default(), &run(100_000));
        assert!((time.value - 50.0 * ZEROING.value).abs() < 1.0, "{time:?}");
    }
}
