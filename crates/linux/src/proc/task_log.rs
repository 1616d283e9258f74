//! What repeated looks at a process tree record of each thread.

use pagewise_model::tasks::{OtherTasks, SeenTask, Sleep, largest};
use pagewise_model::units::Nanos;
use rustc_hash::FxHashMap;

/// Most threads remembered at once, at 200 bytes each.
const MOST: usize = 100_000;

/// Times of a thread since its birth (Documentation/scheduler/sched-stats.rst).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scheduled {
    /// On a CPU.
    pub run: Nanos,
    /// Ready to run without a CPU.
    pub ready: Nanos,
    /// How often it came onto a CPU.
    pub turns: u64,
}

/// A moment at which threads are examined.
#[derive(Clone, Copy, Debug)]
pub(super) struct Look {
    /// On the events' clock.
    pub now: Nanos,
    /// Since the previous look.
    pub elapsed: Nanos,
    /// Whether this is the first look.
    pub is_first: bool,
}

/// A thread at that moment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Looked<'a> {
    pub pid: i32,
    pub tid: i32,
    pub parent: i32,
    pub name: &'a str,
    /// Whether it sleeps, and where.
    pub sleeps: Option<Option<u32>>,
    pub scheduled: Scheduled,
}

/// Time by thread.
#[derive(Debug, Default)]
pub(super) struct TaskLog {
    tasks: FxHashMap<(i32, i32), Noted>,
    /// Threads whose numbers have been reused.
    gone: Vec<SeenTask>,
    /// Whether the counts of threads at the first look belong to them.
    from_birth: bool,
}

#[derive(Debug)]
struct Noted {
    before: Scheduled,
    /// Since birth, as last read.
    last: Scheduled,
    task: SeenTask,
}

/// Final content of a log.
pub(super) struct Logged {
    pub tasks: Vec<SeenTask>,
    pub others: Option<OtherTasks>,
    /// Time of all threads without a CPU; `None` if none was counted.
    pub ready: Option<Nanos>,
}

impl TaskLog {
    pub fn new(from_birth: bool) -> Self {
        Self {
            from_birth,
            ..Self::default()
        }
    }

    /// Records a thread's current state.
    pub fn note(&mut self, look: Look, seen: Looked<'_>) {
        let key = (seen.pid, seen.tid);
        let known = self.tasks.get(&key);
        if known.is_some_and(|known| known.last.run > seen.scheduled.run) {
            // The number was reused.
            let old = self.tasks.remove(&key);
            self.gone.extend(old.map(Noted::finish));
        }
        if self.tasks.len() + self.gone.len() >= MOST && !self.tasks.contains_key(&key) {
            return;
        }
        let born = || Noted::born(look, seen, self.from_birth);
        self.tasks.entry(key).or_insert_with(born).add(look, seen);
    }

    /// Records the figures of a thread at its end; nothing if it was never seen alive, or its end
    /// is already recorded.
    pub fn end(&mut self, pid: i32, now: Nanos, read: impl FnOnce() -> Option<Scheduled>) {
        let Some(known) = self.tasks.get_mut(&(pid, pid)) else {
            return;
        };
        if known.task.is_over {
            return;
        }
        if let Some(last) = read().filter(|last| last.run >= known.last.run) {
            known.last = last;
            known.task.last = now;
            known.task.is_over = true;
        }
    }

    pub fn finish(self) -> Logged {
        let living = self.tasks.into_values().map(Noted::finish);
        let all: Vec<SeenTask> = self.gone.into_iter().chain(living).collect();
        let ready = (!all.is_empty()).then(|| all.iter().map(|task| task.ready).sum());
        let (tasks, others) = largest(all, |task| task.run);
        Logged {
            tasks,
            others,
            ready,
        }
    }
}

impl Noted {
    /// A thread first seen after the first look was born since then.
    fn born(look: Look, seen: Looked<'_>, from_birth: bool) -> Self {
        let before = match look.is_first && !from_birth {
            true => seen.scheduled,
            false => Scheduled::default(),
        };
        let age = match look.is_first {
            true => Nanos(0),
            false => look.elapsed.min(seen.scheduled.run + seen.scheduled.ready),
        };
        Self {
            before,
            last: seen.scheduled,
            task: SeenTask {
                pid: seen.pid,
                tid: seen.tid,
                began: look.now - age,
                ..SeenTask::default()
            },
        }
    }

