//! Everything about a run that can be measured or counted, from an attribution and names.

use crate::account::{
    KernelTable, UNEXPLAINED, account, count_waits, elapsed, huge_faults, reconcile, tasks,
};
use crate::attribute::{self, Counted, Doubt, Ledger, Scale, ledger};
use crate::causes::{Attribution, MmCall, refault_by};
use crate::churn::churn;
use crate::flame::{Names, Weights, fault_map, flame, sites, weights};
use crate::latency::{Times, times};
use crate::numa::with_time;
use crate::touched::all_named;
use pagewise_model::account::{Account, FORKED, KernelWork, SPAWNED, TimePart};
use pagewise_model::allocator::Allocator;
use pagewise_model::answer::{Document, Subject};
use pagewise_model::findings::{
    Cause, Churn, FaultTime, Findings, MmCallCost, RegionKind, Run, Share,
};
use pagewise_model::loss::{LossKind, Losses};
use pagewise_model::memory::{Memory, TouchedMemory};
use pagewise_model::profile::Profile;
use pagewise_model::recording::Sidecar;
use pagewise_model::symbol::SymbolTable;
use pagewise_model::units::{Bytes, Estimate, Nanos};
use std::collections::{BTreeMap, BTreeSet};

/// Kernel functions below which a wait for a sleeping lock is a wait for `mmap_lock`: fault
/// handling and the memory calls (mm/memory.c, mm/mmap.c, mm/madvise.c, mm/mprotect.c, mm/mremap.c;
/// Linux 5.10 to 6.18).
const MMAP_LOCK_CALLERS: [&str; 14] = [
    "lock_mm_and_find_vma",
    "do_user_addr_fault",
    "exc_page_fault",
    "do_page_fault",
    "vm_mmap_pgoff",
    "__vm_munmap",
    "__do_sys_munmap",
    "__do_sys_brk",
    "__x64_sys_brk",
    "do_madvise",
    "do_mprotect_pkey",
    "__do_sys_mremap",
    "dup_mmap",
    "exit_mmap",
];

/// Everything that can be measured or counted about a run. `verdict`, `diagnoses`, `advice` and
/// `proof` are left empty.
#[must_use]
pub fn measure(
    attribution: &Attribution,
    symbols: &SymbolTable,
    sidecar: &Sidecar,
    profile: Option<&Profile>,
) -> Findings {
    let scale = Scale::new(attribution, sidecar);
    let mut ledger = ledger(attribution, counted(attribution, sidecar, &scale));
    let names = Names::new(attribution.stacks(), symbols);
    let mut times = times(attribution, &ledger.causes, &scale, sidecar.cost.system);
    let table = KernelTable::shipped();
    let mut account = account(profile, &sidecar.cost, table);
    account.elapsed = elapsed(sidecar.looks.as_ref(), &sidecar.cost, table);
    account.delays = sidecar.delays;
    account.tasks = tasks(&attribution.lives, sidecar, table);
    count_waits(&mut account.elapsed, sidecar.delays, account.tasks.as_ref());
    let huge = huge_faults(sidecar, &account, &times, attribution, &ledger);
    let contradiction = reconcile(
        &mut times,
        &account,
        &ledger.causes,
        &huge,
        sidecar.cost.cpu(),
    );
    account.work.extend(faults_of_forks(attribution, &times));
    account.work.extend(copied_to_spawn(attribution, &account));
    ledger.give_huge_pages(huge.faults / scale.factor);
    let stacks = fault_weights(attribution, &ledger, &scale, |_| true);
    let mut collection = sidecar.collection.clone();
    collection.notes.extend(contradiction);
    let by_cause = by_cause(attribution, &ledger, &scale, &times);
    let time = fault_time(attribution, sidecar, &names, times);
    explain_blindly(&mut account, &time, table);
    let run = Run {
        started_unix_ms: sidecar.started_unix_ms,
        cost: sidecar.cost,
        ending: sidecar.ending,
        allocators: allocators(attribution, sidecar),
        by_cause,
        by_region: by_region(attribution, &ledger, &scale),
        by_thread: attribute::threads(attribution, &scale),
        samples: attribution.tally.samples,
        churn: churn_with_sites(attribution, &ledger, &scale, &names),
        time,
        account,
        huge_pages: sidecar.huge_pages,
        file_reads: attribution.file_reads.clone(),
        sites: sites(&stacks, &names),
        flame: flame(&stacks, &names),
        fault_map: fault_map(attribution, &ledger, &scale),
        timeline: sidecar.timeline.clone(),
        kernel_threads: sidecar.kernel_threads.clone(),
        numa: sidecar.numa.as_ref().map(|seen| with_time(seen, profile)),
        memory: memory(attribution, sidecar, &names),
        collection,
        profile: None,
    };
    Document {
        host: sidecar.host.clone(),
        losses: losses(attribution, sidecar, &scale),
        ..Document::new(run).about(subject(sidecar))
    }
}

