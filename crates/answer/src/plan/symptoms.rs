//! The problems that the figures show, each with its faults and its cost.

use super::symptom::Symptom;
use super::{numa, waits, works};
use pagewise_families::families;
use pagewise_faults::account::SPARSE;
use pagewise_faults::runtimes::Runtimes;
use pagewise_model::allocator::AllocatorKind;
use pagewise_model::findings::{Cause, Findings, RegionKind, Share};
use pagewise_model::histogram::Histogram;
use pagewise_model::units::{Estimate, Nanos};
use std::cmp::Ordering;

/// Kernel time of a fault if none was measured, in nanoseconds: from a zeroed page on a fast
/// machine to one on a slow machine (1.0 to 1.9 µs measured on Linux 6.18, x86-64).
pub(super) const USUAL_FAULT_NS: Estimate = Estimate {
    value: 1_400.0,
    low: 700.0,
    high: 2_000.0,
};
/// Without data on single faults, churn is inferred only if the number of a process's faults is
/// this many times the pages of its peak resident memory…
const PROBABLE_REFAULTS: f64 = 4.0;
/// … and this share of its CPU time is spent in the kernel.
const PROBABLE_SYSTEM_SHARE: f64 = 0.15;
/// Share of the faults without a cause from which totals tell more.
const UNJUDGED: f64 = 0.5;
/// Share of the faults from which threads other than the main one count as the place of a problem.
const MAINLY_THREADS: f64 = 0.5;

/// Share of the CPU time in the allocator's own code from which it is worth mentioning: programs
/// with many small objects, such as compilers, spend a little less.
const HOT_ALLOCATOR: f64 = 0.10;
/// The same for a runtime's garbage collector: collecting is a normal part of such programs.
const HOT_COLLECTOR: f64 = 0.15;
/// CPU time from which a runtime's settings are worth trying.
pub(super) const WORTH_TRYING: Nanos = Nanos(150_000_000);
/// Memory counts as moving if a process's first touches are this many times the pages of its peak
/// resident memory…
const MOVING: f64 = 2.0;
/// … and this share of all faults belongs to that process.
const MOSTLY_ONE: f64 = 0.9;

/// A symptom in one run.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Case {
    /// Its kind.
    pub kind: Symptom,
    /// Faults.
    pub faults: f64,
    /// Share of all faults, with the uncertainty of the recording.
    pub share: Estimate,
    /// Share of CPU time (of elapsed time for waits).
    pub cost: Estimate,
    /// Sizes of the stretches freed and touched again, for churn.
    pub sizes: Histogram,
    /// Whether mostly threads other than the main one fault.
    pub in_threads: bool,
    /// Who frees and reallocates the memory, for churn.
    pub owner: Owner,
}

impl Case {
    /// Whether its cost is a share of the CPU time.
    pub(super) fn is_of_cpu(&self) -> bool {
        self.faults > 0.0 || self.kind.is_of_cpu()
    }

    /// The time of which its cost is a share.
    pub(super) fn of(&self, findings: &Findings) -> Nanos {
        match (self.is_of_cpu(), self.kind) {
            (true, _) => findings.cost.cpu(),
            // A row of the elapsed time, not a sum over threads.
            (false, Symptom::FileReads) => findings.cost.wall,
            (false, _) => findings.cost.cpu().max(findings.cost.wall),
        }
    }

    /// Seconds that it costs.
    pub(super) fn lost(&self, findings: &Findings) -> f64 {
        self.cost.value * self.of(findings).as_secs_f64()
    }

    /// Seconds that it costs at least.
    pub(super) fn certainly_lost(&self, findings: &Findings) -> f64 {
        self.cost.low * self.of(findings).as_secs_f64()
    }
}

/// Who made the calls behind churn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// An allocator, which settings can reach.
    Allocator,
    /// Probably an allocator or a runtime: the calls were not seen.
    Presumed,
    /// A language runtime, for its own heap.
    Runtime(AllocatorKind),
    /// The C library, for the stacks of threads.
    Threads,
    /// A jemalloc inside a library, which has settings of its own.
    Bundled,
    /// The program itself.
    Program,
    /// It could not be determined.
    Unknown,
}

