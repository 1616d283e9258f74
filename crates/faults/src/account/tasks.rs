//! Time by process and thread: how each spent its lifetime.
//!
//! A thread's lifetime is its time on a CPU, ready to run, and waiting. The first two are counted:
//! by the kernel when the thread ended (delay accounting), otherwise up to the last look at it. The
//! remaining time up to then is waiting, divided into kinds as the looks saw them. Time after the
//! last look, time that no look covered, and the thread's exit are unexplained.

use super::lives::{Life, Lives};
use super::table::KernelTable;
use crate::attribute::wilson;
use pagewise_model::account::{ProcessTime, TaskSum, Tasks, ThreadTime, TimePart};
use pagewise_model::delays::Delays;
use pagewise_model::looks::Looks;
use pagewise_model::recording::Sidecar;
use pagewise_model::tasks::{CountedTask, OtherTasks, SeenTask, Sleep};
use pagewise_model::units::{Estimate, Nanos};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// Processes, and threads of one process, that are listed individually.
const MOST: usize = 16;
/// Looks at a sleeping thread needed to divide its waits into kinds.
const FEWEST_LOOKS: u64 = 3;
/// Kinds of waiting that the kernel counts as waiting for blocks (`in_iowait`,
/// kernel/sched/core.c).
pub(super) const FOR_BLOCKS: [&str; 3] = ["disk", "pages", "writeback"];
/// With this many looks such a wait would have been seen.
const ENOUGH_LOOKS: u64 = 10;

/// The time of a run by process and thread; `None` if no thread was counted.
pub(crate) fn tasks(lives: &Lives, sidecar: &Sidecar, table: &KernelTable) -> Option<Tasks> {
    if sidecar.collection.whole_machine {
        return None;
    }
    let no_looks = Looks::default();
    let looks = sidecar.looks.as_ref().unwrap_or(&no_looks);
    let known = known(lives, sidecar, looks);
    if known.is_empty() {
        return None;
    }
    let names = Names { looks, table };
    let mut run: Nanos = known.iter().map(|one| one.run).sum();
    let rest = sidecar.other_tasks.or(looks.other_tasks);
    run += rest.map_or(Nanos(0), |rest| rest.run);
    let unseen = unseen(lives, &known, rest.map_or(0, |rest| rest.tasks));
    let (processes, others) = processes(known, sidecar, &names);
    Some(Tasks {
        processes,
        others: TaskSum::total(others.iter().chain(&rest.map(of_rest))),
        unseen,
        elsewhere: sidecar.cost.cpu() - run,
    })
}

/// What is known of a thread. All times are on the events' clock.
struct Known<'a> {
    pid: i32,
    tid: i32,
    parent: i32,
    name: &'a str,
    began: Nanos,
    /// End of the counted time.
    until: Nanos,
    ended: Nanos,
    run: Nanos,
    ready: Option<Nanos>,
    delays: Option<Delays>,
    sleeps: &'a [Sleep],
}

/// Each thread once, from the most precise source.
fn known<'a>(lives: &Lives, sidecar: &'a Sidecar, looks: &'a Looks) -> Vec<Known<'a>> {
    let start = sidecar.started_clock;
    let seen = looks.tasks.iter().map(|task| ((task.pid, task.tid), task));
    let mut seen: BTreeMap<(i32, i32), &SeenTask> = seen.collect();
    let counted = sidecar.tasks.iter().map(|task| {
        let key = (task.pid, task.tid);
        Known::counted(task, seen.remove(&key), lives.get(key.0, key.1), start)
    });
    let mut known: Vec<Known<'a>> = counted.collect();
    // If counted threads were added up, a thread that was seen may be among them.
    if sidecar.other_tasks.is_none() {
        let others = seen.into_values();
        known.extend(others.map(|task| Known::seen(task, lives.get(task.pid, task.tid))));
    }
    known
}

