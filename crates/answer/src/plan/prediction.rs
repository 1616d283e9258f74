//! What a rule would gain, avoid and cost, predicted from one run.

use super::case::{Case, USUAL_FAULT_NS, nanos_each};
use super::rules::{Effect, Price, Rule};
use super::symptom::Symptom;
use super::{sparse, works};
use crate::gain::predicted_speedup;
use pagewise_model::findings::{Cause, Findings};
use pagewise_model::units::{Bytes, Estimate};

/// Share of the targeted faults that a setting avoids (the others are first touches of the memory
/// that is kept, and growth between phases). Measured over the programs of `bench/programs`.
const VANISHING: Estimate = Estimate {
    value: 0.97,
    low: 0.92,
    high: 1.0,
};
/// Position of the likeliest cost of a fault between the measured cost and the bound. The programs
/// of `bench/programs` gained 3 to 15 % more than the midpoint predicts.
const BOUND_WEIGHT: f64 = 0.8;
/// Smallest amount that the allocator is advised to keep.
pub(super) const LEAST_KEPT: u64 = 1 << 20;

/// A rule without a price changes when faults happen, not whether: it avoids none for certain.
pub(super) fn avoided_share(rule: &Rule, cured: &[&Case]) -> f64 {
    let share: f64 = cured.iter().map(|symptom| symptom.share.value).sum();
    if rule.price == Price::None {
        0.0
    } else {
        (share * VANISHING.value).min(1.0)
    }
}

/// The gain in CPU time if the rule is followed.
pub(super) fn predicted(
    findings: &Findings,
    rule: &Rule,
    cured: &[&Case],
    faults: f64,
) -> Estimate {
    match rule.effect {
        _ if cured[0].kind == Symptom::Runtime => return ANY_GAIN,
        Some(Effect::Unknown) => return ANY_GAIN,
        Some(Effect::SmallPages) => return by_small_pages(findings, faults),
        Some(Effect::FasterAllocator) => {
            let left = rule.left.unwrap_or(LEFT_TO_ANOTHER);
            return by_another_allocator(cured[0].cost, left);
        }
        Some(Effect::Less) => return by_parts(findings, rule, cured),
        None => {}
    }
    if rule.price == Price::None {
        let cost: f64 = cured.iter().map(|symptom| symptom.cost.value).sum();
        let most = 1.0 / (1.0 - cost.clamp(0.0, 0.95));
        return Estimate {
            value: 1.0,
            low: 1.0,
            high: most,
        };
    }
    let vanishing = VANISHING.scaled(faults);
    let gain = predicted_speedup(&findings.cost, vanishing, kernel_ns(findings, faults));
    let gain = with_larger_forks(findings, rule, gain);
    let zeroing = sparse::zeroing(findings, cured);
    let slower = |gain: f64, more: f64| 1.0 / (1.0 / gain + more);
    Estimate {
        value: slower(gain.value, zeroing.value),
        low: slower(gain.low, zeroing.high),
        high: slower(gain.high, zeroing.low),
    }
}

/// The gain where forks copy the tables of what is kept, too: as much more as it is of what the process
/// usually holds, at most in all forks and at least in none.
#[allow(clippy::cast_precision_loss, reason = "ratios of sizes")]
fn with_larger_forks(findings: &Findings, rule: &Rule, gain: Estimate) -> Estimate {
    let Some(forks) = works::forks(findings) else {
        return gain;
    };
    let kept = kept(findings, Price::Keep).0;
    if rule.price == Price::None || kept == 0 {
        return gain;
    }
    let usual = findings.cost.max_rss.0.saturating_sub(kept).max(LEAST_KEPT);
    let times = kept as f64 / usual as f64;
    let slower = |gain: f64, more: f64| 1.0 / (1.0 / gain + more * times);
    Estimate {
        // When they happen is not known.
        value: slower(gain.value, forks.value / times.max(1.0)),
        low: slower(gain.low, forks.high),
        high: gain.high,
    }
}

/// The prediction if only runs can decide: too wide to be reported.
pub(super) const ANY_GAIN: Estimate = Estimate {
    value: 1.0,
    low: 0.2,
    high: 5.0,
};

/// The share of the time in an allocator's own code that remains with another allocator. Of
/// `hot_malloc` (bench/causes) tcmalloc 2.10, jemalloc 5.3 and mimalloc 2 leave 0.13, 0.18 and
/// 0.25, of `hot_malloc_threads` 0.50, 0.64 and 0.23; other programs may gain nothing.
const LEFT_TO_ANOTHER: Estimate = Estimate {
    value: 0.3,
    low: 0.1,
    high: 0.95,
};

