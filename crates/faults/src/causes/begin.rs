//! Faults: from a record to its contribution to the sums.

use super::Attributor;
use super::classify::when_major;
use super::heat::Heat;
use super::judge::Case;
use super::process::{Pending, Verdict};
use super::roles::{Coverage, Role};
use super::syscalls;
use super::tally::Cell;
use pagewise_model::event::Sample;
use pagewise_model::findings::{Cause, RegionKind};
use pagewise_model::loss::LossKind;
use pagewise_model::stack::StackId;
use pagewise_model::units::Nanos;

/// Cost of one record to the program between the begin and the end of a fault, in nanoseconds: 0.25
/// to 0.35 µs without a call stack, about 1.1 µs with a frame-pointer stack (measured on Linux
/// 6.18, x86-64, two virtual CPUs).
const RECORD_COST: u64 = 300;
const RECORD_COST_WITH_STACK: u64 = 1_050;
/// Two records of one thread and page from different sources within this time belong to one fault:
/// both are written by the same call in the kernel, some hundred nanoseconds apart.
const SAME_FAULT: Nanos = Nanos(50_000);

impl Attributor {
    /// Remembers the error code of the fault that follows.
    pub(super) fn error_code(&mut self, sample: &Sample<'_>) {
        let Some((address, code)) = syscalls::page_fault(sample.raw) else {
            self.losses.add(LossKind::MalformedRecord, 1);
            return;
        };
        let page = address >> self.page_shift;
        let thread = self.thread(sample.pid, sample.tid);
        self.threads[thread].code = Some((page, code));
    }

    /// A fault begins.
    pub(super) fn fault(
        &mut self,
        sample: &Sample<'_>,
        role: Role,
        has_chain: bool,
        unwound: Option<&[u64]>,
    ) {
        let payload = syscalls::page_fault(sample.raw);
        let address = payload.map_or(sample.address, |(address, _)| address);
        let page = address >> self.page_shift;
        let thread = self.thread(sample.pid, sample.tid);
        let stack = (has_chain || unwound.is_some())
            .then(|| self.intern(sample.pid, sample.callchain, unwound));
        if let Some(stack) = stack.filter(|_| unwound.is_some()) {
            self.unwound.insert(stack);
            self.unwound_faults += 1;
        }
        let seen = self.seen(sample, role, has_chain);
        if self.is_same_fault(thread, page, sample.time, seen.sources) {
            self.merge(thread, seen, stack);
            return;
        }
        self.settle(thread, true);
        let code = self.threads[thread].code.take();
        let code = payload
            .map(|(_, code)| code)
            .or(code.filter(|(of, _)| *of == page).map(|(_, code)| code));
        let judged = self.judge(Case {
            pid: sample.pid,
            address,
            role,
            code,
            period: sample.period,
        });
        let region = judged
            .region
            .map_or(RegionKind::Unknown, |region| region.kind);
        self.note_block(thread, sample, address, region);
        self.threads[thread].pending = Some(Pending {
            page,
            address,
            begun: sample.time,
            stack,
            region,
            verdict: judged.verdict,
            huge_candidate: judged.huge_candidate,
            inherited: judged.region.is_none_or(|region| region.inherited),
            may_be_huge: judged
                .region
                .is_some_and(|region| self.gets_huge_pages(region)),
            inferred: judged.inferred,
            ..seen
        });
    }

    /// The part of a pending fault that depends on its source.
    fn seen(&self, sample: &Sample<'_>, role: Role, has_chain: bool) -> Pending {
        Pending {
            pid: sample.pid,
            page: 0,
            address: 0,
            begun: sample.time,
            sources: 1_u64.checked_shl(u32::from(sample.source.0)).unwrap_or(0),
            weight: weight_of(sample),
            timed: self.roles.sees_ends && role != Role::SampledFault,
            own_cost: if has_chain {
                RECORD_COST_WITH_STACK
            } else {
                RECORD_COST
            },
            stack: None,
            region: RegionKind::Unknown,
            verdict: Verdict::sure(Cause::Unknown),
            huge_candidate: None,
            inherited: false,
            may_be_huge: false,
            inferred: false,
        }
    }

    fn is_same_fault(&self, thread: usize, page: u64, time: Nanos, source: u64) -> bool {
        self.threads[thread].pending.is_some_and(|pending| {
            pending.page == page
                && pending.sources & source == 0
                && time - pending.begun <= SAME_FAULT
        })
    }

    fn merge(&mut self, thread: usize, seen: Pending, stack: Option<StackId>) {
        let Some(pending) = &mut self.threads[thread].pending else {
            return;
        };
        pending.sources |= seen.sources;
        pending.weight = pending.weight.max(seen.weight);
        pending.timed |= seen.timed;
        pending.own_cost += seen.own_cost;
        pending.stack = pending.stack.or(stack);
    }