impl<'a> Known<'a> {
    fn counted(
        task: &'a CountedTask,
        seen: Option<&'a SeenTask>,
        life: Life,
        start: Nanos,
    ) -> Self {
        let ended = life.ended.unwrap_or(task.ended);
        let over = seen.filter(|seen| seen.is_over);
        let counted = match life.began {
            Some(began) => began + task.lifetime,
            None => task.ended,
        };
        Self {
            pid: task.pid,
            tid: task.tid,
            parent: task.parent,
            name: &task.name,
            began: life.began.unwrap_or(task.ended - task.lifetime).max(start),
            until: over.map_or(counted.min(ended), |_| ended),
            ended,
            run: over.map_or(task.run, |seen| seen.run.max(task.run)),
            ready: task.delays.ready.map(|ready| ready.time),
            delays: Some(task.delays),
            sleeps: seen.map_or(&[], |seen| &seen.sleeps),
        }
    }

    fn seen(task: &'a SeenTask, life: Life) -> Self {
        let ended = life.ended.unwrap_or(task.last);
        Self {
            pid: task.pid,
            tid: task.tid,
            parent: task.parent,
            name: &task.name,
            began: life.began.unwrap_or(task.began),
            until: if task.is_over {
                ended
            } else {
                task.last.min(ended)
            },
            ended,
            run: task.run,
            ready: Some(task.ready),
            delays: None,
            sleeps: &task.sleeps,
        }
    }

    fn time(&self, names: &Names<'_>) -> TaskSum {
        let lifetime = self.ended - self.began;
        // The scheduler's clock and that of events differ by some µs.
        let run = self.run.min(lifetime);
        let ready = self.ready.unwrap_or_default().min(lifetime - run);
        let counted = (self.until - self.began).min(lifetime);
        let waited = counted - run - ready;
        let missing = lifetime - run - ready - waited;
        let mut parts = vec![
            TimePart::plain("cpu", "on a CPU", at_least(run, missing)),
            TimePart::plain(
                "ready",
                "ready to run, waiting for a CPU",
                at_least(ready, missing),
            ),
        ];
        let (waits, unseen) = self.waits(waited, names);
        parts.extend(waits);
        parts.push(unexplained(nanos(missing) + unseen));
        TaskSum {
            threads: 1,
            lifetime,
            parts: largest_first(parts),
        }
    }

    /// What it waited for, and the waiting time without a known reason.
    fn waits(&self, waited: Nanos, names: &Names<'_>) -> (Vec<TimePart>, f64) {
        let mut kinds = names.kinds(self.sleeps);
        let blocks = self.blocks(waited, &kinds);
        let others = nanos(waited - blocks);
        let mut parts = names.for_blocks(&kinds, blocks);
        if !parts.is_empty() {
            kinds.retain(|kind| !FOR_BLOCKS.contains(&&*kind.id));
        }
        let looks: u64 = kinds.iter().map(|kind| kind.looks).sum();
        let all: f64 = kinds.iter().map(|kind| nanos(kind.time)).sum();
        if looks < FEWEST_LOOKS || all <= 0.0 {
            return (parts, others);
        }
        parts.extend(kinds.into_iter().map(|kind| {
            let share = wilson(nanos(kind.time) / all, precise(looks));
            kind.part(share.scaled(others))
        }));
        (parts, 0.0)
    }

    /// The waiting time for disk blocks according to the kernel's count; zero if enough looks
    /// contradict it, since other waits are counted in the same way (io_uring).
    fn blocks(&self, waited: Nanos, kinds: &[Kind]) -> Nanos {
        let counted = self.delays.and_then(|delays| delays.disk);
        let counted = counted.map_or(Nanos(0), |disk| disk.time).min(waited);
        let looks: u64 = kinds.iter().map(|kind| kind.looks).sum();
        let was_seen = kinds.iter().any(|kind| FOR_BLOCKS.contains(&&*kind.id));
        let is_small = counted.0 * 5 < waited.0;
        match looks < ENOUGH_LOOKS || was_seen || is_small {
            true => counted,
            false => Nanos(0),
        }
    }
}

