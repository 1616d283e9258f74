//! How much of a run's time is unresolved: time without an explanation, the uncertainty of
//! intervals, and findings reported as notes.
//!
//! "Nothing to gain" is reported only if all of that is less than a twentieth of the CPU time and
//! of the elapsed time: less is not worth a change, more may be.

use super::elapsed::waits;
use super::phrases;
use super::symptom::Symptom;
use pagewise_faults::account::UNEXPLAINED;
use pagewise_model::account::TimePart;
use pagewise_model::findings::{Diagnosis, Findings, Severity};
use pagewise_model::quantity::percent;
use pagewise_model::units::Estimate;

/// Shares of CPU time and of elapsed time below which unresolved time does not matter.
const LITTLE: f64 = 0.05;
/// Waits with an unknown reason.
const UNKNOWN_WAITS: [&str; 2] = ["kernel", "other"];

/// The unresolved time, as shares.
#[derive(Clone, Copy, Debug)]
pub(super) struct Open {
    /// CPU time that may be spent outside the program's own code.
    pub cpu: f64,
    /// The part of it without a certain explanation.
    pub unexplained: f64,
    /// The part of that which is no uncertainty of intervals: nothing explains it.
    inexplicable: f64,
    /// Elapsed time in which the program is not known for certain to run or to wait for something.
    pub elapsed: f64,
    /// The part of that which is no uncertainty of intervals: it was not seen.
    unseen: f64,
    /// Elapsed time in which it waits for a known reason.
    waited: f64,
    /// Upper bound of the same.
    pub waits: f64,
}

impl Open {
    /// The unresolved time in the account, and in `notes`.
    pub fn new(findings: &Findings, notes: &[Diagnosis]) -> Self {
        let notes = notes
            .iter()
            .filter(|one| one.severity == Severity::Note && one.id != Symptom::Open.id());
        let most = |share: fn(&Diagnosis) -> Option<Estimate>| {
            let shares = notes.clone().filter_map(share).map(|share| share.high);
            shares.fold(0.0, f64::max)
        };
        let (cpu, unexplained) = on_cpus(findings);
        let (elapsed, unseen, waits) = in_time(findings);
        Self {
            cpu: cpu.max(most(|note| note.share_of_cpu)),
            unexplained,
            inexplicable: inexplicable(findings),
            elapsed,
            unseen,
            waited: waits,
            waits: waits.max(most(|note| note.share_of_elapsed)),
        }
    }

    /// Whether all unresolved time is too little to be worth a change.
    pub fn is_little(&self) -> bool {
        self.bounds_memory() && self.waits < LITTLE
    }

    /// Whether memory management certainly takes little, whatever the program waits for.
    pub fn bounds_memory(&self) -> bool {
        self.bounds_cpu() && self.elapsed < LITTLE
    }

    /// The same of the CPU time alone.
    pub fn bounds_cpu(&self) -> bool {
        self.cpu < LITTLE
    }

    /// Unexplained CPU time, if it is worth mentioning.
    pub fn of_cpu(&self) -> Option<f64> {
        (self.unexplained >= LITTLE).then_some(self.unexplained)
    }

    /// The same of elapsed time.
    pub fn of_elapsed(&self) -> Option<f64> {
        (self.elapsed >= LITTLE).then_some(self.elapsed)
    }

    /// Sentences about what is not explained, or uncertain.
    pub fn sentences(&self, was_sampled: bool) -> Vec<String> {
        let message =
            |known: f64, all: f64, unknown: fn(String) -> String, unsure: fn(String) -> String| {
                match (known >= LITTLE, all >= LITTLE) {
                    (true, _) => Some(unknown(percent(known))),
                    (false, true) => Some(unsure(percent(all))),
                    (false, false) => None,
                }
            };
        let of_cpu = message(
            self.inexplicable,
            self.unexplained,
            phrases::not_told_of_cpu,
            phrases::uncertain_of_cpu,
        );
        let of_elapsed = message(
            self.unseen,
            self.elapsed,
            phrases::not_told_of_elapsed,
            phrases::uncertain_of_elapsed,
        );
        let of_cpu = of_cpu.filter(|_| was_sampled);
        of_cpu.into_iter().chain(of_elapsed).collect()
    }

    /// Waits worth mentioning.
    pub fn of_waits(&self) -> Option<f64> {
        (self.waited >= LITTLE).then_some(self.waited)
    }

