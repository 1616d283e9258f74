//! Symptoms that cost elapsed time: waits for locks, for memory, for pages.

use super::case::{Case, faults_of, plain, share_of_work};
use super::open::has_one_thread;
use super::symptom::Symptom;
use pagewise_faults::account::combined;
use pagewise_model::account::TimePart;
use pagewise_model::delays::Delay;
use pagewise_model::findings::{Cause, FileReads, Findings};
use pagewise_model::run::Ending;
use pagewise_model::timeline::PressurePoint;
use pagewise_model::units::{Estimate, Nanos};

/// Pages scanned by direct reclaim (4 MiB) from which reclaim is worth mentioning.
const WORTH_SCANNED: u64 = 1_024;
/// Share of CPU time in reclaim, according to samples, from which it is.
const WORTH_RECLAIMING: f64 = 0.02;
/// Share of the time in reclaim from which the faults of a program at its limit are attributed to
/// the limit.
const WORTH_A_LIMIT: f64 = 0.05;
/// No major fault takes longer on average, even with hard disks and shared ones: if waits for pages
/// are longer, it is read(2) that waits.
const LONGEST_READ: Nanos = Nanos(50_000_000);

/// All observed waits.
pub(super) fn all(findings: &Findings) -> impl Iterator<Item = Case> {
    let found = [killed, lock, reclaim, thrashing, file_reads];
    found.into_iter().filter_map(|wait| wait(findings))
}

/// Waits for `mmap_lock`, as the share of the threads' time in which they would have found a CPU.
fn lock(findings: &Findings) -> Option<Case> {
    // A single thread waits for readers of its memory map under /proc, not for itself.
    let wait = findings
        .time
        .lock_wait
        .filter(|_| !has_one_thread(findings))?;
    let wall = findings.cost.wall.as_secs_f64().max(1e-9);
    let threads = findings.by_thread.len().max(1) as f64;
    let ready = part(findings, "ready").map_or(0.0, |part| part.time.value * 1e-9 / wall);
    let all_cpus = wall * f64::from(findings.host.cpus);
    let used = match findings.host.cpus {
        0 => 0.0,
        _ => findings.cost.cpu().as_secs_f64() / all_cpus,
    };
    let free = (1.0 - ready.max(used)).clamp(0.0, 1.0);
    let share = (wait.as_secs_f64() / (wall * threads)).min(1.0) * free;
    (wait.0 > 0).then(|| Case {
        cost: Estimate::exact(share),
        ..plain(findings, Symptom::LockWait, 0.0, &[])
    })
}

fn part<'a>(findings: &'a Findings, id: &str) -> Option<&'a TimePart> {
    let mut parts = findings.account.elapsed.iter();
    parts.find(|part| part.id == id)
}

/// Waits for pages of mapped files: in elapsed time, since a major fault takes little CPU time.
fn file_reads(findings: &Findings) -> Option<Case> {
    let waited = part(findings, "pages")?.time;
    // Waits for pages of swap are in the same functions of the kernel.
    let swapped = faults_of(findings, &[Cause::SwapIn]);
    let read = faults_of(findings, &[Cause::FileMajor]);
    let of_files = match findings.samples {
        0 => !swaps_in(findings),
        _ => read > swapped,
    };
    let each = waited.low / findings.cost.major_faults.max(1) as f64;
    let is_read = findings.cost.major_faults > 0 && of_files && each <= LONGEST_READ.0 as f64;
    let kind = match is_first_run(findings) {
        true => Symptom::FirstRun,
        false => Symptom::FileReads,
    };
    is_read.then(|| Case {
        cost: waited.scaled(1.0 / findings.cost.wall.0.max(1) as f64),
        ..plain(findings, kind, 0.0, &[])
    })
}

/// Share of the reads from which they count as all of them.
const NEARLY_ALL: f64 = 0.9;

/// Whether nearly only the program itself and its libraries are read, and nothing evicts them: the next run
/// finds them in memory.
fn is_first_run(findings: &Findings) -> bool {
    let reads = |is_one: fn(&FileReads) -> bool| -> u64 {
        let files = findings.file_reads.iter().filter(|file| is_one(file));
        files.map(|file| file.reads).sum()
    };
    let (all, of_programs) = (reads(|_| true), reads(is_of_program));
    all > 0 && of_programs as f64 >= NEARLY_ALL * all as f64 && limit_hits(findings) == 0
}

/// Code, or data of a library: `libicudata.so.72.1`.
fn is_of_program(file: &FileReads) -> bool {
    let name = file.path.rsplit('/').next().unwrap_or_default();
    file.is_code || name.ends_with(".so") || name.contains(".so.")
}

/// Whether the program has pages in swap, or the machine read any from there meanwhile.
fn swaps_in(findings: &Findings) -> bool {
    let timeline = &findings.timeline;
    let read = |at: Option<&PressurePoint>| at.map_or(0, |point| point.swap_in);
    read(timeline.pressure.last()) > read(timeline.pressure.first())
        || timeline.points.iter().any(|point| point.swap.0 > 0)
}