/// Bounds of little and of much churn, as shares of the faults on private memory: an interval from
/// below the one to above the other is inconclusive.
const HARDLY_CHURN: f64 = 0.1;
const MUCH_CHURN: f64 = 0.5;

/// All symptoms, the costliest first, however small: the caller judges them.
pub(super) fn of(findings: &Findings) -> Vec<Case> {
    let mut symptoms = Vec::new();
    let ratio = findings.churn.refault_ratio;
    let untold = ratio.is_some_and(|ratio| ratio.low < HARDLY_CHURN && ratio.high > MUCH_CHURN);
    if untold {
        symptoms.push(fresh_memory(findings));
    } else {
        symptoms.extend(churn(findings));
    }
    let probable = probable_churn(findings);
    let is_inferred = probable.is_some();
    symptoms.extend(probable);
    let told = |one: &Case| {
        let is_first = [Symptom::FirstTouch, Symptom::ReadFirst].contains(&one.kind);
        !(untold && is_first || is_inferred && one.kind == Symptom::UnknownFaults)
    };
    symptoms.extend(other_causes(findings).into_iter().filter(told));
    symptoms.extend(huge_zeroing(findings));
    symptoms.extend(hot_allocator(findings));
    symptoms.extend(hot_collector(findings));
    symptoms.extend(waits::all(findings));
    symptoms.extend(works::all(findings));
    symptoms.extend(numa::all(findings));
    waits::limited(findings, &mut symptoms);
    works::one_of_locks(findings, &mut symptoms);
    numa::of_hinting_faults(findings, &mut symptoms);
    works::forked_for_each(findings, &mut symptoms);
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
            .filter(|route| churn_kind(route.cause, route.region) == kind);
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

fn churn_kind(cause: Cause, region: RegionKind) -> Symptom {
    match (cause, region) {
        (_, RegionKind::ThreadArena) => Symptom::ChurnThreadArena,
        (Cause::RefaultAfterBrk, _) | (_, RegionKind::Heap) => Symptom::ChurnBrk,
        (Cause::RefaultAfterMunmap, _) => Symptom::ChurnMmap,
        _ => Symptom::ChurnMadvise,
    }
}

/// Faults that are first touches only by their address: a runtime that places its memory elsewhere
/// each time (V8 draws addresses at random) touches no page twice, yet a process cannot have more
/// new pages than its peak resident memory.
#[allow(clippy::cast_precision_loss, reason = "ratios of counts")]
pub(super) fn moved(findings: &Findings) -> f64 {
    let first = faults_of(findings, &[Cause::FirstTouch]);
    let held = findings.cost.max_rss.0 as f64 / findings.host.page_size.max(1) as f64;
    let moves = held > 0.0
        && first >= MOVING * held
        && is_one_process(findings)
        && matches!(callers(findings), Owner::Runtime(_));
    if moves { first - held } else { 0.0 }
}

pub(super) fn is_one_process(findings: &Findings) -> bool {
    let threads = &findings.by_thread;
    let all: f64 = threads.iter().map(|thread| thread.faults).sum();
    threads.iter().any(|one| {
        let own = threads.iter().filter(|thread| thread.pid == one.pid);
        own.map(|thread| thread.faults).sum::<f64>() >= MOSTLY_ONE * all
    })
}

/// Blocks with an allocator's header show who maps them; otherwise the stacks of the calls do. The
/// heap's end and thread arenas always belong to an allocator. `madvise` is attributed to an
/// allocator unless its callers are seen, since blocks show nothing about it.
fn owner(findings: &Findings, kind: Symptom) -> Owner {
    let by_calls = callers(findings);
    match kind {
        Symptom::ChurnMmap | Symptom::ChurnMadvise
            if matches!(
                by_calls,
                Owner::Runtime(_) | Owner::Threads | Owner::Bundled
            ) =>
        {
            by_calls
        }
        // Whole stacks show more than headers: the first bytes of any mapping may be written first.
        Symptom::ChurnMmap if by_calls == Owner::Program => Owner::Program,
        Symptom::ChurnMmap => match findings.churn.allocator_blocks {
            Some(share) if share >= 0.5 => Owner::Allocator,
            // What is not malloc's may be the heap of a runtime.
            Some(_) if by_calls == Owner::Unknown && !runtimes(findings).is_empty() => {
                Owner::Unknown
            }
            Some(_) => Owner::Program,
            None if by_calls == Owner::Unknown && is_on_musl_alone(findings) => Owner::Presumed,
            None => by_calls,
        },
        Symptom::ChurnMadvise if by_calls == Owner::Unknown => Owner::Presumed,
        Symptom::ChurnMadvise => by_calls,
        _ => Owner::Allocator,
    }
}

/// Whether the program's only allocator is musl's, which maps and unmaps groups of blocks at any size.
fn is_on_musl_alone(findings: &Findings) -> bool {
    let mut kinds = findings.allocators.iter().map(|one| one.kind);
    kinds.len() > 0 && kinds.all(|kind| kind == AllocatorKind::Musl)
}

/// Entry functions of allocators, and parts of the names of those inside them.
const ALLOCATING: [&str; 17] = [
    "malloc",
    "calloc",
    "realloc",
    "free",
    "cfree",
    "operator new",
    "operator delete",
    "_int_",
    "sysmalloc",
    "systrim",
    "munmap_chunk",
    "je_",
    "je_arrow_",
    "duckdb_je_",
    "mi_",
    "_mi_",
    "tc_",
];

/// Functions of the jemalloc that the Rust crate tikv-jemallocator builds into a library.
const BUNDLED: &str = "_rjem_";

/// Who makes memory calls, according to the stacks of those calls that have names, otherwise to
/// samples of CPU time in an allocator inside a library.
fn callers(findings: &Findings) -> Owner {
    match by_stacks(findings) {
        Owner::Unknown if has_bundled(findings) => Owner::Bundled,
        owner => owner,
    }
}

fn has_bundled(findings: &Findings) -> bool {
    let mut places = findings
        .account
        .allocator()
        .into_iter()
        .flat_map(|part| &part.places);
    places.any(|place| place.starts_with(BUNDLED))
}

fn by_stacks(findings: &Findings) -> Owner {
    let churn = &findings.churn;
    let sites = churn.release_sites.iter().chain(&churn.regrow_sites);
    let runtimes = Runtimes::shipped();
    let mut found: Vec<(Owner, f64)> = Vec::new();
    for site in sites.filter(|site| site.stack.len() >= LEAST_FRAMES) {
        let Some(caller) = caller(&site.stack, runtimes) else {
            continue;
        };
        match found.iter_mut().find(|(known, _)| *known == caller) {
            Some((_, sum)) => *sum += site.faults,
            None => found.push((caller, site.faults)),
        }
    }
    let most = found.into_iter().max_by(|a, b| a.1.total_cmp(&b.1));
    most.filter(|(_, faults)| *faults > 0.0)
        .map_or(Owner::Unknown, |(owner, _)| owner)
}

/// Functions of the C library that map, release and unmap stacks of threads (glibc:
/// nptl/allocatestack.c, nptl/nptl-stack.c, nptl/pthread_create.c).
const THREADING: [&str; 9] = [
    "pthread_create",
    "pthread_join",
    "pthread_clockjoin_ex",
    "pthread_exit",
    "allocate_stack",
    "advise_stack_range",
    "nptl_free_stacks",
    "nptl_free_tcb",
    "nptl_deallocate_stack",
];
/// Where a thread begins; its end, with the release of its stack, is inlined into it.
const STARTS_THREAD: &str = "start_thread";
/// The wrappers of the system calls.
const WRAPPERS: [&str; 3] = ["madvise", "munmap", "mmap"];

fn is_threading(function: &str, is_innermost: bool) -> bool {
    let name = function.trim_start_matches('_');
    THREADING.iter().any(|known| name.starts_with(known)) || (is_innermost && name == STARTS_THREAD)
}

/// Whether a stack of a memory call is the C library's work on a thread's stack.
fn is_of_a_thread(stack: &[String]) -> bool {
    let is_wrapper = |name: &&String| {
        let name = name.trim_start_matches('_').trim_start_matches("GI_");
        WRAPPERS
            .iter()
            .any(|wrapper| name.trim_end_matches("64") == *wrapper)
    };
    let mut inner = stack.iter().rev().skip_while(is_wrapper);
    let innermost = inner.next().map(|name| is_threading(name, true));
    innermost.unwrap_or(false) || inner.take(2).any(|name| is_threading(name, false))
}

/// Who makes a call: the allocator or the runtime's heap, whichever is nearer to the call.
pub(super) fn caller(stack: &[String], runtimes: &Runtimes) -> Option<Owner> {
    if is_of_a_thread(stack) {
        return Some(Owner::Threads);
    }
    let mut frames = stack.iter().rev().enumerate();
    let near = frames.find_map(|(at, function)| {
        let near = runtimes.heap_of(function).filter(|_| at < OF_RUNTIME);
        match function.starts_with(BUNDLED) {
            true => Some(Owner::Bundled),
            false if is_allocating(function) => Some(Owner::Allocator),
            false => near.map(Owner::Runtime),
        }
    });
    let by_module = || runtimes.calling_module(stack).map(Owner::Runtime);
    // An incomplete stack may hide the allocator.
    let is_whole = stack.iter().any(|name| ROOTS.contains(&name.as_str()));
    by_module()
        .or(near)
        .or_else(|| is_whole.then_some(Owner::Program))
}

/// Entry points of programs and their threads: glibc's, musl's and Go's names for the latter.
const ROOTS: [&str; 7] = [
    "main",
    "start_thread",
    "clone3",
    "__clone3",
    "clone",
    "__clone",
    "runtime.goexit",
];

/// A runtime's heap makes its calls in these innermost frames; one further out called something
/// else, which does.
const OF_RUNTIME: usize = 6;

/// Fewest frames of a stack that shows a caller.
const LEAST_FRAMES: usize = 2;

fn is_allocating(function: &str) -> bool {
    // A function without a name, in the file of an allocator.
    if let Some(module) = function.strip_prefix('[') {
        let mut code = families().iter().filter_map(|family| family.code.as_ref());
        return code.any(|code| code.modules.iter().any(|start| module.starts_with(start)));
    }
    ALLOCATING.iter().any(|known| match *known {
        "free" | "malloc" | "calloc" | "realloc" => {
            function.trim_start_matches('_').trim_start_matches("libc_") == *known
        }
        part => function.starts_with(part),
    })
}

fn mainly_threads(findings: &Findings) -> bool {
    let all: f64 = findings.by_thread.iter().map(|thread| thread.faults).sum();
    let others = findings
        .by_thread
        .iter()
        .filter(|thread| thread.tid != thread.pid);
    let faults: f64 = others.map(|thread| thread.faults).sum();
    all > 0.0 && faults / all >= MAINLY_THREADS
}

/// With only `wait4(2)` and the timeline: one process, far more faults than pages it ever had
/// resident, and much time in the kernel.
#[allow(clippy::cast_precision_loss, reason = "ratios of counts")]
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
    if let Some(sampled) = share_of_work(findings, "huge")
        && kind == Symptom::HugeSparse
    {
        symptom.cost = sampled;
    }
    (faults > 0.0).then_some(symptom)
}

