//! Faults that gave a huge page: how many, and what they took.

use super::faults::HugeFaults;
use crate::attribute::Ledger;
use crate::faults::Attribution;
use crate::latency::Times;
use pagewise_model::account::Account;
use pagewise_model::findings::RegionKind;
use pagewise_model::recording::Sidecar;
use pagewise_model::units::Estimate;

/// Nanoseconds in which a processor zeroes two mebibytes: from 120 GB/s to what a virtual machine
/// without huge pages of its own was measured to take; the usual one between.
const ZEROING: Estimate = Estimate {
    value: 200_000.0,
    low: 17_000.0,
    high: 7_000_000.0,
};
/// Faults that took longer than this are taken for such that gave a huge page, where there were any.
const LONG_NS: u64 = 60_000;
/// A huge page that is mostly zeros is used sparsely: what zeroing it costs is the page size's doing.
pub(crate) const SPARSE: f64 = 0.5;

/// What is known of them: by samples of the kernel's stacks; without those, by the machine's count
/// of huge pages given, where the program was seen to hold some.
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

/// Huge pages that faults gave on this machine during the run, no more than the run had faults.
#[allow(clippy::cast_precision_loss, reason = "counts of faults")]
fn given(sidecar: &Sidecar) -> Option<f64> {
    let pressure = &sidecar.timeline.pressure;
    let (first, last) = (pressure.first()?, pressure.last()?);
    let given = last.thp_fault_alloc.saturating_sub(first.thp_fault_alloc);
    let given = given.min(sidecar.cost.faults());
    (given > 0).then_some(given as f64)
}

/// So many of them take what long faults were measured to take, and no more than the kernel used
/// for nothing else that was timed.
#[allow(clippy::cast_precision_loss, reason = "2^53 ns is 104 days")]
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
    let most = left(timed.low);
    Estimate {
        value: (given * each.unwrap_or(ZEROING.value)).min(left(timed.value)),
        low: (given * ZEROING.low).min(left(timed.high)),
        high: (given * ZEROING.high).min(most),
    }
}

/// Part of the faults on memory that gets huge pages that was given back before.
fn churned(attribution: &Attribution, ledger: &Ledger) -> f64 {
    let eligible = &attribution.tally.huge_eligible;
    let all: f64 = eligible.values().sum();
    if all <= 0.0 {
        return ledger.churn_share(RegionKind::MmappedChunk);
    }
    let churn = eligible.iter().filter(|(cause, _)| cause.is_churn());
    // Where releases were not seen, repeats tell churn.
    let seen = churn.map(|(_, faults)| faults).sum::<f64>() / all;
    seen.max(match attribution.sees_releases {
        true => 0.0,
        false => ledger.churn_share(RegionKind::MmappedChunk),
    })
}
