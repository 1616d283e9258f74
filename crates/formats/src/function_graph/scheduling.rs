//! What the scheduler's frames show about a task that left its CPU.
//!
//! A task that comes back first runs `finish_task_switch()` (`context_switch()` in
//! `kernel/sched/core.c`, 2.6 to 7.2): the time between the last thing it did and that call is time
//! off the CPU, whether or not another task is seen to run meanwhile. Where the tracer leaves that
//! function out, the gap after the functions that switch away takes its place.
//!
//! Whether the task slept or was preempted follows from what it did before: only a task that sleeps
//! is taken off the run queue.

use super::names::Names;
use super::tree::Wait;

/// The role of a function in a task switch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Part {
    #[default]
    None,
    /// The first function that a task runs when it is back.
    Back,
    /// Called only when another task is next.
    Out,
    /// Takes a task off the run queue.
    Dequeue,
    /// Chooses the next task.
    Pick,
    /// Gives up the CPU until something has happened.
    Sleep,
    /// Waits for a lock, a page, a device, and may sleep for it.
    Wait,
    /// Lets others run, though the task could go on.
    Yield,
}

/// The roles of all names of a trace, by id.
#[derive(Default)]
pub(super) struct Parts(Vec<Part>);

impl Parts {
    #[inline]
    pub fn part(&mut self, name: u32, names: &Names) -> Part {
        match self.0.get(name as usize) {
            Some(&part) => part,
            None => {
                self.learn(names);
                self.known(name)
            }
        }
    }

    /// Adds the names that are new since the last time.
    #[cold]
    pub fn learn(&mut self, names: &Names) {
        let new = names.iter().skip(self.0.len());
        self.0.extend(new.map(|(id, _)| part_of(names.base(id))));
    }

    /// The role of a name already added.
    pub fn known(&self, name: u32) -> Part {
        self.0.get(name as usize).copied().unwrap_or_default()
    }
}

/// For x86 and arm64; builds differ in which of these are functions at all.
const OUT: &[&str] = &[
    "__perf_event_task_sched_out",
    "__switch_mm",
    "__traceiter_sched_switch",
    "check_and_switch_context",
    "enter_lazy_tlb",
    "fpsimd_thread_switch",
    "psi_task_switch",
    "save_fpregs_to_fpstate",
    "switch_mm",
    "switch_mm_irqs_off",
];

const DEQUEUE: &[&str] = &[
    "block_task",
    "deactivate_task",
    "dequeue_task",
    "dequeue_task_dl",
    "dequeue_task_fair",
    "dequeue_task_rt",
    "dequeue_task_scx",
    "try_to_block_task",
];

const PICKS: &[&str] = &[
    "__pick_next_task",
    "pick_next_task",
    "pick_task",
    "put_prev_task",
];

const SLEEPS: &[&str] = &["do_nanosleep", "io_schedule", "schedule"];

const WAITS: &[&str] = &[
    "__down",
    "__folio_lock",
    "__lock_page",
    "__mutex_lock",
    "__percpu_down_read",
    "__rt_mutex",
    "__wait_",
    "bit_wait",
    "down_",
    "folio_wait_",
    "handle_userfault",
    "mutex_lock",
    "out_of_line_wait",
    "percpu_rwsem_wait",
    "rt_mutex_",
    "rwsem_down_",
    "wait_",
];

const YIELDS: &[&str] = &[
    "__cond_resched",
    "_cond_resched",
    "dynamic_cond_resched",
    "dynamic_preempt_schedule",
    "irqentry_exit_cond_resched",
    "preempt_schedule",
    "raw_irqentry_exit_cond_resched",
    "yield",
];

fn part_of(base: &str) -> Part {
    let begins = |names: &[&str]| names.iter().any(|name| base.starts_with(name));
    match base {
        "finish_task_switch" => Part::Back,
        "schedule_tail" | "schedule_work" | "schedule_delayed_work" => Part::None,
        _ if OUT.contains(&base) => Part::Out,
        _ if DEQUEUE.contains(&base) => Part::Dequeue,
        _ if begins(YIELDS) => Part::Yield,
        _ if begins(SLEEPS) => Part::Sleep,
        _ if begins(PICKS) => Part::Pick,
        _ if begins(WAITS) => Part::Wait,
        _ => Part::None,
    }
}

/// What a call's own frames have shown so far about a switch inside it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Leaving {
    /// The task was taken off the run queue.
    dequeued: bool,
    /// The scheduler's own calls are in the trace, so that picking the next task would be, too.
    picked: bool,
    /// The time away is already known from an event or from another task on the CPU.
    accounted: bool,
    /// It was switched away and has not been seen to come back: the longest time without a call
    /// since.
    gap: Option<Gap>,
}