/// The account of memory, with the stacks that touched it first.
fn memory(attribution: &Attribution, sidecar: &Sidecar, names: &Names<'_>) -> Option<Memory> {
    let memory = sidecar.memory.clone()?;
    let touched = all_named(&attribution.touched(), sidecar.started_clock, names);
    Some(Memory { touched, ..memory })
}

/// Who touched the private memory first that was there at each look.
#[must_use]
pub fn touched(
    attribution: &Attribution,
    symbols: &SymbolTable,
    sidecar: &Sidecar,
) -> Vec<TouchedMemory> {
    let names = Names::new(attribution.stacks(), symbols);
    all_named(&attribution.touched(), sidecar.started_clock, &names)
}

/// The observed processes. Recordings of a whole machine and of other tools have no process.
fn subject(sidecar: &Sidecar) -> Subject {
    let is_known = !sidecar.collection.whole_machine && sidecar.pid > 0;
    Subject {
        pids: is_known.then_some(sidecar.pid).into_iter().collect(),
        ..Subject::of_command(sidecar.command.clone())
    }
}

/// Allocators of the process that faults most: those decide which advice helps, not those of a
/// shell that started it.
fn allocators(attribution: &Attribution, sidecar: &Sidecar) -> Vec<Allocator> {
    let mut faults: BTreeMap<i32, f64> = BTreeMap::new();
    for thread in &attribution.threads {
        *faults.entry(thread.pid).or_default() += thread.faults;
    }
    let most = faults.into_iter().max_by(|a, b| a.1.total_cmp(&b.1));
    let busiest = most.map_or(sidecar.pid, |(pid, _)| pid);
    sidecar.allocators_of(busiest).to_vec()
}

/// If the kernel's stacks were not seen, timed faults and memory calls explain a part of its time.
fn explain_blindly(account: &mut Account, time: &FaultTime, table: &KernelTable) {
    if account.sees_kernel() {
        return;
    }
    let kernel = account.kernel.value;
    let timed = time.mm_calls.iter().filter_map(|call| call.time);
    let timed: f64 = timed.map(|time| time.0 as f64).sum();
    let calls = timed.min(kernel);
    let faults = time.total_ns.unwrap_or_default();
    let within = |faults: f64| faults.min(kernel - calls);
    let faults = Estimate {
        value: within(faults.value),
        low: within(faults.low),
        high: within(faults.high),
    };
    account.unexplained = Estimate {
        value: kernel - calls - faults.value,
        low: kernel - calls - faults.high,
        high: kernel - calls - faults.low,
    };
    // Where the program's own code was sampled, its account has the kernel's time in one part.
    let whole = account.cpu.iter_mut().find(|part| part.id == UNEXPLAINED);
    let Some(rest) = whole else {
        return;
    };
    rest.time = account.unexplained;
    let part = |id, time| TimePart::plain(id, table.label(id), time);
    account.cpu.push(part("fault", faults));
    account.cpu.push(part("call.map", Estimate::exact(calls)));
    account.cpu.retain(|part| part.time.value > 0.0);
    account
        .cpu
        .sort_by(|a, b| b.time.value.total_cmp(&a.time.value));
}

