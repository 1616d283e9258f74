//! The problems that the figures show, each with its faults and its cost.

use super::callers::{callers, exceeds_its_peak, moved, owner};
use super::case::{
    Case, Owner, faults_of, mainly_threads, plain, share_of_faults, share_of_work, together,
};
use super::symptom::Symptom;
use super::{kernel, numa, starts, waits, works};
use pagewise_faults::account::SPARSE;
use pagewise_faults::runtimes::Runtimes;
use pagewise_model::account::CALLOC;
use pagewise_model::findings::{Cause, Findings};
use pagewise_model::histogram::Histogram;
use pagewise_model::units::Estimate;
use std::cmp::Ordering;
/// Without data on single faults, churn is inferred only if the number of a process's faults is
/// this many times the pages of its peak resident memory…
const PROBABLE_REFAULTS: f64 = 4.0;
/// … and this share of its CPU time is spent in the kernel.
const PROBABLE_SYSTEM_SHARE: f64 = 0.15;
/// Share of the faults without a cause from which totals tell more.
const UNJUDGED: f64 = 0.5;

/// Share of the CPU time in the allocator's own code from which it is worth mentioning: programs
/// with many small objects, such as compilers, spend a little less.
const HOT_ALLOCATOR: f64 = 0.10;
/// The same for a runtime's garbage collector.
const HOT_COLLECTOR: f64 = 0.10;

/// Bounds of little and of much churn, as shares of the faults on private memory: an interval from
/// below the one to above the other is inconclusive.
const HARDLY_CHURN: f64 = 0.1;
const MUCH_CHURN: f64 = 0.5;

/// All symptoms, the costliest first, however small: the caller judges them.
pub(super) fn cases(findings: &Findings) -> Vec<Case> {
    let mut symptoms = Vec::new();
    let ratio = findings.churn.refault_ratio;
    let untold = ratio.is_some_and(|ratio| ratio.low < HARDLY_CHURN && ratio.high > MUCH_CHURN)
        && !exceeds_its_peak(findings);
    if untold {
        symptoms.push(fresh_memory(findings));
    } else {
        symptoms.extend(churn(findings));
    }
    let probable = probable_churn(findings);
    let is_inferred = probable.is_some();
    symptoms.extend(probable);
    let message = |one: &Case| {
        let is_first = [Symptom::FirstTouch, Symptom::ReadFirst].contains(&one.kind);
        !(untold && is_first || is_inferred && one.kind == Symptom::UnknownFaults)
    };
    symptoms.extend(populated(findings));
    symptoms.extend(other_causes(findings).into_iter().filter(message));
    symptoms.extend(huge_zeroing(findings));
    symptoms.extend(hot_allocator(findings));
    symptoms.extend(hot_collector(findings));
    symptoms.extend(calloc_zeroing(findings));
    symptoms.extend(waits::all(findings));
    symptoms.extend(works::all(findings));
    symptoms.extend(starts::all(findings));
    symptoms.extend(numa::all(findings));
    waits::limited(findings, &mut symptoms);
    works::one_of_locks(findings, &mut symptoms);
    numa::of_hinting_faults(findings, &mut symptoms);
    works::forked_for_each(findings, &mut symptoms);
    works::served_by_the_program(findings, &mut symptoms);
    starts::take_in_their_faults(findings, &mut symptoms);
    symptoms.sort_by(|a, b| {
        let lost = |one: &Case| (one.certainly_lost(findings), one.lost(findings));
        lost(b).partial_cmp(&lost(a)).unwrap_or(Ordering::Equal)
    });
    symptoms
}

/// First touches and churn together, if they cannot be distinguished.
fn fresh_memory(findings: &Findings) -> Case {
    let causes: Vec<Cause> = findings
        .by_cause
        .iter()
        .map(|line| line.key)
        .filter(|cause| cause.is_churn() || FIRST_TOUCHES.contains(cause))
        .collect();
    let faults = faults_of(findings, &causes);
    Case {
        // Whatever they are, their sum is well known.
        share: Estimate::exact(share_of_faults(findings, faults)),
        ..plain(findings, Symptom::FreshMemory, faults, &causes)
    }
}

