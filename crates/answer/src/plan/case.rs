//! A symptom in one run: its faults, its share of them, its cost.

use super::symptom::Symptom;
use pagewise_model::allocator::AllocatorKind;
use pagewise_model::findings::{Cause, Findings, Share};
use pagewise_model::histogram::Histogram;
use pagewise_model::units::{Estimate, Nanos};

/// Kernel time of a fault if none was measured, in nanoseconds: from a zeroed page on a fast
/// machine to one on a slow machine (1.0 to 1.9 µs measured on Linux 6.18, x86-64).
pub(super) const USUAL_FAULT_NS: Estimate = Estimate {
    value: 1_400.0,
    low: 700.0,
    high: 2_000.0,
};

/// A run counts as one process's if this share of all faults is in it.
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
    pub(super) fn time(&self, findings: &Findings) -> Nanos {
        match (self.is_of_cpu(), self.kind) {
            (true, _) => findings.cost.cpu(),
            // A row of the elapsed time, not a sum over threads.
            (false, Symptom::FileReads | Symptom::FirstRun) => findings.cost.wall,
            (false, _) => findings.cost.cpu().max(findings.cost.wall),
        }
    }

    /// Seconds that it costs.
    pub(super) fn lost(&self, findings: &Findings) -> f64 {
        self.cost.value * self.time(findings).as_secs_f64()
    }

    /// Seconds that it costs at least.
    pub(super) fn certainly_lost(&self, findings: &Findings) -> f64 {
        self.cost.low * self.time(findings).as_secs_f64()
    }
}

/// Who made the calls behind churn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// An allocator, which settings can reach.
    Allocator,
    /// The C library's allocator with thresholds that the program sets by mallopt: settings do not
    /// reach it, another allocator does.
    Fixed,
    /// The C library's allocator, by the program's calls of `malloc_trim`: the same.
    Trimmed,
    /// Probably an allocator or a runtime: the calls were not seen.
    Presumed,
    /// A language runtime, for its own heap.
    Runtime(AllocatorKind),
    /// The C library, for the stacks of threads.
    Threads,
    /// An allocator inside the program or a library, which has settings of its own; its family, if it was
    /// found in the process.
    Bundled(Option<AllocatorKind>),
    /// The program itself.
    Program,
    /// It could not be determined.
    Unknown,
}

pub(super) fn is_one_process(findings: &Findings) -> bool {
    let threads = &findings.by_thread;
    let all: f64 = threads.iter().map(|thread| thread.faults).sum();
    threads.iter().any(|one| {
        let own = threads.iter().filter(|thread| thread.pid == one.pid);
        own.map(|thread| thread.faults).sum::<f64>() >= MOSTLY_ONE * all
    })
}

/// Share of the faults from which threads other than the main one count as the place of a problem.
const MAINLY_THREADS: f64 = 0.5;

/// Whether mostly threads other than the main one fault.
pub(super) fn mainly_threads(findings: &Findings) -> bool {
    let all: f64 = findings.by_thread.iter().map(|thread| thread.faults).sum();
    let others = findings
        .by_thread
        .iter()
        .filter(|thread| thread.tid != thread.pid);
    let faults: f64 = others.map(|thread| thread.faults).sum();
    all > 0.0 && faults / all >= MAINLY_THREADS
}

pub(super) fn faults_of(findings: &Findings, causes: &[Cause]) -> f64 {
    let lines = findings
        .by_cause
        .iter()
        .filter(|line| causes.contains(&line.key));
    lines.map(|line| line.faults.value).sum()
}

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

pub(super) fn share_of_faults(findings: &Findings, faults: f64) -> f64 {
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
    let message = of.scaled(share / of.value);
    Estimate {
        value: share,
        low: message.low.min(share),
        high: message.high.min(1.0).max(share),
    }
}

/// Share of CPU time that these faults take.
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

/// Share of the CPU time of one kind of kernel work, if the kernel's stacks were seen.
pub(super) fn share_of_work(findings: &Findings, id: &str) -> Option<Estimate> {
    let work = findings.account.work(id)?;
    Some(work.time.scaled(1.0 / findings.cost.cpu().0.max(1) as f64))
}

/// The sum of estimates that err independently of each other.
pub(super) fn together(times: impl Iterator<Item = Estimate>) -> Estimate {
    let (mut sum, mut below, mut above) = (0.0, 0.0, 0.0);
    for time in times {
        sum += time.value;
        below += (time.value - time.low).powi(2);
        above += (time.high - time.value).powi(2);
    }
    Estimate {
        value: sum,
        low: (sum - below.sqrt()).max(0.0),
        high: sum + above.sqrt(),
    }
}