    /// The handling of a fault ended.
    pub(super) fn fault_end(&mut self, sample: &Sample<'_>, major: bool) {
        let page = sample.address >> self.page_shift;
        let thread = self.thread(sample.pid, sample.tid);
        self.tally.major_ends += u64::from(major);
        if major && !self.roles.samples_majors {
            self.note_read(sample);
        }
        let matching = self.threads[thread]
            .pending
            .take_if(|pending| pending.page == page);
        let Some(mut pending) = matching else {
            // In sampled recordings major faults are also recorded outside windows.
            let expected = self.roles.coverage == Coverage::Sampled;
            self.losses
                .add(LossKind::UnpairedFault, u64::from(!expected));
            return;
        };
        if major {
            let cause = when_major(pending.verdict.cause, pending.region, pending.inherited);
            if cause != pending.verdict.cause {
                pending.verdict = Verdict::sure(cause);
            }
            self.tally.major.add(pending.weight);
        }
        self.note_latency(&pending, sample.time);
        self.account(thread, &pending);
    }

    /// A major fault, or as many as it stands for. If some are sampled all the time, those of
    /// latency windows would count twice.
    pub(super) fn note_read(&mut self, sample: &Sample<'_>) {
        let process = self.process(sample.pid);
        if let Some(mapping) = self.processes[process].space.find(sample.address) {
            self.reads
                .note(sample.tid, sample.address, sample.period.max(1), mapping);
        }
    }

    fn note_latency(&mut self, pending: &Pending, end: Nanos) {
        if !pending.timed {
            return;
        }
        let latency = (end - pending.begun).0.saturating_sub(pending.own_cost);
        if let Some(candidate) = pending
            .huge_candidate
            .and_then(|index| self.huge.get_mut(index as usize))
        {
            candidate.latency = Some(latency);
            return;
        }
        let cause = likely(pending.verdict);
        self.tally.latency.entry(cause).or_default().record(latency);
    }

    /// Closes a pending fault whose end was not seen. `unpaired` means that it should have been.
    pub(super) fn settle(&mut self, thread: usize, unpaired: bool) {
        let Some(pending) = self.threads[thread].pending.take() else {
            return;
        };
        if unpaired && pending.timed {
            self.losses.add(LossKind::UnpairedFault, 1);
        }
        self.account(thread, &pending);
    }

    /// Adds a fault to the sums.
    fn account(&mut self, thread: usize, pending: &Pending) {
        let Verdict { cause, instead } = pending.verdict;
        let share = instead.map_or(0.0, |(_, share)| share);
        let cell = Cell {
            stack: pending.stack,
            cause,
            region: pending.region,
        };
        if share < 1.0 {
            self.tally.add(cell, pending.weight * (1.0 - share));
        }
        if let Some((other, share)) = instead
            && share > 0.0
        {
            self.tally.add(
                Cell {
                    cause: other,
                    ..cell
                },
                pending.weight * share,
            );
        }
        if let Some(index) = pending.huge_candidate {
            self.huge[index as usize].cell = Some(cell);
        }
        // In a rest between windows, pages may have been touched that a fork then shared.
        if let Some((Cause::CopyOnWrite | Cause::WriteProtect, share)) = instead
            && self.window_weights.has_rests()
        {
            self.tally.perhaps_shared += pending.weight * (1.0 - share);
        }
        if self.roles.coverage == Coverage::Sampled {
            let kind = likely(pending.verdict);
            let (weight, windows) = (pending.weight, &self.window_weights);
            self.tally.cause_variation.next(kind, weight, windows);
            let regions = &mut self.tally.region_variation;
            regions.next(pending.region, weight, windows);
        }
        if pending.may_be_huge {
            let cause = likely(pending.verdict);
            *self.tally.huge_eligible.entry(cause).or_default() += pending.weight;
        }
        self.tally.all.add(pending.weight);
        self.tally.samples += 1;
        self.tally.inferred += if pending.inferred {
            pending.weight
        } else {
            0.0
        };
        self.threads[thread].faults += pending.weight;
        let process = self.process(pending.pid);
        self.processes[process].faults_since += pending.weight;
        if pending.address == 0 {
            self.tally.without_address += pending.weight;
            return;
        }
        self.touches.fault(
            (pending.pid, pending.begun),
            pending.address,
            likely(pending.verdict),
            (pending.stack, pending.weight),
        );
        let churn = churn_share(pending.verdict) * pending.weight;
        let heat = Heat {
            faults: pending.weight,
            churn,
            region: pending.region,
        };
        self.heat
            .add(pending.pid, pending.address, pending.begun, heat);
    }
}

/// Faults that a record stands for in the totals. Sources that record each fault alternate with
/// sources that sample, so each counts for its own time.
fn weight_of(sample: &Sample<'_>) -> f64 {
    sample.period.max(1) as f64
}

/// The more likely of two causes.
fn likely(verdict: Verdict) -> Cause {
    match verdict.instead {
        Some((other, share)) if share > 0.5 => other,
        _ => verdict.cause,
    }
}

fn churn_share(verdict: Verdict) -> f64 {
    let instead = match verdict.instead {
        Some((other, share)) if other.is_churn() => share,
        _ => 0.0,
    };
    if verdict.cause.is_churn() {
        1.0
    } else {
        instead
    }
}