/// The kernel's counts, on the scale of weights. The peak of resident memory is that of the largest
/// process, so it counts once for each process.
fn counted(attribution: &Attribution, sidecar: &Sidecar, scale: &Scale) -> Counted {
    let cost = &sidecar.cost;
    let threads = attribution
        .threads
        .iter()
        .filter(|thread| thread.faults > 0.0);
    let processes: BTreeSet<i32> = threads.map(|thread| thread.pid).collect();
    let page_size = attribution.page_size as f64;
    let pages = cost.max_rss.0 as f64 / page_size;
    let tally = &attribution.tally;
    let released: u64 = tally.releases.values().map(|totals| totals.pages).sum();
    let most = pages * (processes.len() as f64 + tally.forks as f64) + released as f64;
    let knows_releases = attribution.sees_releases && cost.max_rss.0 > 0;
    let protected = tally.calls.get(&MmCall::Mprotect);
    // Of processes that ran before, the kernel may not have counted all.
    let launched = !sidecar.collection.attached;
    let delays = sidecar.delays.filter(|_| launched);
    let copied = delays.and_then(|delays| delays.copying);
    Counted {
        major: (cost.faults() > 0).then(|| cost.major_faults as f64 / scale.factor),
        resident: (cost.max_rss.0 > 0).then(|| pages * processes.len() as f64 / scale.factor),
        fresh: knows_releases.then_some(most / scale.factor),
        protected: protected.map_or(0.0, |calls| calls.bytes as f64 / page_size) / scale.factor,
        copied: copied.map(|copied| copied.count as f64 / scale.factor),
        forked: tally.forks > 0,
    }
}

/// Weights of the stacks of faults with a cause that `wanted` accepts, scaled to all such faults.
fn fault_weights(
    attribution: &Attribution,
    ledger: &Ledger,
    scale: &Scale,
    wanted: impl Fn(Cause) -> bool + Copy,
) -> Weights {
    let total: f64 = ledger
        .causes
        .iter()
        .filter(|(cause, _)| wanted(**cause))
        .map(|(_, faults)| faults)
        .sum();
    let parts = ledger
        .cells
        .iter()
        .filter(|(cell, _)| wanted(cell.cause))
        .filter_map(|(cell, faults)| Some((cell.stack?, cell.cause, *faults)))
        .filter(|(stack, ..)| attribution.shows_callers(*stack));
    weights(parts, Some(total * scale.factor))
}

/// Share of all faults by which the classification itself may be wrong if faults are sampled.
const SAMPLED_DOUBT: f64 = 0.01;

fn by_cause(
    attribution: &Attribution,
    ledger: &Ledger,
    scale: &Scale,
    times: &Times,
) -> Vec<Share<Cause>> {
    let repeats = ledger.doubt_of_repeats(attribution) / attribution.tally.all.sum.max(1.0);
    let variation = &attribution.tally.cause_variation;
    let all = attribution.tally.all.sum;
    let forks = attribution.tally.perhaps_shared / all.max(1.0);
    let doubt = |cause: Cause| {
        let split = cause.is_churn() || attribute::is_first(cause);
        // Churn that was split off from first touches varies as their samples do.
        let of_forks = matches!(
            cause,
            Cause::CopyOnWrite | Cause::FirstTouch | Cause::WriteProtect
        ) && !ledger.counted_copies;
        let sum = ledger.causes[&cause];
        let as_samples_of = |cause| scale.variance(variation, cause, sum, all);
        let as_first = ledger.as_first_touches.contains(&cause);
        let variance = match cause {
            Cause::CopyOnWrite if ledger.counted_copies => Some(0.0),
            Cause::WriteProtect if ledger.counted_copies => as_samples_of(Cause::CopyOnWrite),
            _ => as_samples_of(cause).filter(|_| !as_first),
        };
        Doubt {
            variance: variance
                .or_else(|| as_samples_of(Cause::FirstTouch).filter(|_| split || as_first)),
            share: SAMPLED_DOUBT
                + if split { repeats } else { 0.0 }
                + if of_forks { forks } else { 0.0 },
        }
    };
    let mut shares = attribute::shares(&ledger.causes, attribution, scale, doubt);
    for share in &mut shares {
        share.time = times.by_cause.get(&share.key).copied();
    }
    shares
}

fn by_region(attribution: &Attribution, ledger: &Ledger, scale: &Scale) -> Vec<Share<RegionKind>> {
    let mut regions = BTreeMap::new();
    for (&(_, region), &faults) in &ledger.routes {
        *regions.entry(region).or_default() += faults;
    }
    let variation = &attribution.tally.region_variation;
    let all = attribution.tally.all.sum;
    attribute::shares(&regions, attribution, scale, |region| Doubt {
        variance: scale.variance(variation, region, regions[&region], all),
        share: 0.0,
    })
}

