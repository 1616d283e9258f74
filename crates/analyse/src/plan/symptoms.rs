//! What the figures show, by kind of trouble, each with its faults and its cost.

use pagewise_model::findings::{Cause, Findings, RegionKind};
use pagewise_model::histogram::Histogram;
use pagewise_model::units::Estimate;

/// Kernel time of a fault where none was measured, in nanoseconds: from a page of zeros on a fast
/// machine to one on a slow machine (1.0 to 1.9 µs measured on Linux 6.18, x86-64).
const USUAL_FAULT_NS: Estimate = Estimate {
    value: 1_400.0,
    low: 700.0,
    high: 2_000.0,
};
/// Without any view of single faults, churn is concluded only where a process faulted this many
/// times as often as its peak resident set has pages…
const PROBABLE_REFAULTS: f64 = 4.0;
/// … and spends this share of its CPU time in the kernel.
const PROBABLE_SYSTEM_SHARE: f64 = 0.15;
/// Threads beside the main one count as the place of trouble from this share of the faults on.
const MAINLY_THREADS: f64 = 0.5;
/// Pages scanned by direct reclaim (4 MiB) from which reclaim is worth a word.
const WORTH_SCANNED: u64 = 1_024;

/// One kind of trouble.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Symptom {
    /// Name that rules refer to.
    pub id: &'static str,
    /// Faults.
    pub faults: f64,
    /// Share of all faults.
    pub share: f64,
    /// Share of CPU time (of wall time for waits).
    pub cost: Estimate,
    /// Sizes of the stretches that go and come, where it is churn.
    pub sizes: Histogram,
    /// Whether mostly threads beside the main one fault.
    pub in_threads: bool,
    /// Whether the program itself maps the memory, rather than an allocator.
    pub own_mapping: bool,
}

/// All symptoms, costliest first, however small: judging is the caller's task.
pub(super) fn of(findings: &Findings) -> Vec<Symptom> {
    let mut symptoms = Vec::new();
    symptoms.extend(churn(findings));
    symptoms.extend(probable_churn(findings));
    symptoms.extend(other_causes(findings));
    symptoms.extend(lock(findings));
    symptoms.extend(reclaim(findings));
    symptoms.sort_by(|a, b| b.cost.value.total_cmp(&a.cost.value));
    symptoms
}

fn churn(findings: &Findings) -> Vec<Symptom> {
    [
        "churn.brk",
        "churn.mmap",
        "churn.madvise",
        "churn.thread_arena",
    ]
    .into_iter()
    .filter_map(|id| {
        let routes = findings
            .churn
            .routes
            .iter()
            .filter(|route| churn_id(route.cause, route.region) == id);
        let mut sizes = Histogram::default();
        let mut faults = 0.0;
        let mut causes = Vec::new();
        for route in routes {
            faults += route.faults;
            sizes.merge(&route.released_sizes);
            causes.push(route.cause);
        }
        let symptom = Symptom {
            sizes,
            in_threads: mainly_threads(findings),
            own_mapping: id == "churn.mmap" && maps_itself(findings),
            ..plain(findings, id, faults, &causes)
        };
        (faults > 0.0).then_some(symptom)
    })
    .collect()
}

fn churn_id(cause: Cause, region: RegionKind) -> &'static str {
    match (cause, region) {
        (_, RegionKind::ThreadArena) => "churn.thread_arena",
        (Cause::RefaultAfterBrk, _) | (_, RegionKind::Heap) => "churn.brk",
        (Cause::RefaultAfterMunmap, _) => "churn.mmap",
        _ => "churn.madvise",
    }
}

