//! Switching: units take turns, sample more or less densely, rest in storms, and pause when they
//! cost too much.

use super::super::Mode;
use super::super::governor::Verdict;
use super::super::ladder::Ladder;
use super::super::notes::Note;
use super::super::role::Role;
use super::{AFTER_STORM, DENSE_SAMPLES, Drain, NO_REST, TELLING, TOO_LATE};
use crate::sys::machine::thread_cpu_time;
use crate::sys::perf_event::monotonic_now;
use pagewise_model::units::Nanos;

impl Drain {
    /// Switches to the next turn when it is due.
    pub(super) fn hand_over(&mut self) {
        let now = monotonic_now();
        let window = self.account.take(Role::Paired).cost;
        let Some(rotation) = &mut self.rotation else {
            return;
        };
        if self.mode == Mode::Sampled {
            rotation.spend(window);
        }
        let late = now - rotation.until();
        let Some(next) = rotation.due(now) else {
            return;
        };
        if late > TOO_LATE {
            self.late_at = Some(now);
        }
        let cpu = thread_cpu_time();
        let sampled = self.samples_faults();
        if let Some(ladder) = self.ladder.as_mut().filter(|_| sampled) {
            ladder.hold(now);
        }
        self.switch_to(next);
        if let Some(ladder) = &mut self.ladder {
            ladder.resume(monotonic_now());
        }
        // CPU time, not elapsed time: on a busy machine the recorder waits for a CPU, at no cost to
        // the program.
        let switched = thread_cpu_time() - cpu;
        if let (Mode::Sampled, Some(rotation)) = (self.mode, &mut self.rotation) {
            rotation.spend(switched);
        }
    }

    /// Samples more or less densely when the rate of faults calls for it.
    pub(super) fn climb(&mut self) {
        let sampled = self.samples_faults();
        let Some(ladder) = self.ladder.as_mut().filter(|_| sampled) else {
            return;
        };
        let samples = self.account.take(self.current).records;
        if ladder.observe(samples, monotonic_now()).is_some() {
            self.switch_to(Role::Sampled(0));
        }
    }

    /// Samples CPU time less often once enough has been seen of a short program.
    pub(super) fn thin_out_cpu(&mut self) {
        let Some(left) = self.dense_samples_left else {
            return;
        };
        let dense = [Role::DenseCpu, Role::DenseCpuStacks];
        let fresh: u64 = dense
            .map(|role| self.account.take(role).records)
            .iter()
            .sum();
        let ours: u64 = dense.map(|role| self.account.samples_of(role)).iter().sum();
        let left = left.saturating_sub(fresh);
        if left > 0 && ours < DENSE_SAMPLES {
            self.dense_samples_left = Some(left);
            return;
        }
        self.change_cpu(|drain| drain.dense_samples_left = None);
        for role in dense {
            self.close(role);
        }
    }

    /// Ends one unit's turn and starts another's. For sampling, the ladder determines which unit,
    /// and whether there is a rest at all.
    fn switch_to(&mut self, next: Role) {
        let next = self.in_effect(next);
        let is_open = self.opened.instances.iter().any(|i| i.role == next);
        // Copied for each of too many new threads.
        let is_copied = self.is_storm_of_births()
            && self.turns.may_watch_all(next)
            && !self.watching_all.contains(&next);
        if next == self.current && !(is_open && is_copied) {
            return;
        }
        self.end_latency_window();
        if is_open && is_copied {
            self.set(next, false);
            self.close(next);
        }
        if !is_open || is_copied {
            self.open(next);
        }
        if next == self.current {
            return self.set(next, true);
        }
        self.exchange(next);
        // During a latency window sampling is only switched off: it continues with its counts.
        let goes_on = matches!(self.current, Role::Sampled(_)) && next == Role::Paired;
        let is_past = self.current == Role::Startup;
        if is_past || self.turns.has(self.current) && !goes_on {
            self.close(self.current);
        }
        if is_past {
            self.end_fault_window();
        }
        self.current = next;
        self.note_rest();
        if next == Role::Paired {
            self.latency_since = Some(monotonic_now());
        }
    }

    fn samples_faults(&self) -> bool {
        matches!(self.current, Role::Startup | Role::Sampled(_))
    }