fn churn_with_sites(
    attribution: &Attribution,
    ledger: &Ledger,
    scale: &Scale,
    names: &Names<'_>,
) -> Churn {
    let tally = &attribution.tally;
    let released = tally
        .release_stacks
        .iter()
        .map(|(&(stack, route), &pages)| (stack, refault_by(route), pages));
    let main = main_churn(ledger);
    let grown = tally
        .growth_stacks
        .iter()
        .map(|(&stack, &pages)| (stack, main, pages));
    let mut churn = churn(attribution, ledger, scale);
    if churn.routes.is_empty() {
        return churn;
    }
    let again = fault_weights(attribution, ledger, scale, Cause::is_churn);
    churn.release_sites = sites(&weights(released, None), names);
    churn.regrow_sites = sites(&weights(grown, None), names);
    churn.refault_sites = sites(&again, names);
    churn
}

fn main_churn(ledger: &Ledger) -> Cause {
    ledger
        .causes
        .iter()
        .filter(|(cause, _)| cause.is_churn())
        .max_by(|a, b| a.1.total_cmp(b.1))
        .map_or(Cause::Unknown, |(&cause, _)| cause)
}

fn fault_time(
    attribution: &Attribution,
    sidecar: &Sidecar,
    names: &Names<'_>,
    times: Times,
) -> FaultTime {
    let busiest = attribute::busiest_share(attribution);
    let (lock_waits, lock_wait) = lock_waits(attribution, names);
    FaultTime {
        measured: times.measured,
        by_cause: attribution
            .tally
            .latency
            .iter()
            .map(|(&cause, histogram)| (cause, histogram.clone()))
            .collect(),
        total_ns: times.total_ns,
        method: times.method.to_owned(),
        share_of_cpu: times
            .total_ns
            .and_then(|total| attribute::share_of(total, sidecar.cost.cpu())),
        share_of_wall: times
            .total_ns
            .and_then(|total| attribute::share_of(total.scaled(busiest), sidecar.cost.wall)),
        mm_calls: mm_calls(attribution, sidecar),
        populate_requested: populate_requested(attribution, sidecar),
        forks: attribution.tally.forks,
        spawned: attribution.tally.spawned,
        lock_wait: (lock_waits > 0).then_some(lock_wait),
        lock_waits,
    }
}

/// Waits for `mmap_lock`: those whose stack passes through fault handling or a memory call, and
/// those without a named stack of threads that were inside one.
fn lock_waits(attribution: &Attribution, names: &Names<'_>) -> (u64, Nanos) {
    attribution
        .tally
        .lock_waits
        .iter()
        .filter(|(stack, _)| {
            stack.is_none_or(|stack| {
                names
                    .kernel_calls(stack, &MMAP_LOCK_CALLERS)
                    .unwrap_or(false)
            })
        })
        .fold((0, Nanos(0)), |sum, (_, held)| {
            (sum.0 + held.0, sum.1 + held.1)
        })
}

/// What mmap was asked to populate, scaled up as the calls are.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "bytes of one run are far below 2^53"
)]
fn populate_requested(attribution: &Attribution, sidecar: &Sidecar) -> Bytes {
    let recorded = attribution.tally.populate_requested as f64;
    Bytes((recorded / recorded_share(sidecar)).round() as u64)
}

/// Costs of memory calls, scaled up from the part of the run in which they were recorded.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "counts and times of one run are far below 2^53"
)]
fn mm_calls(attribution: &Attribution, sidecar: &Sidecar) -> Vec<MmCallCost> {
    let factor = 1.0 / recorded_share(sidecar);
    let scaled = |value: u64| (value as f64 * factor).round() as u64;
    MmCall::ALL
        .iter()
        .filter_map(|call| Some((call, attribution.tally.calls.get(call)?)))
        .map(|(call, totals)| MmCallCost {
            call: call.name().to_owned(),
            calls: scaled(totals.calls),
            bytes: Bytes(scaled(totals.bytes)),
            time: (totals.timed > 0).then(|| {
                let each = totals.time.as_secs_f64() / totals.timed as f64;
                Nanos::from_secs_f64(each * totals.calls as f64 * factor)
            }),
        })
        .collect()
}

/// Time of faults in processes that were forked for a single task, if most forks were of that kind.
fn faults_of_forks(attribution: &Attribution, times: &Times) -> Option<KernelWork> {
    let tally = &attribution.tally;
    let share = tally.faults_of_short_lived / tally.all.sum.max(f64::MIN_POSITIVE);
    if tally.short_lived * 2 < tally.forks || share <= 0.0 {
        return None;
    }
    let share = attribute::wilson(share.min(1.0), tally.all.effective_samples());
    let time = times.total_ns?.times(share);
    Some(KernelWork {
        id: FORKED.to_owned(),
        time,
        in_faults: time,
    })
}