/// Looks at a thread that was sleeping for one kind of thing.
struct Kind {
    id: String,
    label: String,
    place: Option<String>,
    looks: u64,
    time: Nanos,
}

impl Kind {
    fn part(self, time: Estimate) -> TimePart {
        TimePart {
            places: self.place.into_iter().collect(),
            ..TimePart::plain(&self.id, &self.label, time)
        }
    }
}

/// Maps places in the kernel to kinds of waits.
struct Names<'a> {
    looks: &'a Looks,
    table: &'a KernelTable,
}

impl Names<'_> {
    /// Sleeps by kind, each with the place where it spent most time.
    fn kinds(&self, sleeps: &[Sleep]) -> Vec<Kind> {
        let mut sleeps = sleeps.to_vec();
        sleeps.sort_by_key(|sleep| Reverse(sleep.time));
        let mut kinds: Vec<Kind> = Vec::new();
        for sleep in sleeps {
            let place = sleep.place.and_then(|place| usize::try_from(place).ok());
            let place = place.and_then(|place| self.looks.places.get(place));
            let wait = place.and_then(|place| self.table.wait(place));
            let (id, label) = wait.map_or(("other", "waiting for something else"), |wait| {
                (&*wait.id, &*wait.label)
            });
            match kinds.iter_mut().find(|kind| kind.id == id) {
                Some(kind) => {
                    kind.looks += sleep.looks;
                    kind.time += sleep.time;
                }
                None => kinds.push(Kind {
                    id: id.to_owned(),
                    label: label.to_owned(),
                    place: place.cloned(),
                    looks: sleep.looks,
                    time: sleep.time,
                }),
            }
        }
        kinds
    }

    /// Counted time, divided among the kinds in proportion to what the looks saw.
    fn for_blocks(&self, kinds: &[Kind], counted: Nanos) -> Vec<TimePart> {
        if counted.0 == 0 {
            return Vec::new();
        }
        let seen: Vec<&Kind> = kinds
            .iter()
            .filter(|kind| FOR_BLOCKS.contains(&&*kind.id))
            .collect();
        let all: f64 = seen.iter().map(|kind| nanos(kind.time)).sum();
        let looks: u64 = seen.iter().map(|kind| kind.looks).sum();
        if all <= 0.0 {
            let time = Estimate::exact(nanos(counted));
            return vec![TimePart::plain("disk", "waiting for a disk", time)];
        }
        let part = |kind: &&Kind| {
            let share = match seen.len() {
                1 => Estimate::exact(1.0),
                _ => wilson(nanos(kind.time) / all, precise(looks)),
            };
            TimePart {
                places: kind.place.clone().into_iter().collect(),
                ..TimePart::plain(&kind.id, &kind.label, share.scaled(nanos(counted)))
            }
        };
        seen.iter().map(part).collect()
    }
}

/// The processes that used most CPU time, including the program's first process, and the sum of the
/// others.
fn processes(
    known: Vec<Known<'_>>,
    sidecar: &Sidecar,
    names: &Names<'_>,
) -> (Vec<ProcessTime>, Option<TaskSum>) {
    let mut by_process: BTreeMap<i32, Vec<Known<'_>>> = BTreeMap::new();
    for one in known {
        by_process.entry(one.pid).or_default().push(one);
    }
    let start = sidecar.started_clock;
    let all = by_process.into_values();
    let mut all: Vec<ProcessTime> = all.map(|one| process(one, start, names)).collect();
    let rank = |one: &ProcessTime| (used(&one.all), one.all.lifetime);
    all.sort_by_key(|one| (one.pid != sidecar.pid, Reverse(rank(one))));
    let others = all.split_off(MOST.min(all.len()));
    all.sort_by_key(|one| Reverse(rank(one)));
    let others = TaskSum::total(others.iter().map(|one| &one.all));
    (all, others)
}