    /// Lines about what is not explained.
    pub fn evidence(&self) -> Vec<String> {
        let lines = [
            self.of_cpu().map(|share| phrases::open_cpu(percent(share))),
            self.of_elapsed()
                .map(|share| phrases::open_elapsed(percent(share))),
        ];
        lines.into_iter().flatten().collect()
    }
}

/// Upper bound of the CPU time outside the program's own code, and how much of it is unexplained.
/// If only totals are known, all kernel time is unexplained except the measured time of faults.
fn on_cpus(findings: &Findings) -> (f64, f64) {
    let cost = &findings.cost;
    let all = cost.cpu().0.max(1) as f64;
    let faults = findings.time.share_of_cpu.unwrap_or_default();
    let parts = &findings.account.cpu;
    if parts.is_empty() {
        let kernel = cost.system.0 as f64 / all;
        let unexplained = match findings.account.sees_kernel() {
            true => findings.account.unexplained.high / all,
            false => kernel - faults.low,
        };
        return (kernel.max(faults.high), unexplained.max(0.0));
    }
    // A part without any sample does not appear.
    let own = parts.iter().find(|part| part.id == "own");
    let own = own.map_or(Estimate::default(), |own| own.time);
    let value = |wanted: fn(&str) -> bool| -> f64 {
        let parts = parts.iter().filter(|part| wanted(&part.id));
        parts.map(|part| part.time.value / all).sum()
    };
    let beside = 1.0 - own.low / all;
    let explained = value(|id| !["own", UNEXPLAINED].contains(&id));
    let recording = value(|id| id == "observer");
    let unexplained = (beside - explained).max(faults.high - faults.value);
    ((beside - recording).max(faults.high), unexplained.max(0.0))
}

/// CPU time that nothing explains, whatever the intervals of what is explained.
fn inexplicable(findings: &Findings) -> f64 {
    let parts = findings.account.cpu.iter();
    let explained = parts.filter(|part| part.id != UNEXPLAINED);
    let explained: f64 = explained.map(|part| part.time.value).sum();
    1.0 - explained / findings.cost.cpu().0.max(1) as f64
}

/// Elapsed time in which the program is not known for certain to run or wait for something, the part
/// of it that was not seen, and time in which it waits.
fn in_time(findings: &Findings) -> (f64, f64, f64) {
    let wall = findings.cost.wall.0.max(1) as f64;
    let parts = &findings.account.elapsed;
    let on_cpus = |part: &&TimePart| ["cpu", "ready"].contains(&&*part.id);
    let known = |part: &&TimePart| !UNKNOWN_WAITS.contains(&&*part.id);
    let waits: f64 = waits(findings)
        .filter(known)
        .map(|part| part.time.value / wall)
        .sum();
    let busy = |time: fn(&Estimate) -> f64| -> f64 {
        let parts = parts.iter().filter(on_cpus);
        parts.map(|part| time(&part.time) / wall).sum()
    };
    let left = |by_looks: f64| {
        let left = match (parts.is_empty(), is_one_thread(findings)) {
            (true, _) => by_totals(findings),
            (false, true) => by_looks.min(by_totals(findings) - waits),
            (false, false) => by_looks,
        };
        left.max(0.0)
    };
    let open = left(1.0 - busy(|time| time.low) - waits);
    let unseen = left(1.0 - busy(|time| time.value) - waits);
    (open, unseen, waits)
}

/// Elapsed time minus the time in which a single thread used or wanted a CPU.
fn by_totals(findings: &Findings) -> f64 {
    let cost = &findings.cost;
    let seen = findings
        .account
        .elapsed
        .iter()
        .find(|part| part.id == "ready");
    let counted = findings.account.delays.and_then(|delays| delays.ready);
    let ready = match counted {
        Some(delay) => delay.time.0 as f64,
        None => seen.map_or(0.0, |part| part.time.value),
    };
    1.0 - (cost.cpu().0 as f64 + ready) / cost.wall.0.max(1) as f64
}

/// Whether only one thread faulted.
fn is_one_thread(findings: &Findings) -> bool {
    let mut moments = findings.timeline.points.iter();
    findings.by_thread.len() <= 1 && moments.all(|point| point.processes <= 1)
}

/// Whether the program was seen to have one thread at all times.
pub(super) fn has_one_thread(findings: &Findings) -> bool {
    let mut moments = findings.timeline.points.iter();
    let alone = moments.all(|point| point.processes <= 1 && point.threads <= 1);
    alone && findings.by_thread.len() == 1 && !findings.timeline.points.is_empty()
}