/// Reclaim that affected this run: seen in its own stacks, as hits of its cgroup's limit, or as
/// direct reclaim of the machine during the run (which does not include reclaim caused by cgroup
/// limits).
fn reclaim(findings: &Findings) -> Option<Case> {
    let seen = seen_reclaim(findings).map(|(share, _)| share);
    let points = &findings.timeline.pressure;
    let first = points.first().copied().unwrap_or_default();
    let last = points.last().copied().unwrap_or_default();
    let hits = limit_hits(findings);
    let scanned = last.direct_scanned.saturating_sub(first.direct_scanned);
    let is_seen = seen.is_some_and(|share| share.low >= WORTH_RECLAIMING);
    if hits == 0 && scanned < WORTH_SCANNED && !is_seen {
        return None;
    }
    let cost = seen.unwrap_or_else(|| {
        let stalled = last.stall_some.unwrap_or_default() - first.stall_some.unwrap_or_default();
        let share = stalled.as_secs_f64() / findings.cost.wall.as_secs_f64().max(1e-9);
        let at_least = if hits > 0 { 0.05 } else { 0.02 };
        Estimate::exact(share.max(at_least))
    });
    Some(Case {
        cost,
        ..plain(findings, Symptom::Reclaim, 0.0, &[])
    })
}

const SIGKILL: i32 = 9;
/// What a shell exits with when SIGKILL ended its last command.
const KILLED_IN_A_SHELL: i32 = 128 + SIGKILL;

/// A program that SIGKILL ended while its cgroup was at its limit: the kernel kills there what it can find
/// no page for. Its run counts for nothing.
fn killed(findings: &Findings) -> Option<Case> {
    let by_signal = [Ending::Killed(SIGKILL), Ending::Exited(KILLED_IN_A_SHELL)];
    let is_killed = by_signal.contains(&findings.ending) && limit_hits(findings) > 0;
    is_killed.then(|| Case {
        cost: Estimate::exact(1.0),
        ..plain(findings, Symptom::Killed, 0.0, &[])
    })
}

/// Number of times that limits of cgroups were hit: a group that is gone at the end was counted by
/// earlier readings.
pub(super) fn limit_hits(findings: &Findings) -> u64 {
    let points = findings.timeline.pressure.iter();
    let mut hits = points.map(|point| point.cgroup_limit_hits.unwrap_or(0));
    let first = hits.next().unwrap_or(0);
    hits.max().unwrap_or(0).saturating_sub(first)
}

/// The effects of a limit.
const OF_A_LIMIT: [Symptom; 5] = [
    Symptom::Reclaim,
    Symptom::Thrashing,
    Symptom::FileReads,
    Symptom::Swap,
    Symptom::File,
];

/// If a cgroup's limit causes reclaim, pages of files and of swap fault because of it: one problem,
/// with the cost of the costliest.
pub(super) fn limited(findings: &Findings, symptoms: &mut Vec<Case>) {
    let is_sure = limit_hits(findings) > 0
        && seen_reclaim(findings).is_some_and(|(share, _)| share.value >= WORTH_A_LIMIT);
    if !is_sure {
        return;
    }
    let merged: Vec<Case> = symptoms
        .extract_if(.., |one| OF_A_LIMIT.contains(&one.kind))
        .collect();
    let costliest = merged
        .into_iter()
        .max_by(|a, b| a.cost.value.total_cmp(&b.cost.value));
    symptoms.extend(costliest.map(|one| Case {
        kind: Symptom::Limit,
        ..one
    }));
}

/// Reclaim according to samples of CPU time and to the kernel's delay counts, as a share of
/// [`all_time`]: two estimates of the same quantity. Also returns whether they contradict each
/// other.
pub(super) fn seen_reclaim(findings: &Findings) -> Option<(Estimate, bool)> {
    let of_cpu = findings.cost.cpu().0 as f64 / all_time(findings);
    let sampled = share_of_work(findings, "reclaim").map(|share| share.scaled(of_cpu));
    let counted = findings.account.delays.and_then(|delays| {
        let (time, ready) = (delays.reclaim?.time, delays.ready?.time);
        let cpu = findings.cost.cpu();
        // It includes waiting for a CPU; how much of that belongs to it is unknown.
        let usual = time.0 as f64 * cpu.0 as f64 / (cpu + ready).0.max(1) as f64;
        let share = |nanos: f64| (nanos / all_time(findings)).min(1.0);
        Some(Estimate {
            value: share(usual),
            low: share((time - ready).0 as f64),
            high: share(time.0 as f64),
        })
    });
    match (counted, sampled) {
        (Some(counted), Some(sampled)) => Some(combined(counted, sampled)),
        (one, other) => Some((one.or(other)?, false)),
    }
}

/// Waits for pages that were evicted while the program needs them.
fn thrashing(findings: &Findings) -> Option<Case> {
    let delays = findings.account.delays?;
    let share = |delay: Option<Delay>| {
        let time = delay.map_or(0.0, |delay| delay.time.0 as f64);
        (time / all_time(findings)).min(1.0)
    };
    let (swap, evicted) = (share(delays.swap), share(delays.thrashing));
    // A wait for a page of swap may be counted as both.
    let cost = Estimate {
        value: swap.max(evicted),
        low: swap.max(evicted),
        high: (swap + evicted).min(1.0),
    };
    (cost.value >= WORTH_RECLAIMING).then(|| Case {
        cost,
        ..plain(findings, Symptom::Thrashing, 0.0, &[])
    })
}

/// The time of which the waits of all threads are a share, in nanoseconds: elapsed time, or the CPU
/// time, if threads used more.
fn all_time(findings: &Findings) -> f64 {
    findings.cost.wall.max(findings.cost.cpu()).0.max(1) as f64
}