pub(super) fn faults_of(findings: &Findings, causes: &[Cause]) -> f64 {
    let lines = findings
        .by_cause
        .iter()
        .filter(|line| causes.contains(&line.key));
    lines.map(|line| line.faults.value).sum()
}

#[allow(clippy::cast_precision_loss, reason = "ratios of times and counts")]
pub(super) fn plain(findings: &Findings, kind: Symptom, faults: f64, causes: &[Cause]) -> Case {
    Case {
        kind,
        faults,
        share: in_doubt(findings, share_of_faults(findings, faults), causes),
        cost: cost_of(findings, faults, causes),
        sizes: Histogram::default(),
        in_threads: false,
        owner: Owner::Allocator,
    }
}

#[allow(clippy::cast_precision_loss, reason = "a ratio of counts")]
fn share_of_faults(findings: &Findings, faults: f64) -> f64 {
    faults / (findings.cost.faults() as f64).max(faults).max(1.0)
}

/// A share with an interval in proportion to that of the causes' figures.
fn in_doubt(findings: &Findings, share: f64, causes: &[Cause]) -> Estimate {
    let of = |line: &&Share<Cause>| causes.contains(&line.key);
    // The largest one represents all: smaller ones contribute hardly anything to the sum.
    let lines = findings.by_cause.iter().filter(of);
    let most = lines.max_by(|a, b| a.faults.value.total_cmp(&b.faults.value));
    let Some(of) = most.map(|line| line.faults).filter(|of| of.value > 0.0) else {
        return Estimate::exact(share);
    };
    let told = of.scaled(share / of.value);
    Estimate {
        value: share,
        low: told.low.min(share),
        high: told.high.min(1.0).max(share),
    }
}

