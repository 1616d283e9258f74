//! The figures that show a symptom.

use super::callers::{caller, moved};
use super::case::{Case, Owner, faults_of};
use super::grade::range;
use super::reads::{Order, order_of};
use super::symptom::Symptom;
use super::waits::{limit_hits, seen_reclaim};
use super::{numa, own_settings, phrases, starts, works};
use pagewise_faults::runtimes::Runtimes;
use pagewise_model::account::CALLOC;
use pagewise_model::allocator::AllocatorKind;
use pagewise_model::delays::Delay;
use pagewise_model::findings::{Cause, FileReads, Findings};
use pagewise_model::quantity::{count, percent, percent_interval, rounded};
use pagewise_model::timeline::PressurePoint;
use pagewise_model::units::{Bytes, Estimate, Nanos};

/// The figures that show a symptom.
pub(super) fn evidence(findings: &Findings, symptom: &Case) -> Vec<String> {
    let mut lines = Vec::new();
    if symptom.faults > 0.0 {
        let all = count(findings.cost.faults());
        let share = share_of_faults(symptom.share);
        lines.push(phrases::of_this_kind(rounded(symptom.faults), all, share));
        lines.push(phrases::faults_take(range(symptom.cost)));
    }
    if symptom.kind.is_churn() {
        lines.extend(churn(findings, symptom));
    }
    lines.extend(of_its_own(findings, symptom));
    lines.extend(set_by_the_user(findings, symptom));
    lines.extend(delays(findings, symptom));
    lines
}

/// What the user has set for the allocator or runtime that this is about.
fn set_by_the_user(findings: &Findings, symptom: &Case) -> Vec<String> {
    let is_of_allocators = symptom.kind.is_churn()
        || [Symptom::HotAllocator, Symptom::HotCollector].contains(&symptom.kind);
    let concerns = |kind: AllocatorKind| match symptom.owner {
        Owner::Runtime(owner) => kind == owner,
        Owner::Allocator | Owner::Fixed | Owner::Trimmed => !Runtimes::shipped().has(kind),
        Owner::Bundled(Some(family)) => kind == family,
        Owner::Presumed => true,
        Owner::Bundled(None) | Owner::Threads | Owner::Program | Owner::Unknown => false,
    };
    let concerned = findings.allocators.iter().filter(|one| concerns(one.kind));
    match is_of_allocators {
        true => own_settings::evidence(&concerned.collect::<Vec<_>>()),
        false => Vec::new(),
    }
}

/// The figures specific to this symptom.
fn of_its_own(findings: &Findings, symptom: &Case) -> Vec<String> {
    match symptom.kind {
        Symptom::HotAllocator => allocator(findings, symptom).into_iter().collect(),
        Symptom::HotCollector => collector(findings, symptom).into_iter().collect(),
        Symptom::CallocZeroing => zeroing(findings, symptom).into_iter().collect(),
        Symptom::Reclaim | Symptom::Limit | Symptom::Killed => reclaim(findings),
        Symptom::FileReads | Symptom::FirstRun => reads(findings, symptom),
        Symptom::HugeSparse | Symptom::HugeZeroing => huge(findings).into_iter().collect(),
        Symptom::LockWait | Symptom::LockSpin => {
            let mut lines = works::evidence(findings, symptom);
            lines.extend(lock(findings));
            lines
        }
        Symptom::NumaBalancing | Symptom::NumaRemote | Symptom::NumaOneNode => {
            numa::evidence(findings, symptom)
        }
        Symptom::StartEach | Symptom::ThreadEach => starts::evidence(findings, symptom),
        Symptom::ForkTables
        | Symptom::ForkSpawn
        | Symptom::ForkEach
        | Symptom::TlbFlush
        | Symptom::ServedFaults
        | Symptom::Registering
        | Symptom::Populating
        | Symptom::LockQueue
        | Symptom::FileRemap => works::evidence(findings, symptom),
        Symptom::ChurnBrk
        | Symptom::ChurnPopulated
        | Symptom::ChurnMmap
        | Symptom::ChurnMadvise
        | Symptom::ChurnThreadArena
        | Symptom::ChurnProbable
        | Symptom::FirstTouch
        | Symptom::ReadFirst
        | Symptom::UnknownFaults
        | Symptom::FreshMemory
        | Symptom::HugeFallback
        | Symptom::ForkCopies
        | Symptom::File
        | Symptom::FileCopies
        | Symptom::Shared
        | Symptom::Swap
        | Symptom::WriteProtect
        | Symptom::Runtime
        | Symptom::Thrashing
        | Symptom::KernelThreads
        | Symptom::KernelWork
        | Symptom::KernelUnexplained
        | Symptom::Healthy
        | Symptom::Open
        | Symptom::Short
        | Symptom::Computing => Vec::new(),
    }
}