fn maps_itself(findings: &Findings) -> bool {
    findings
        .churn
        .allocator_blocks
        .is_some_and(|share| share < 0.5)
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

/// With nothing but `wait4(2)` and the timeline: one process, far more faults than pages it ever
/// held, and much time in the kernel.
#[allow(clippy::cast_precision_loss, reason = "ratios of counts")]
fn probable_churn(findings: &Findings) -> Option<Symptom> {
    let cost = &findings.cost;
    let single = findings
        .timeline
        .points
        .iter()
        .all(|point| point.processes <= 1);
    let pages = cost.max_rss.0 as f64 / findings.host.page_size.max(1) as f64;
    let faults = cost.faults() as f64;
    let cpu = cost.cpu().0.max(1) as f64;
    let seen = findings.samples > 0 || findings.timeline.points.is_empty();
    let suspicious = !seen
        && single
        && pages > 0.0
        && faults > PROBABLE_REFAULTS * pages
        && cost.system.0 as f64 / cpu > PROBABLE_SYSTEM_SHARE;
    suspicious.then(|| plain(findings, "churn.probable", faults - pages, &[]))
}

fn other_causes(findings: &Findings) -> Vec<Symptom> {
    let groups: [(&'static str, &[Cause]); 5] = [
        (
            "first_touch",
            &[
                Cause::FirstTouch,
                Cause::WriteAfterRead,
                Cause::HugePage,
                Cause::StackGrowth,
            ],
        ),
        ("cow.fork", &[Cause::CopyOnWrite]),
        ("file", &[Cause::FileMinor, Cause::FileMajor, Cause::Shared]),
        ("swap", &[Cause::SwapIn]),
        ("write_protect", &[Cause::WriteProtect]),
    ];
    groups
        .into_iter()
        .filter_map(|(id, causes)| {
            let faults = faults_of(findings, causes);
            (faults > 0.0).then(|| plain(findings, id, faults, causes))
        })
        .collect()
}

fn faults_of(findings: &Findings, causes: &[Cause]) -> f64 {
    let lines = findings
        .by_cause
        .iter()
        .filter(|line| causes.contains(&line.key));
    lines.map(|line| line.faults.value).sum()
}

#[allow(clippy::cast_precision_loss, reason = "ratios of times and counts")]
fn plain(findings: &Findings, id: &'static str, faults: f64, causes: &[Cause]) -> Symptom {
    let all = (findings.cost.faults() as f64).max(faults).max(1.0);
    Symptom {
        id,
        faults,
        share: faults / all,
        cost: cost_of(findings, faults, causes),
        sizes: Histogram::default(),
        in_threads: false,
        own_mapping: false,
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

/// Kernel time of one fault with these causes: measured for them, else measured over all, else
/// the usual. What is known of the time of all faults (its interval, its bound by the system time)
/// holds for theirs in proportion.
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
            Some(total) if all > 0.0 => total.scaled(each / all),
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

/// Waits for `mmap_lock`, against wall time.
fn lock(findings: &Findings) -> Option<Symptom> {
    let wait = findings.time.lock_wait?;
    let share = wait.as_secs_f64() / findings.cost.wall.as_secs_f64().max(1e-9);
    (wait.0 > 0).then(|| Symptom {
        cost: Estimate::exact(share),
        ..plain(findings, "lock", 0.0, &[])
    })
}

/// Reclaim that this run suffered: hits of its cgroup's limit, or direct reclaim while it ran.
fn reclaim(findings: &Findings) -> Option<Symptom> {
    let (first, last) = (
        findings.timeline.pressure.first()?,
        findings.timeline.pressure.last()?,
    );
    let hits = last.cgroup_limit_hits.unwrap_or(0)
        - first
            .cgroup_limit_hits
            .unwrap_or(0)
            .min(last.cgroup_limit_hits.unwrap_or(0));
    let scanned = last.direct_scanned.saturating_sub(first.direct_scanned);
    if hits == 0 && scanned < WORTH_SCANNED {
        return None;
    }
    let stalled = last.stall_some.unwrap_or_default() - first.stall_some.unwrap_or_default();
    let share = stalled.as_secs_f64() / findings.cost.wall.as_secs_f64().max(1e-9);
    let at_least = if hits > 0 { 0.05 } else { 0.02 };
    let cost = Estimate::exact(share.max(at_least));
    Some(Symptom {
        cost,
        ..plain(findings, "reclaim", 0.0, &[])
    })
}