/// Share of CPU time that these faults take.
#[allow(clippy::cast_precision_loss, reason = "ratios of times and counts")]
fn cost_of(findings: &Findings, faults: f64, causes: &[Cause]) -> Estimate {
    let cpu = findings.cost.cpu().0.max(1) as f64;
    let each = nanos_each(findings, causes);
    let share = each.scaled(faults / cpu);
    let most = findings.cost.system.0 as f64 / cpu;
    Estimate {
        value: share.value.min(most),
        low: share.low.min(most),
        high: share.high.min(most),
    }
}

/// Kernel time of one fault with these causes: measured for them, otherwise measured over all,
/// otherwise the usual. The known limits of the time of all faults (its interval, its bound by the
/// system time) apply to these in proportion.
#[allow(clippy::cast_precision_loss, reason = "ratios of times and counts")]
pub(super) fn nanos_each(findings: &Findings, causes: &[Cause]) -> Estimate {
    let timed = findings
        .by_cause
        .iter()
        .filter(|line| causes.contains(&line.key) && line.faults.value > 0.0)
        .filter_map(|line| Some((line.time?.0 as f64, line.faults.value)));
    let (time, faults) = timed.fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    if faults > 0.0 {
        let each = time / faults;
        let times = findings.by_cause.iter().filter_map(|line| line.time);
        let all: f64 = times.map(|time| time.0 as f64).sum();
        return match findings.time.total_ns {
            // Reclaim during a fault is in the total and has its own line.
            Some(total) if all > 0.0 => total.scaled(each / all.max(total.value)),
            _ => Estimate {
                value: each,
                low: each * 0.85,
                high: each * 1.15,
            },
        };
    }
    let all = findings.cost.faults() as f64;
    match findings.time.total_ns {
        Some(total) if all > 0.0 => total.scaled(1.0 / all),
        _ => USUAL_FAULT_NS,
    }
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

/// The language runtimes in use, each as a separate symptom.
pub(super) fn runtimes(findings: &Findings) -> Vec<Case> {
    let known = Runtimes::shipped();
    let mut kinds: Vec<AllocatorKind> = Vec::new();
    for allocator in &findings.allocators {
        if known.has(allocator.kind) && !kinds.contains(&allocator.kind) {
            kinds.push(allocator.kind);
        }
    }
    if findings.cost.cpu() < WORTH_TRYING {
        return Vec::new();
    }
    let symptom = |kind| Case {
        owner: Owner::Runtime(kind),
        ..plain(findings, Symptom::Runtime, 0.0, &[])
    };
    kinds.into_iter().map(symptom).collect()
}

/// Share of the CPU time of one kind of kernel work, if the kernel's stacks were seen.
#[allow(clippy::cast_precision_loss, reason = "ratios of times")]
pub(super) fn share_of_work(findings: &Findings, id: &str) -> Option<Estimate> {
    let work = findings.account.work(id)?;
    Some(work.time.scaled(1.0 / findings.cost.cpu().0.max(1) as f64))
}