/// The kernel's counts of the waits behind a symptom.
fn delays(findings: &Findings, symptom: &Case) -> Vec<String> {
    let Some(delays) = findings.account.delays else {
        return Vec::new();
    };
    type Sentence = fn(Nanos, String) -> String;
    let disk: (Option<Delay>, Sentence) = (delays.disk, phrases::counted_disk);
    let kinds: Vec<(Option<Delay>, Sentence)> = match symptom.kind {
        Symptom::Reclaim
        | Symptom::Thrashing
        | Symptom::Limit
        | Symptom::Killed
        | Symptom::Swap => vec![
            (delays.reclaim, phrases::counted_reclaim),
            (delays.thrashing, phrases::counted_thrashing),
            (delays.swap, phrases::counted_swap),
            disk,
        ],
        Symptom::File | Symptom::FileReads | Symptom::FirstRun => vec![disk],
        Symptom::ForkCopies => vec![(delays.copying, phrases::counted_copying)],
        _ => Vec::new(),
    };
    let message = kinds
        .into_iter()
        .filter_map(|(delay, message)| Some((delay.filter(|delay| delay.count > 0)?, message)));
    message
        .map(|(delay, message)| message(delay.time, count(delay.count)))
        .collect()
}

/// The interval is given if it matters.
fn share_of_faults(share: Estimate) -> String {
    match share.high - share.low > 0.2 * share.value {
        true => percent_interval(&share),
        false => percent(share.value),
    }
}

fn allocator(findings: &Findings, symptom: &Case) -> Option<String> {
    let functions = findings.account.allocator()?.places.join(", ");
    Some(phrases::allocator_takes(range(symptom.cost), functions))
}

fn collector(findings: &Findings, symptom: &Case) -> Option<String> {
    let functions = findings.account.collector()?.places.join(", ");
    Some(phrases::collector_takes(range(symptom.cost), functions))
}

fn zeroing(findings: &Findings, symptom: &Case) -> Option<String> {
    let functions = findings.account.part(CALLOC)?.places.join(", ");
    Some(phrases::zeroing_takes(range(symptom.cost), functions))
}

/// Which runtime makes the calls, and where.
fn runtime(findings: &Findings, symptom: &Case) -> Option<String> {
    let Owner::Runtime(kind) = symptom.owner else {
        return None;
    };
    let runtimes = Runtimes::shipped();
    let name = runtimes.name(kind)?;
    let churn = &findings.churn;
    let mut sites = churn.release_sites.iter().chain(&churn.regrow_sites);
    let place = sites
        .find(|site| caller(&site.stack, runtimes, &findings.allocators) == Some(symptom.owner))?;
    Some(phrases::runtime_calls(name, &place.culprit))
}

/// Explains why faults that the table counts as first touches are reported as churn.
fn moving(findings: &Findings, symptom: &Case) -> Option<String> {
    let moved = moved(findings);
    let message = moved > 0.0 && symptom.kind == Symptom::ChurnMmap;
    message.then(|| phrases::memory_moves(rounded(moved), findings.cost.max_rss))
}