/// Another allocator places blocks differently, which the rest of the program feels, too: of lua-tables
/// (`bench/programs`), whose allocator takes 23 to 28 %, mimalloc, jemalloc and tcmalloc saved 58, 49
/// and 41 %, of perl-hashes with 9 to 12 % mimalloc 18 %, of python-malloc with 14 to 22 % tcmalloc
/// 22 %. At most this many times the allocator's share of the rest, and no more than that of all.
const PLACED_BETTER: f64 = 2.0;
const MOST_SAVED: f64 = 0.7;

fn by_another_allocator(cost: Estimate, left: Estimate) -> Estimate {
    let alone = by_less(cost, left);
    let share = cost.high.min(0.95);
    let saved = (share + PLACED_BETTER * share * (1.0 - share)).min(MOST_SAVED);
    Estimate {
        high: alone.high.max(1.0 / (1.0 - saved)),
        ..alone
    }
}

/// The gain if `left` remains of the time that takes the share `cost`.
fn by_less(cost: Estimate, left: Estimate) -> Estimate {
    let gain = |share: f64, left: f64| 1.0 / (1.0 - share.min(0.95) * (1.0 - left));
    Estimate {
        value: gain(cost.value, left.value),
        low: gain(cost.low, left.high),
        high: gain(cost.high, left.low),
    }
}

/// Share of the memory by which a heap may grow that a run touches: none of it where the heap need not
/// grow, all of it in the end.
const GROWN_INTO: Estimate = Estimate {
    value: 0.5,
    low: 0.0,
    high: 0.75,
};

/// Share of the CPU time that first touches of the memory take by which a rule lets the heap grow: a run
/// that ends soon pays for it without using it again. Pages that are returned and touched again, `again`,
/// are touched anyway.
fn growing(findings: &Findings, rule: &Rule, again: f64) -> Estimate {
    let cpu = findings.cost.cpu().0.max(1) as f64;
    let pages = more(findings, rule) / findings.host.page_size.max(1) as f64;
    let each = USUAL_FAULT_NS.value * (pages - again).max(0.0) / cpu;
    GROWN_INTO.scaled(each)
}

/// The gain if a part of each symptom's time is saved.
fn by_parts(findings: &Findings, rule: &Rule, cured: &[&Case]) -> Estimate {
    let avoids = rule.avoids.unwrap_or(VANISHING);
    let left = rule.left.unwrap_or(LEFT_TO_ANOTHER);
    let mut saved = Estimate::exact(0.0);
    for symptom in cured {
        let part = match symptom.faults > 0.0 {
            true => avoids,
            false => Estimate {
                value: 1.0 - left.value,
                low: 1.0 - left.high,
                high: 1.0 - left.low,
            },
        };
        saved.value += symptom.cost.value * part.value;
        saved.low += symptom.cost.low * part.low;
        saved.high += symptom.cost.high * part.high;
    }
    let again = cured.iter().map(|symptom| symptom.faults).sum();
    let spent = growing(findings, rule, again);
    let gain = |saved: f64, spent: f64| 1.0 / (1.0 - saved.min(0.95) + spent);
    Estimate {
        value: gain(saved.value, spent.value),
        low: gain(saved.low, spent.high),
        high: gain(saved.high, spent.low),
    }
}

/// The result if the used part of each huge page is mapped by small pages instead: the range
/// between the observed share of used memory and twice as much covers the uncertainty of the
/// examination.
fn by_small_pages(findings: &Findings, huge_faults: f64) -> Estimate {
    let cpu = findings.cost.cpu().0.max(1) as f64;
    let used = 1.0
        - findings
            .huge_pages
            .and_then(|pages| pages.zeros)
            .unwrap_or(0.0);
    // Samples show the cost of zeroing, the faults' time what else they take.
    let sampled = findings.account.work("huge").map(|work| work.in_faults);
    let timed = nanos_each(findings, &[Cause::HugePage]).scaled(huge_faults);
    let zeroing = sampled.map_or(timed, |sampled| Estimate {
        high: sampled.high.max(timed.high),
        ..sampled
    });
    let small_pages = (huge_faults * base_pages(findings) * used).max(huge_faults);
    let gain = |saved: f64, spent: f64, left: f64| cpu / (cpu - saved + spent).max(cpu * left);
    Estimate {
        value: gain(
            zeroing.value,
            small_pages * USUAL_FAULT_NS.value,
            LEAST_LEFT.value,
        ),
        low: gain(
            zeroing.low,
            2.0 * small_pages * USUAL_FAULT_NS.high,
            LEAST_LEFT.high,
        ),
        high: gain(
            if zeroing.high < NEARLY_ALL * cpu {
                zeroing.high
            } else {
                cpu
            },
            small_pages * USUAL_FAULT_NS.low,
            LEAST_LEFT.low,
        ),
    }
}