/// A time in which a task made no calls.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Gap {
    pub from: u64,
    pub ns: u64,
}

impl Gap {
    pub fn between(since: Option<u64>, until: Option<u64>) -> Self {
        let (Some(from), Some(until)) = (since, until) else {
            return Self::default();
        };
        let ns = until.saturating_sub(from);
        Self { from, ns }
    }
}

impl Leaving {
    /// Whether no switch is under way, so that the next call need not be examined.
    #[inline]
    pub fn is_idle(&self) -> bool {
        self.gap.is_none() && !self.accounted
    }

    /// Takes the next call, which comes after a gap. Returns how long the task was away, if it is
    /// back and that was not known yet.
    pub fn call(&mut self, part: Part, gap: Gap) -> Option<Gap> {
        if part == Part::Back {
            let message = std::mem::take(&mut self.accounted);
            self.gap = None;
            return (!message).then_some(gap);
        }
        self.accounted = false;
        self.widen(gap);
        match part {
            Part::Out => self.gap = self.gap.or(Some(Gap::default())),
            Part::Dequeue => self.dequeued = true,
            Part::Pick => self.picked = true,
            _ => {}
        }
        None
    }

    /// Takes the end of the call, after a gap. Returns how long the task was away, if it was
    /// switched away and the function in which it comes back is not in the trace.
    pub fn close(&mut self, gap: Gap) -> Option<Gap> {
        self.widen(gap);
        self.gap.take()
    }

    /// Records that the time away is known.
    pub fn account(&mut self) {
        self.accounted = true;
        self.gap = None;
    }

    fn widen(&mut self, gap: Gap) {
        if let Some(longest) = &mut self.gap
            && longest.ns < gap.ns
        {
            *longest = gap;
        }
    }

    /// Why the task left, also judged by the calls around it, innermost first; clears what was
    /// recorded.
    pub fn reason(&mut self, around: impl Iterator<Item = Part> + Clone) -> Wait {
        let (dequeued, picked) = (self.dequeued, self.picked);
        (self.dequeued, self.picked) = (false, false);
        let mut telling = around.clone();
        let message = telling.find(|part| matches!(part, Part::Sleep | Part::Yield));
        match message {
            _ if dequeued => Wait::Blocked,
            Some(Part::Yield) => Wait::Runnable,
            Some(_) => Wait::Blocked,
            None if picked => Wait::Runnable,
            None if around.into_iter().any(|part| part == Part::Wait) => Wait::Blocked,
            None => Wait::Estimated,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_told_by_what_they_do_to_a_task() {
        for (name, part) in [
            ("finish_task_switch", Part::Back),
            ("switch_mm_irqs_off", Part::Out),
            ("dequeue_task_fair", Part::Dequeue),
            ("io_schedule", Part::Sleep),
            ("schedule", Part::Sleep),
            ("rwsem_down_read_slowpath", Part::Wait),
            ("pick_next_task_fair", Part::Pick),
            ("__cond_resched", Part::Yield),
            ("preempt_schedule_common", Part::Yield),
            ("schedule_tail", Part::None),
            ("__schedule", Part::None),
            ("handle_mm_fault", Part::None),
        ] {
            assert_eq!(part_of(name), part, "{name}");
        }
    }

    #[test]
    fn who_leaves_the_queue_sleeps_and_who_yields_could_go_on() {
        let of = |seen: &[Part], around: &[Part]| {
            let mut leaving = Leaving::default();
            for &part in seen {
                leaving.call(part, Gap::default());
            }
            leaving.reason(around.iter().copied())
        };
        assert_eq!(
            of(&[], &[Part::None, Part::Yield, Part::Sleep]),
            Wait::Runnable
        );
        assert_eq!(of(&[], &[Part::None, Part::Sleep]), Wait::Blocked);
        assert_eq!(
            of(&[Part::Dequeue, Part::Pick], &[Part::None]),
            Wait::Blocked
        );
        assert_eq!(of(&[Part::Pick], &[Part::Wait]), Wait::Runnable);
        assert_eq!(of(&[], &[Part::None, Part::Wait]), Wait::Blocked);
        assert_eq!(of(&[], &[Part::None]), Wait::Estimated);
    }

    #[test]
    fn the_longest_gap_after_the_switch_is_the_time_away() {
        let gap = |ns| Gap { from: 0, ns };
        let mut leaving = Leaving::default();
        leaving.call(Part::Pick, gap(90));
        leaving.call(Part::Out, gap(80));
        leaving.call(Part::None, gap(3));
        leaving.call(Part::Out, gap(50));
        assert_eq!(leaving.close(gap(4)).map(|gap| gap.ns), Some(50));
        assert!(leaving.close(gap(100)).is_none());
    }
}