    fn add(&mut self, look: Look, seen: Looked<'_>) {
        self.last = seen.scheduled;
        let task = &mut self.task;
        task.last = look.now;
        task.parent = seen.parent;
        if task.name != seen.name {
            seen.name.clone_into(&mut task.name);
        }
        let Some(place) = seen.sleeps else {
            return;
        };
        let at = match task.sleeps.iter().position(|sleep| sleep.place == place) {
            Some(at) => at,
            None => {
                task.sleeps.push(Sleep {
                    place,
                    ..Sleep::default()
                });
                task.sleeps.len() - 1
            }
        };
        task.sleeps[at].looks += 1;
        task.sleeps[at].time += look.elapsed.min(look.now - task.began);
    }

    fn finish(self) -> SeenTask {
        SeenTask {
            run: self.last.run - self.before.run,
            ready: self.last.ready - self.before.ready,
            ..self.task
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn look(at_ms: u64, is_first: bool) -> Look {
        Look {
            now: Nanos(at_ms * MS),
            elapsed: Nanos(20 * MS),
            is_first,
        }
    }

    fn thread(tid: i32, run_ms: u64, sleeps: Option<Option<u32>>) -> Looked<'static> {
        Looked {
            pid: 7,
            tid,
            parent: 1,
            name: "worker",
            sleeps,
            scheduled: Scheduled {
                run: Nanos(run_ms * MS),
                ready: Nanos(MS),
                ..Scheduled::default()
            },
        }
    }

    fn finished(log: TaskLog) -> Vec<SeenTask> {
        log.finish().tasks
    }

    #[test]
    fn time_before_the_first_look_belongs_to_the_started() {
        for (from_birth, run) in [(false, 10), (true, 510)] {
            let mut log = TaskLog::new(from_birth);
            log.note(look(100, true), thread(7, 500, None));
            log.note(look(120, false), thread(7, 510, None));
            assert_eq!(finished(log)[0].run, Nanos(run * MS));
        }
    }

    #[test]
    fn a_thread_that_is_met_later_began_when_it_began_to_run() {
        let mut log = TaskLog::new(false);
        log.note(look(200, false), thread(8, 4, None));
        let task = &finished(log)[0];
        assert_eq!((task.began, task.run), (Nanos(195 * MS), Nanos(4 * MS)));
    }

    #[test]
    fn sleep_is_added_up_by_place() {
        let mut log = TaskLog::new(true);
        log.note(look(100, true), thread(7, 1, None));
        for at in [120, 140, 160] {
            log.note(look(at, false), thread(7, 1, Some(Some(3))));
        }
        log.note(look(180, false), thread(7, 1, Some(None)));
        let sleeps = &finished(log)[0].sleeps;
        assert_eq!(sleeps.len(), 2);
        assert_eq!((sleeps[0].looks, sleeps[0].time), (3, Nanos(60 * MS)));
        assert_eq!((sleeps[1].place, sleeps[1].looks), (None, 1));
    }

    #[test]
    fn a_number_that_is_used_again_is_another_thread() {
        let mut log = TaskLog::new(true);
        log.note(look(100, true), thread(8, 50, None));
        log.note(look(120, false), thread(8, 2, None));
        let runs: Vec<u64> = finished(log).iter().map(|task| task.run.0 / MS).collect();
        assert_eq!(runs, [50, 2]);
    }

    #[test]
    fn an_end_is_read_once_and_completes_the_figures() {
        let mut log = TaskLog::new(true);
        log.note(look(100, true), thread(7, 50, None));
        let last = Scheduled {
            run: Nanos(58 * MS),
            ready: Nanos(2 * MS),
            ..Scheduled::default()
        };
        log.end(7, Nanos(110 * MS), || Some(last));
        log.end(7, Nanos(130 * MS), || panic!("read before"));
        log.end(9, Nanos(130 * MS), || panic!("never seen"));
        let task = &finished(log)[0];
        assert!(task.is_over);
        assert_eq!((task.run, task.last), (Nanos(58 * MS), Nanos(110 * MS)));
    }
}