fn process(mut threads: Vec<Known<'_>>, start: Nanos, names: &Names<'_>) -> ProcessTime {
    threads.sort_by_key(|one| (Reverse(one.run), one.tid));
    let first = threads.iter().find(|one| one.tid == one.pid);
    let named = first.or(threads.first());
    let (pid, parent, name) = named.map_or((0, 0, ""), |one| (one.pid, one.parent, one.name));
    let began = threads
        .iter()
        .map(|one| one.began)
        .min()
        .unwrap_or_default();
    let ended = threads
        .iter()
        .map(|one| one.ended)
        .max()
        .unwrap_or_default();
    let times = threads.iter().map(|one| ThreadTime {
        tid: one.tid,
        name: one.name.to_owned(),
        began: one.began - start,
        all: one.time(names),
        delays: one.delays,
    });
    let mut times: Vec<ThreadTime> = times.collect();
    let all = TaskSum::total(times.iter().map(|one| &one.all)).unwrap_or_default();
    let others = times.split_off(MOST.min(times.len()));
    ProcessTime {
        pid,
        parent,
        name: name.to_owned(),
        began: began - start,
        lifetime: ended - began,
        all,
        threads: times,
        others: TaskSum::total(others.iter().map(|one| &one.all)),
    }
}

/// CPU time in whole nanoseconds, to sort by.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a sum of positive times"
)]
fn used(sum: &TaskSum) -> u64 {
    sum.part("cpu") as u64
}

/// Threads that ended without being counted; `None` if all were counted.
fn unseen(lives: &Lives, known: &[Known<'_>], added_up: u64) -> Option<TaskSum> {
    let known: BTreeSet<(i32, i32)> = known.iter().map(|one| (one.pid, one.tid)).collect();
    let missed = lives.ended().filter(|(key, _)| !known.contains(key));
    let (mut threads, mut lifetime) = (0_u64, Nanos(0));
    for (_, lived) in missed {
        threads += 1;
        lifetime += lived.unwrap_or_default();
    }
    // Those that were added up are among them.
    if threads <= added_up {
        return None;
    }
    let share = precise(threads - added_up) / precise(threads);
    let lifetime = Nanos::from_secs_f64(lifetime.as_secs_f64() * share);
    Some(TaskSum {
        threads: threads - added_up,
        lifetime,
        parts: largest_first(vec![unexplained(nanos(lifetime))]),
    })
}

fn of_rest(rest: OtherTasks) -> TaskSum {
    let run = rest.run.min(rest.lifetime);
    let ready = rest.ready.unwrap_or_default().min(rest.lifetime - run);
    let left = nanos(rest.lifetime - run - ready);
    TaskSum {
        threads: rest.tasks,
        lifetime: rest.lifetime,
        parts: largest_first(vec![
            TimePart::plain("cpu", "on a CPU", Estimate::exact(nanos(run))),
            TimePart::plain(
                "ready",
                "ready to run, waiting for a CPU",
                Estimate::exact(nanos(ready)),
            ),
            unexplained(left),
        ]),
    }
}

/// The parts that took time, largest first.
fn largest_first(mut parts: Vec<TimePart>) -> Vec<TimePart> {
    parts.retain(|part| part.time.value > 0.0);
    parts.sort_by(|a, b| b.time.value.total_cmp(&a.time.value));
    parts
}

/// A count that misses what happened in `missing`.
fn at_least(counted: Nanos, missing: Nanos) -> Estimate {
    Estimate {
        high: nanos(counted + missing),
        ..Estimate::exact(nanos(counted))
    }
}

fn unexplained(time: f64) -> TimePart {
    TimePart::plain(
        "unexplained",
        "unexplained",
        Estimate {
            low: 0.0,
            ..Estimate::exact(time)
        },
    )
}

fn nanos(time: Nanos) -> f64 {
    precise(time.0)
}

fn precise(number: u64) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests;