/// What copying page tables took for processes that then executed another program: all copies are
/// of one size.
fn copied_to_spawn(attribution: &Attribution, account: &Account) -> Option<KernelWork> {
    let tally = &attribution.tally;
    let share = tally.spawned as f64 / tally.forks.max(1) as f64;
    let copied = account.work("fork").filter(|_| tally.spawned > 0)?;
    Some(KernelWork {
        id: SPAWNED.to_owned(),
        time: copied.time.scaled(share.min(1.0)),
        in_faults: Estimate::exact(0.0),
    })
}

/// Share of the run during which memory calls were recorded.
fn recorded_share(sidecar: &Sidecar) -> f64 {
    let windows = &sidecar.collection.call_windows;
    let wall = sidecar.cost.wall.as_secs_f64();
    if windows.is_empty() || wall <= 0.0 {
        return 1.0;
    }
    let covered: f64 = windows
        .iter()
        .map(|&(from, to)| (to - from).as_secs_f64())
        .sum();
    (covered / wall).clamp(0.001, 1.0)
}

fn losses(attribution: &Attribution, sidecar: &Sidecar, scale: &Scale) -> Losses {
    let mut losses = sidecar.losses.clone();
    losses.take_in(&attribution.losses);
    losses.add(LossKind::TimelineGap, sidecar.timeline.gaps);
    scale.note(&mut losses);
    losses
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::causes::Attributor;
    use crate::causes::tests::{Recorded, Stream, sidecar};
    use pagewise_model::event::{
        Callchain, CpuMode, Event, EventKind, EventSource, PERF_CONTEXT_USER, Sample, Sampling,
        SourceIndex,
    };
    use pagewise_model::findings::Site;
    use pagewise_model::stack::FrameKey;
    use pagewise_model::symbol::Name;

    const BLOCK: u64 = 0x7f00_0000_0000;

    /// Twenty rounds over a block of 4,000 pages, seen through one sample in 997, without calls;
    /// resident memory never exceeded `resident_pages`.
    fn rarely_sampled(resident_pages: u64) -> Findings {
        let mut sidecar = sidecar();
        sidecar.cost.minor_faults = 80_000;
        sidecar.cost.max_rss = Bytes(resident_pages * 4096);
        let mut stream = Stream::new(Recorded::SampledWithoutCalls(997));
        stream.map(1, BLOCK, 4000);
        (0..20).for_each(|_| stream.touch(1, BLOCK, 4000));
        measure(&stream.finish(), &SymbolTable::default(), &sidecar, None)
    }

    fn faults_by(findings: &Findings, wanted: impl Fn(Cause) -> bool) -> f64 {
        let shares = findings.by_cause.iter();
        shares
            .filter(|share| wanted(share.key))
            .map(|share| share.faults.value)
            .sum()
    }

    #[test]
    fn more_first_touches_than_memory_could_hold_are_churn() {
        let findings = rarely_sampled(4000);
        let churn = faults_by(&findings, Cause::is_churn);
        assert!((churn / 80_000.0 - 0.95).abs() < 0.01, "{churn}");
        // Mapped once and never again: it was freed in place.
        assert_eq!(findings.churn.routes[0].cause, Cause::RefaultAfterDontneed);
    }

    #[test]
    fn as_many_first_touches_as_memory_held_are_no_churn() {
        let findings = rarely_sampled(80_000);
        assert!(faults_by(&findings, Cause::is_churn) < 1.0);
        assert!(findings.churn.routes.is_empty());
    }

    #[test]
    fn faults_that_no_event_showed_are_a_loss_and_no_cause() {
        let mut sidecar = sidecar();
        sidecar.cost.minor_faults = 1_000;
        let mut stream = Stream::new(Recorded::Fully);
        stream.map(1, BLOCK, 100);
        stream.touch(1, BLOCK, 100);
        let findings = measure(&stream.finish(), &SymbolTable::default(), &sidecar, None);
        assert!((faults_by(&findings, |_| true) - 100.0).abs() < 1e-9);
        assert_eq!(findings.losses.count(LossKind::FaultsWithoutEvent), 900);
    }

    /// A hundred faults whose frame-pointer walk ends in one frame, and `unwound` with a full
    /// stack.
    fn places(unwound: u64) -> Vec<Site> {
        let sources = [EventSource {
            name: "page-faults".into(),
            kind: EventKind::PageFault,
            sampling: Sampling::Every(1),
            has_callchain: true,
            user_only: false,
            has_switches: false,
        }];
        let chain: Vec<u8> = [PERF_CONTEXT_USER, 0x1000].map(u64::to_le_bytes).concat();
        let mut attributor = Attributor::new(&sources, &sidecar());
        for fault in 0..100 + unwound {
            let sample = Event::Sample(Sample {
                source: SourceIndex(0),
                pid: 1,
                tid: 1,
                time: Nanos(fault + 1),
                cpu: None,
                cgroup: 0,
                ip: 0x1000,
                mode: pagewise_model::event::CpuMode::User,
                address: BLOCK + fault * 4096,
                period: 1,
                callchain: Callchain::from_le_bytes(&chain),
                raw: &[],
                user_stack: None,
            });
            let full = [0x1000, 0x2001, 0x3001];
            attributor.event_with_chain(&sample, (fault >= 100).then_some(&full[..]));
        }
        let names = [(0x1000, "memset"), (0x2000, "fill"), (0x3000, "main")];
        let names = names.map(|(address, function)| {
            let functions = vec![function.to_string()];
            let module = "program".to_string();
            let key = FrameKey {
                pid: 1,
                mode: CpuMode::User,
                address,
            };
            (key, Name::Known { functions, module })
        });
        let found = measure(
            &attributor.finish(),
            &names.into_iter().collect(),
            &sidecar(),
            None,
        );
        found.evidence.sites
    }

    #[test]
    fn places_are_drawn_from_unwound_stacks_once_there_are_enough() {
        let few = places(10);
        assert_eq!(few.len(), 2, "{few:?}");
        let enough = places(50);
        assert_eq!(enough.len(), 1, "{enough:?}");
        assert_eq!(enough[0].stack, ["main", "fill", "memset"]);
        // They represent all faults, not only their own.
        assert!((enough[0].faults - 150.0).abs() < 1.0, "{enough:?}");
    }

    /// Without the kernel's stacks, its time is divided by what was timed.
    #[test]
    fn timed_faults_are_part_of_unsampled_kernel_time() {
        let message = |faults: Option<f64>| {
            let part = |id, label, time| TimePart::plain(id, label, Estimate::exact(time));
            let mut account = Account {
                kernel: Estimate::exact(600.0),
                unexplained: Estimate::exact(600.0),
                cpu: vec![
                    part(UNEXPLAINED, "the kernel, unexplained", 600.0),
                    part("own", "the program's own code", 400.0),
                ],
                ..Account::default()
            };
            let time = FaultTime {
                total_ns: faults.map(|value| Estimate {
                    value,
                    low: value - 100.0,
                    high: value + 150.0,
                }),
                ..FaultTime::default()
            };
            explain_blindly(&mut account, &time, KernelTable::shipped());
            let all: f64 = account.cpu.iter().map(|part| part.time.value).sum();
            assert!((all - 1000.0).abs() < 1e-9, "{all}");
            let parts = account.cpu.iter();
            let parts: Vec<(String, f64, f64, f64)> = parts
                .map(|part| {
                    let time = part.time;
                    (part.label.clone(), time.value, time.low, time.high)
                })
                .collect();
            (parts, account.unexplained)
        };
        let own = ("the program's own code".to_owned(), 400.0, 400.0, 400.0);
        let (parts, left) = message(Some(450.0));
        let faults = ("page faults".to_owned(), 450.0, 350.0, 600.0);
        let rest = ("the kernel, unexplained".to_owned(), 150.0, 0.0, 250.0);
        assert_eq!(parts, [faults, own.clone(), rest]);
        assert_eq!((left.value, left.low, left.high), (150.0, 0.0, 250.0));
        // More than the kernel used is no time of faults.
        let (parts, _) = message(Some(700.0));
        assert_eq!(parts.len(), 2, "{parts:?}");
        assert_eq!(parts[0].1, 600.0);
        let (parts, left) = message(None);
        assert_eq!(parts[0].1, 600.0);
        assert_eq!(left.value, 600.0);
    }
}