fn churn(findings: &Findings) -> Vec<Case> {
    [
        Symptom::ChurnBrk,
        Symptom::ChurnMmap,
        Symptom::ChurnMadvise,
        Symptom::ChurnThreadArena,
    ]
    .into_iter()
    .filter_map(|kind| {
        let routes = findings
            .churn
            .routes
            .iter()
            .filter(|route| Symptom::of_churn(route.cause, route.region) == kind);
        let mut sizes = Histogram::default();
        let mut faults = 0.0;
        let mut causes = Vec::new();
        for route in routes {
            faults += route.faults;
            sizes.merge(&route.released_sizes);
            causes.push(route.cause);
        }
        if kind == Symptom::ChurnMmap {
            faults += moved(findings);
        }
        let symptom = Case {
            sizes,
            in_threads: mainly_threads(findings),
            owner: owner(findings, kind),
            ..plain(findings, kind, faults, &causes)
        };
        (faults > 0.0).then_some(symptom)
    })
    .collect()
}

/// Calls that return memory or request it, from which on they are many.
const MANY_CALLS: u64 = 1000;

/// The share of the CPU time that populating takes at least where all of a program's memory is locked.
const LEAST_POPULATING: f64 = 0.01;

/// Memory that the allocator returns and requests again, and that the kernel populates each time: all
/// memory of the program is locked, so there are no faults.
#[allow(clippy::cast_precision_loss, reason = "2^53 ns is 104 days")]
fn populated(findings: &Findings) -> Option<Case> {
    let cpu = findings.cost.cpu().0.max(1);
    let populating = findings.account.entry("populate")?;
    let populating = populating.scaled(1.0 / cpu as f64);
    let requests = findings.time.mm_calls.iter();
    let requests = requests.filter(|one| ["brk", "mmap", "munmap"].contains(&&*one.call));
    let many = requests.clone().map(|one| one.calls).sum::<u64>() >= MANY_CALLS;
    let of_heap = requests.filter(|one| one.call == "brk");
    let by_allocator = match callers(findings) {
        Owner::Allocator => true,
        // The heap's end is an allocator's unless stacks show that the program moves it.
        Owner::Unknown => of_heap.map(|one| one.calls).sum::<u64>() >= MANY_CALLS,
        _ => false,
    };
    // A sample or two have another reason: each start of a program populates its stack.
    if populating.low < LEAST_POPULATING || !many || !by_allocator {
        return None;
    }
    let calls = kernel::memory_calls(findings).into_iter();
    let mut cost = together(calls.chain([populating]));
    // Of the way into the kernel, and of what recording costs, these calls may have the most.
    let beside = ["gate", "observer"].into_iter();
    let beside = beside.filter_map(|id| findings.account.entry(id));
    let beside = beside.map(|time| time.high / cpu as f64).sum::<f64>();
    cost.high = (cost.high + beside).min(1.0);
    Some(Case {
        cost,
        ..plain(findings, Symptom::ChurnPopulated, 0.0, &[])
    })
}

/// With only `wait4(2)` and the timeline: one process, far more faults than pages it ever had
/// resident, and much time in the kernel.
fn probable_churn(findings: &Findings) -> Option<Case> {
    let cost = &findings.cost;
    let single = findings
        .timeline
        .points
        .iter()
        .all(|point| point.processes <= 1);
    let pages = cost.max_rss.0 as f64 / findings.host.page_size.max(1) as f64;
    let faults = cost.faults() as f64;
    let cpu = cost.cpu().0.max(1) as f64;
    let unknown = faults_of(findings, &[Cause::Unknown]);
    let is_judged = findings.samples > 0 && unknown < UNJUDGED * faults;
    let seen = is_judged || findings.timeline.points.is_empty();
    let suspicious = !seen
        && single
        && pages > 0.0
        && faults > PROBABLE_REFAULTS * pages
        && cost.system.0 as f64 / cpu > PROBABLE_SYSTEM_SHARE;
    suspicious.then(|| Case {
        owner: Owner::Unknown,
        ..plain(findings, Symptom::ChurnProbable, faults - pages, &[])
    })
}

const FIRST_TOUCHES: [Cause; 3] = [Cause::FirstTouch, Cause::WriteAfterRead, Cause::StackGrowth];
/// Memory is read before it is written if this share of its pages fault a second time for it.
const READ_FIRST: f64 = 0.5;
/// … and if these are this share of all faults.
const MUCH_READ_FIRST: f64 = 0.25;