fn churn(findings: &Findings, symptom: &Case) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(ratio) = findings
        .churn
        .refault_ratio
        .filter(|ratio| ratio.value < 1.0)
    {
        let times = 1.0 / (1.0 - ratio.value);
        if times >= 1.5 {
            lines.push(phrases::allocated_times(rounded(times)));
        }
    }
    let sizes = &symptom.sizes;
    if sizes.count() > 0 {
        let mean = Bytes::rounded(sizes.mean());
        lines.push(phrases::returned(
            count(sizes.count()),
            mean,
            Bytes(sizes.max()),
        ));
    }
    lines.extend(moving(findings, symptom));
    lines.extend(runtime(findings, symptom));
    let system = findings.cost.system;
    let cpu = findings.cost.cpu().as_secs_f64().max(1e-9);
    let share = percent(system.as_secs_f64() / cpu);
    lines.push(phrases::system_time(system, findings.cost.cpu(), share));
    let places = findings.churn.refault_sites.first();
    if let Some(site) = places.filter(|site| !site.culprit.is_empty()) {
        lines.push(phrases::touched_again(&site.culprit));
    }
    lines
}

fn lock(findings: &Findings) -> Option<String> {
    let wait = findings.time.lock_wait?;
    let waits = findings.time.lock_waits;
    (waits > 0).then(|| phrases::lock_waits(count(waits), wait))
}

fn reads(findings: &Findings, symptom: &Case) -> Vec<String> {
    let of = |cause| faults_of(findings, &[cause]);
    let minor = rounded(of(Cause::FileMinor));
    let mut lines = vec![
        phrases::page_waits(range(symptom.cost)),
        phrases::major_faults(count(findings.cost.major_faults), minor),
    ];
    let part = findings
        .account
        .elapsed
        .iter()
        .find(|one| one.id == "pages");
    lines.extend(
        part.filter(|part| !part.who.is_empty())
            .map(|part| phrases::who_waits(part.who.join(", "))),
    );
    lines.extend(findings.file_reads.iter().take(MOST_FILES).map(of_file));
    lines
}

/// Files that the evidence names.
const MOST_FILES: usize = 3;

/// "/data/x.bin (200 MiB): 1,600 reads, at random positions".
fn of_file(file: &FileReads) -> String {
    let order = match order_of(file) {
        Some(Order::Swept) => phrases::in_order(),
        Some(Order::Random) => phrases::at_random(),
        Some(Order::Partly) => phrases::partly_in_order(),
        None => String::new(),
    };
    let reads = count(file.reads);
    match file.reads {
        1 => phrases::file_read(&file.path, file.mapped, reads, order),
        _ => phrases::file_reads(&file.path, file.mapped, reads, order),
    }
}

fn reclaim(findings: &Findings) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(work) = findings.account.work("reclaim") {
        let time = Nanos::from_secs_f64(work.time.value / 1e9);
        lines.push(phrases::reclaim_time(time));
    }
    if seen_reclaim(findings).is_some_and(|(_, contradict)| contradict) {
        lines.push(phrases::reclaim_disagrees());
    }
    let points = &findings.timeline.pressure;
    let (Some(first), Some(last)) = (points.first(), points.last()) else {
        return lines;
    };
    type Sentence = fn(String) -> String;
    let counters: [(u64, u64, Sentence); 4] = [
        (0, limit_hits(findings), phrases::limit_hits),
        (refaults(first), refaults(last), phrases::refaults),
        (first.direct_scanned, last.direct_scanned, phrases::scanned),
        (first.swap_out, last.swap_out, phrases::swapped_out),
    ];
    let grown = counters.map(|(before, after, message)| (after.saturating_sub(before), message));
    let grown = grown.into_iter().filter(|(grown, _)| *grown > 0);
    lines.extend(grown.map(|(grown, message)| message(count(grown))));
    let stalled = last.stall_some.unwrap_or_default() - first.stall_some.unwrap_or_default();
    if stalled > Nanos(0) {
        lines.push(phrases::stalled(stalled));
    }
    lines
}

fn refaults(point: &PressurePoint) -> u64 {
    point.refaults_file + point.refaults_anon
}

fn huge(findings: &Findings) -> Option<String> {
    let pages = findings.huge_pages?;
    Some(match pages.zeros {
        Some(zeros) => phrases::huge_zeros(pages.held, percent(zeros)),
        None => phrases::huge_held(pages.held),
    })
}