/// From this share of the CPU time on, what is left may be anything.
const NEARLY_ALL: f64 = 0.9;

/// Base pages of a huge page: the entries, of 8 bytes each, of a page table that fills one base page.
/// 512 with pages of 4 KiB, 8192 with AArch64's 64 KiB.
fn base_pages(findings: &Findings) -> f64 {
    match findings.host.page_size / 8 {
        0 => 512.0,
        entries => entries as f64,
    }
}

/// Least share of the CPU time in any prediction: samples cannot show how the last few hundredths
/// are spent.
const LEAST_LEFT: Estimate = Estimate {
    value: 0.02,
    low: 0.004,
    high: 0.1,
};

/// Kernel time of one churned fault, including the cost of freeing its page. System time spread
/// over all faults is an upper bound; if it is close, it is the better figure, because it includes
/// the way into the kernel and back.
fn kernel_ns(findings: &Findings, faults: f64) -> Option<Estimate> {
    findings.time.total_ns?;
    let churn: Vec<Cause> = findings
        .by_cause
        .iter()
        .map(|line| line.key)
        .filter(|cause| cause.is_churn())
        .collect();
    let fault = nanos_each(findings, &churn);
    let released = release_time(findings).scaled(1.0 / faults.max(1.0));
    let bound = findings.cost.system.0 as f64 / (findings.cost.faults() as f64).max(1.0);
    let seen = (fault.value + released.value).min(bound);
    Some(Estimate {
        value: seen + BOUND_WEIGHT * (bound.min(seen * 1.3) - seen),
        low: (fault.low + released.low).min(bound),
        high: bound.min(seen * 1.6),
    })
}

/// Nanoseconds in calls that free or allocate memory. A call may have waited between its begin and
/// end, mostly for a CPU: at most the time seen by samples of CPU time counts, if there are any. Of
/// calls that were not timed only samples tell.
fn release_time(findings: &Findings) -> Estimate {
    let calls = || {
        let all = findings.time.mm_calls.iter();
        all.filter(|cost| cost.call != "mprotect" && cost.calls > 0)
    };
    let timed: f64 = calls().filter_map(|cost| Some(cost.time?.0 as f64)).sum();
    let sampled = findings.account.entry("call.map");
    if let Some(sampled) = sampled.filter(|_| calls().any(|cost| cost.time.is_none())) {
        return sampled;
    }
    let sampled = sampled.unwrap_or(Estimate::exact(f64::INFINITY));
    Estimate {
        value: timed.min(sampled.value),
        low: (timed * 0.8).min(sampled.low),
        high: timed.min(sampled.high),
    }
}

/// Additional resident memory at most: from the usual resident memory up to its peak, plus what the
/// rule adds.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a size that is shown in three digits"
)]
pub(super) fn price(findings: &Findings, rule: &Rule, cured: &[&Case]) -> Bytes {
    let kept = match rule.price {
        Price::None => Bytes(0),
        price => kept(findings, price).max(sparse::held_beyond(findings, cured)),
    };
    kept + Bytes(more(findings, rule) as u64)
}

/// Bytes by which a rule lets the heap grow.
fn more(findings: &Findings, rule: &Rule) -> f64 {
    let grown = findings.cost.max_rss.0 as f64 * (rule.memory_times.unwrap_or(1.0) - 1.0);
    grown + rule.memory_more.unwrap_or(0) as f64
}

fn kept(findings: &Findings, price: Price) -> Bytes {
    let peak = findings.cost.max_rss;
    let mut readings: Vec<Bytes> = findings
        .timeline
        .points
        .iter()
        .map(|point| point.rss)
        .filter(|rss| rss.0 > 0)
        .collect();
    readings.sort_unstable();
    let usual = readings
        .get(readings.len() / 4)
        .copied()
        .unwrap_or_default();
    match price {
        Price::None => Bytes(0),
        Price::Keep => peak - usual,
        Price::Peak => (peak - usual) + Bytes(peak.0 / 8),
    }
}