/// First touches, and whether most pages are read before they are written.
fn first_touches(findings: &Findings) -> Symptom {
    let [first, second] =
        [Cause::FirstTouch, Cause::WriteAfterRead].map(|one| faults_of(findings, &[one]));
    // Pages of private file mappings are read before they are written, too.
    let of_files = faults_of(findings, &[Cause::FileMinor, Cause::FileMajor]);
    let much = share_of_faults(findings, second) >= MUCH_READ_FIRST;
    match much && second >= READ_FIRST * first && second > of_files {
        true => Symptom::ReadFirst,
        false => Symptom::FirstTouch,
    }
}

fn other_causes(findings: &Findings) -> Vec<Case> {
    // Where files are mapped again and again, that is the trouble, whether pages are read or copied.
    let (file, of_files, copies): (_, &[Cause], &[Cause]) = match works::maps_files_anew(findings) {
        true => (
            Symptom::FileRemap,
            &[Cause::FileMinor, Cause::FileMajor, Cause::FileCopy],
            &[],
        ),
        false => (
            Symptom::File,
            &[Cause::FileMinor, Cause::FileMajor],
            &[Cause::FileCopy],
        ),
    };
    let groups: [(Symptom, &[Cause]); 8] = [
        (Symptom::UnknownFaults, &[Cause::Unknown]),
        (first_touches(findings), &FIRST_TOUCHES),
        (Symptom::ForkCopies, &[Cause::CopyOnWrite]),
        (file, of_files),
        (Symptom::FileCopies, copies),
        (Symptom::Shared, &[Cause::Shared]),
        (Symptom::Swap, &[Cause::SwapIn]),
        (Symptom::WriteProtect, &[Cause::WriteProtect]),
    ];
    groups
        .into_iter()
        .filter_map(|(kind, causes)| {
            let elsewhere = match kind {
                Symptom::FirstTouch | Symptom::ReadFirst => moved(findings),
                _ => 0.0,
            };
            let faults = faults_of(findings, causes) - elsewhere;
            (faults > 0.0).then(|| plain(findings, kind, faults, causes))
        })
        .collect()
}

/// Zeroing of huge pages; the fix depends on whether only a few bytes of each are used.
fn huge_zeroing(findings: &Findings) -> Option<Case> {
    let faults = faults_of(findings, &[Cause::HugePage]);
    let zeros = findings.huge_pages.and_then(|pages| pages.zeros);
    let kind = match zeros {
        Some(zeros) if zeros >= SPARSE => Symptom::HugeSparse,
        _ => Symptom::HugeZeroing,
    };
    let mut symptom = plain(findings, kind, faults, &[Cause::HugePage]);
    // A fault that takes a millisecond may be interrupted while it is timed; samples are not.
    if let Some(sampled) = share_of_work(findings, "huge") {
        symptom.cost = sampled;
    }
    (faults > 0.0).then_some(symptom)
}

/// Time in the allocator's own code, which faults do not show.
fn hot_allocator(findings: &Findings) -> Option<Case> {
    let allocator = findings.account.allocator()?;
    let cpu = findings.cost.cpu().as_secs_f64() * 1e9;
    let cost = allocator.time.scaled(1.0 / cpu.max(1.0));
    (cost.value >= HOT_ALLOCATOR).then(|| Case {
        cost,
        ..plain(findings, Symptom::HotAllocator, 0.0, &[])
    })
}

/// Time in which memory is zeroed for calloc that malloc had kept.
fn calloc_zeroing(findings: &Findings) -> Option<Case> {
    let zeroing = findings.account.part(CALLOC)?;
    let cost = zeroing
        .time
        .scaled(1.0 / findings.cost.cpu().0.max(1) as f64);
    (cost.value >= HOT_ALLOCATOR).then(|| Case {
        cost,
        ..plain(findings, Symptom::CallocZeroing, 0.0, &[])
    })
}

/// Time in a runtime's garbage collector.
fn hot_collector(findings: &Findings) -> Option<Case> {
    let collector = findings.account.collector()?;
    let runtimes = Runtimes::shipped();
    let kinds = findings.allocators.iter().map(|one| one.kind);
    let kind = kinds.rev().find(|kind| runtimes.has(*kind))?;
    let cpu = findings.cost.cpu().as_secs_f64() * 1e9;
    let cost = collector.time.scaled(1.0 / cpu.max(1.0));
    (cost.value >= HOT_COLLECTOR).then(|| Case {
        cost,
        owner: Owner::Runtime(kind),
        ..plain(findings, Symptom::HotCollector, 0.0, &[])
    })
}