    fn in_effect(&self, next: Role) -> Role {
        let may_rest = self.turns.has(Role::Sampled(0));
        let now = monotonic_now();
        let long_since = |moment: Nanos| now - moment > NO_REST;
        let storm = may_rest
            && self.running_since.is_some_and(long_since)
            && self.late_at.is_none_or(long_since)
            && self.ladder.as_ref().is_some_and(Ladder::is_storm);
        match (next, &self.ladder) {
            (Role::Sampled(_), Some(ladder)) => Role::Sampled(ladder.rung()),
            (Role::Rest, Some(ladder)) if !storm => Role::Sampled(ladder.rung()),
            (Role::Rest, _) if !self.turns.has(Role::Sampled(0)) => self.current,
            _ => next,
        }
    }

    /// Switches between units that are both open, thread by thread, so that hardly a fault is
    /// missed in between.
    fn exchange(&mut self, next: Role) {
        let of = |role: Role| self.opened.instances.iter().filter(move |i| i.role == role);
        let mut on = of(next);
        for old in of(self.current) {
            // An error means that the thread is gone.
            let _ = old.events[0].disable();
            if let Some(new) = on.next() {
                let _ = new.events[0].enable();
            }
        }
        on.for_each(|new| {
            let _ = new.events[0].enable();
        });
    }

    /// Closes a unit once its records are read. Its ids stay known until its next turn: if a CPU
    /// was interrupted to switch the event off while it wrote a fault's record, it finishes that
    /// record later.
    fn close(&mut self, role: Role) {
        self.drain_rings();
        self.opened.close(role);
    }

    fn open(&mut self, role: Role) {
        self.account.forget(role);
        let all = monotonic_now() < self.storm_until;
        let turn = self.turns.open(role, self.account.threads(), all);
        self.watching_all.retain(|other| *other != role);
        if turn.sees_all {
            self.account.watch_all(role);
            self.watching_all.push(role);
        }
        for instance in &turn.instances {
            for (at, event) in instance.events.iter().enumerate() {
                if let Ok(id) = event.id() {
                    self.account.adopt(role, at, id);
                }
            }
        }
        self.opened.extend(turn.instances);
        self.account.remove_threads(&turn.gone);
        if let Some(error) = turn.refused {
            let note = Note::Refused {
                part: role.describe(),
                reason: error.to_string(),
            };
            if !self.notes.contains(&note) {
                self.notes.push(note);
            }
        }
    }

    /// Whether so many threads were born lately that copying events for each would cost too much.
    fn is_storm_of_births(&mut self) -> bool {
        let now = monotonic_now();
        let time = now - self.births_since;
        if time >= TELLING {
            self.births_since = now;
            let births = self.account.take_births();
            if self.turns.should_watch_all(births, time) {
                self.storm_until = now + AFTER_STORM;
            }
        }
        now < self.storm_until
    }

    /// Keeps the times during which faults were recorded.
    fn note_rest(&mut self) {
        let now = monotonic_now();
        if self.current != Role::Rest {
            self.faults_since.get_or_insert(now);
        } else {
            self.end_fault_window();
        }
    }

    /// Ends a window. The start of a program is a separate window, which represents nothing else.
    fn end_fault_window(&mut self) {
        if let Some(since) = self.faults_since.take() {
            self.fault_windows.push((since, monotonic_now()));
        }
    }

    pub(super) fn end_latency_window(&mut self) {
        if let Some(since) = self.latency_since.take() {
            self.latency_windows.push((since, monotonic_now()));
        }
    }

    /// Pauses units that cost too much and resumes those that may continue.
    pub(super) fn govern(&mut self) {
        let mut governors = std::mem::take(&mut self.governors);
        for (role, governor) in &mut governors {
            governor.spend(self.account.take(*role).cost);
            if self.has_timers && matches!(role, Role::Cpu | Role::CpuStacks) {
                let threads = self.account.threads();
                let cost = self.switches.cost(&self.proc, threads, monotonic_now());
                // Timers that are off cost nothing.
                if governor.resumes_at().is_none() {
                    governor.spend(cost);
                }
            }
            match governor.verdict(monotonic_now()) {
                Some(Verdict::Pause) => {
                    governor.paused(monotonic_now());
                    self.set(*role, false);
                    self.set_substitute(*role, true);
                }
                Some(Verdict::Resume) => {
                    self.set_substitute(*role, false);
                    self.set(*role, true);
                    governor.resumed(monotonic_now());
                }
                None => {}
            }
        }
        self.governors = governors;
    }

    pub(super) fn set(&self, role: Role, on: bool) {
        for instance in &self.opened.instances {
            if instance.role == role {
                let leader = &instance.events[0];
                // An error means that the thread is gone.
                let _ = if on {
                    leader.enable()
                } else {
                    leader.disable()
                };
            }
        }
    }
}
