//! Looks at what all threads of a process tree do, at an irregular beat, on a separate thread:
//! `/proc/PID/task/TID/{stat,wchan,schedstat}`.
//!
//! CPU clocks do not sample sleep, and recording each context switch costs more the more a program
//! switches. A look costs some 30 µs for each thread on a virtual machine (51 sleeping threads, 32
//! looks in 9 s: 48 ms of this thread's schedstat), whatever the threads do; the beat widens so
//! that looking stays near 0.5 % of a CPU. The first looks follow each other faster, for 1 %, so
//! that a program of half a second is seen well enough. Moments are drawn around the beat, so that a
//! program with a beat of its own is seen in all its phases.
//!
//! Deliberately absent: stacks of waiting threads (`record -e off-cpu`).

use super::sampler::Stop;
use super::task_log::{Look, Looked, TaskLog};
use super::{ProcRoot, ProcessReading, Scheduled, Tree};
use crate::sys::machine;
use crate::sys::perf_event::monotonic_now;
use pagewise_model::looks::{Looks, Scene, SeenProcess, ThreadState};
use pagewise_model::units::Nanos;
use rustc_hash::FxHashMap;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Mean time between two looks while they are cheap, and between the first ones.
const BEAT: Duration = Duration::from_millis(20);
const FIRST_BEAT: Duration = Duration::from_millis(5);
/// So many looks tell shares of the time to within 10 percentage points, and what was never seen to
/// 4 (binomial, 95 %).
const FIRST_LOOKS: u64 = 100;
/// Longest time between two looks.
const SLOWEST: Duration = Duration::from_secs(2);
/// Looking may take one part in this many of the time; the first looks twice as much.
const COST_SHARE: u32 = 200;
/// Most different scenes that are kept, processes in a scene, and other threads examined in one
/// process: these bound memory whatever runs.
const MOST_SCENES: usize = 1_000;
const MOST_PROCESSES: usize = 64;
const MOST_THREADS: usize = 64;
/// Functions that sleep on files of many kinds (kernel/sched/wait.c).
const FOR_MANY: [&str; 1] = ["wait_woken"];

/// A thread that looks at a process tree. Dropping it ends it too.
#[derive(Debug)]
pub struct WaitSampler {
    pid: i32,
    stop: Arc<Stop>,
    thread: Option<JoinHandle<Option<Watch>>>,
}

impl WaitSampler {
    /// Looks at `pid` and its descendants, which are already running, from now on. If they cannot
    /// be seen, nothing is recorded.
    #[must_use]
    pub fn start(pid: i32) -> Self {
        Self::begin(pid, TaskLog::new(false))
    }

    /// The same for a process that was started for this: what it has used so far counts.
    #[must_use]
    pub fn from_birth(pid: i32) -> Self {
        Self::begin(pid, TaskLog::new(true))
    }

    fn begin(pid: i32, log: TaskLog) -> Self {
        let stop = Arc::new(Stop::default());
        let watched = Arc::clone(&stop);
        let thread = std::thread::Builder::new().name("pagewise-looks".to_owned());
        let watch = move || {
            let tree = Tree::new(ProcRoot::default(), pid).ok()??;
            Some(Watch::new(ProcRoot::default(), tree, log).run(&watched))
        };
        Self {
            pid,
            stop,
            thread: thread.spawn(watch).ok(),
        }
    }

    /// What was seen; `None` if nothing was.
    #[must_use]
    pub fn stop(self) -> Option<Looks> {
        self.stop_after(None)
    }

    /// The same for a process that has ended, with the figures of its first thread at the end.
    #[must_use]
    pub fn stop_after(mut self, last: Option<(Nanos, Scheduled)>) -> Option<Looks> {
        self.stop.now();
        let mut watch = self.thread.take()?.join().ok()??;
        if let Some((when, last)) = last {
            watch.log.end(self.pid, when, || Some(last));
        }
        let looks = watch.finish();
        (looks.count > 0).then_some(looks)
    }
}

impl Drop for WaitSampler {
    fn drop(&mut self) {
        self.stop.now();
    }
}

#[derive(Debug)]
struct Watch {
    proc: ProcRoot,
    tree: Tree,
    looks: Looks,
    places: FxHashMap<String, u32>,
    scenes: FxHashMap<Vec<SeenProcess>, Nanos>,
    log: TaskLog,
    last: Instant,
    looked: Nanos,
    /// Sum of the squared times that looks stand for.
    squares: f64,
    random: u64,
}

impl Watch {
    fn new(proc: ProcRoot, tree: Tree, log: TaskLog) -> Self {
        Self {
            proc,
            tree,
            looks: Looks::default(),
            places: FxHashMap::default(),
            scenes: FxHashMap::default(),
            log,
            last: Instant::now(),
            looked: monotonic_now(),
            squares: 0.0,
            random: u64::from(std::process::id()) | 1,
        }
    }

    fn run(mut self, stop: &Stop) -> Self {
        let mut beat = FIRST_BEAT;
        loop {
            let before = machine::thread_cpu_time();
            if !self.look() {
                break;
            }
            let cost = Duration::from_nanos((machine::thread_cpu_time() - before).0);
            let (fastest, share) = match self.looks.count < FIRST_LOOKS {
                true => (FIRST_BEAT, COST_SHARE / 2),
                false => (BEAT, COST_SHARE),
            };
            // Slowly back: a single look that was cheap by chance is no reason to speed up.
            beat = (cost * share)
                .max(beat.mul_f64(0.9))
                .clamp(fastest, SLOWEST);
            if stop.wait_until(Some(Instant::now() + self.drawn(beat))) {
                break;
            }
        }
        self
    }

    /// Between a half and one and a half of `beat` (xorshift64; Marsaglia, 2003).
    fn drawn(&mut self, beat: Duration) -> Duration {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        beat.mul_f64(0.5 + (self.random >> 11) as f64 / (1_u64 << 53) as f64)
    }

    /// Records one look; returns whether any process is alive.
    fn look(&mut self) -> bool {
        let processes = self.tree.read().processes;
        let is_first = self.looks.count == 0;
        let now = monotonic_now();
        let look = Look {
            now,
            elapsed: now - self.looked,
            is_first,
        };
        self.looked = now;
        let scene = self.scene(&processes, look);
        if scene.is_empty() {
            return false;
        }
        let elapsed = Nanos::from(self.last.elapsed());
        self.last = Instant::now();
        self.looks.count += 1;
        if is_first {
            return true;
        }
        self.looks.span += elapsed;
        self.squares += elapsed.as_secs_f64() * elapsed.as_secs_f64();
        let is_full = self.scenes.len() >= MOST_SCENES;
        match self.scenes.get_mut(&scene) {
            Some(time) => *time += elapsed,
            None if is_full => self.looks.unkept += elapsed,
            None => {
                self.scenes.insert(scene, elapsed);
            }
        }
        true
    }

    fn scene(&mut self, processes: &[ProcessReading], look: Look) -> Vec<SeenProcess> {
        let (living, ended): (Vec<_>, Vec<_>) = processes
            .iter()
            .partition(|process| !matches!(process.state, 'Z' | 'X' | 'x'));
        for process in ended {
            let read = || self.proc.scheduled(process.pid, process.pid);
            self.log.end(process.pid, look.now, read);
        }
        let living: Vec<&ProcessReading> = living.into_iter().take(MOST_PROCESSES).collect();
        let place_of = |pid: i32| living.iter().position(|process| process.pid == pid);
        let seen = |process: &&ProcessReading| SeenProcess {
            name: process.comm.clone(),
            parent: place_of(process.parent).and_then(|place| u32::try_from(place).ok()),
            main: self.state(process, process.pid, &process.comm, process.state, look),
            others: match process.threads {
                0 | 1 => Vec::new(),
                _ => self.others(process, look),
            },
        };
        living.iter().map(seen).collect()
    }

    /// States of its threads except the first, each state once.
    fn others(&mut self, process: &ProcessReading, look: Look) -> Vec<ThreadState> {
        let pid = process.pid;
        let mut tasks = self.proc.tasks(pid);
        tasks.retain(|tid| *tid != pid);
        let step = tasks.len().div_ceil(MOST_THREADS).max(1);
        let mut states: Vec<ThreadState> = tasks
            .into_iter()
            .step_by(step)
            .filter_map(|tid| {
                let stat = self.proc.task_stat(pid, tid).ok()??;
                stat.is_alive()
                    .then(|| self.state(process, tid, &stat.comm, stat.state, look))
            })
            .collect();
        states.sort_unstable();
        states.dedup();
        states
    }

    fn state(
        &mut self,
        process: &ProcessReading,
        tid: i32,
        name: &str,
        letter: char,
        look: Look,
    ) -> ThreadState {
        let pid = process.pid;
        let sleeps = matches!(letter, 'S' | 'D');
        let scheduled = self.proc.scheduled(pid, tid);
        let place = sleeps.then(|| self.place(pid, tid)).flatten();
        if let Some(scheduled) = scheduled {
            let seen = Looked {
                pid,
                tid,
                parent: process.parent,
                name,
                sleeps: sleeps.then_some(place),
                scheduled,
            };
            self.log.note(look, seen);
        }
        ThreadState { letter, place }
    }

    fn place(&mut self, pid: i32, tid: i32) -> Option<u32> {
        let mut name = self.proc.sleeps_in(pid, tid)?;
        if FOR_MANY.contains(&&*name)
            && let Some(file) = self.proc.call_is_about(pid, tid)
        {
            name = format!("{name} {file}");
        }
        if let Some(&known) = self.places.get(&name) {
            return Some(known);
        }
        let number = u32::try_from(self.places.len()).ok()?;
        self.places.insert(name.clone(), number);
        self.looks.places.push(name);
        Some(number)
    }

    /// How many looks that stand for the same time each would be as precise (Kish's effective sample
    /// size).
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "no more than there were looks"
    )]
    fn equally_spaced(&self) -> u64 {
        let span = self.looks.span.as_secs_f64();
        match self.squares > 0.0 {
            true => (span * span / self.squares).round() as u64,
            false => self.looks.count,
        }
    }

    fn finish(mut self) -> Looks {
        self.looks.count = self.equally_spaced();
        let logged = self.log.finish();
        self.looks.run_delay = logged.ready;
        self.looks.tasks = logged.tasks;
        self.looks.other_tasks = logged.others;
        let scenes = self.scenes.into_iter();
        let mut scenes: Vec<Scene> = scenes
            .map(|(processes, time)| Scene { time, processes })
            .collect();
        scenes.sort_by(|a, b| {
            b.time
                .cmp(&a.time)
                .then_with(|| a.processes.cmp(&b.processes))
        });
        self.looks.scenes = scenes;
        self.looks
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Child, Command, Stdio};

    /// A shell command. Killed when dropped.
    struct Shell(Child);

    impl Shell {
        fn start(script: &str) -> Self {
            let mut shell = Command::new("sh");
            let shell = shell.args(["-c", script]).stdout(Stdio::piped());
            Self(shell.spawn().expect("sh"))
        }

        fn pid(&self) -> i32 {
            i32::try_from(self.0.id()).expect("a process id")
        }

        /// What three looks show.
        fn looks(&self) -> Looks {
            let tree = Tree::new(ProcRoot::default(), self.pid()).expect("readable");
            let log = TaskLog::new(false);
            let mut watch = Watch::new(ProcRoot::default(), tree.expect("it lives"), log);
            assert!(watch.look() && watch.look() && watch.look());
            watch.finish()
        }
    }

    impl Drop for Shell {
        fn drop(&mut self) {
            let children = ProcRoot::default().children(self.pid());
            for child in children.unwrap_or_default() {
                let _ = crate::process::signal(child.unsigned_abs(), libc::SIGKILL);
            }
            self.0.kill().expect("killed");
            self.0.wait().expect("waited for");
        }
    }

    /// Where a process sleeps.
    fn place(pid: i32) -> String {
        std::fs::read_to_string(format!("/proc/{pid}/wchan")).unwrap_or_default()
    }

    fn names(looks: &Looks, scene: &Scene) -> Vec<String> {
        let states = scene.processes.iter().map(|process| {
            let place = process
                .main
                .place
                .map(|place| &*looks.places[place as usize]);
            format!("{} {}", process.name, place.unwrap_or("?"))
        });
        states.collect()
    }

    #[test]
    fn a_shell_that_waits_for_a_child_that_sleeps_is_seen_as_that() {
        let shell = Shell::start("sleep 1000; true");
        let proc = ProcRoot::default();
        let sleeps = |child: &i32| place(*child).contains("nanosleep");
        let is_there = || {
            let children = proc.children(shell.pid()).expect("readable");
            place(shell.pid()).contains("do_wait") && children.iter().any(sleeps)
        };
        while !is_there() {
            std::thread::yield_now();
        }
        assert!(WaitSampler::start(shell.pid()).stop().is_some());
        let looks = shell.looks();
        let longest = &looks.scenes[0];
        let seen = names(&looks, longest);
        assert!(seen[0].starts_with("sh do_wait"), "{seen:?}");
        assert!(
            seen[1].starts_with("sleep ") && seen[1].contains("nanosleep"),
            "{seen:?}"
        );
        assert_eq!(longest.processes[1].parent, Some(0));
        let all: Nanos = looks.scenes.iter().map(|scene| scene.time).sum();
        assert_eq!(all + looks.unkept, looks.span);
    }

    #[test]
    fn a_shell_that_computes_is_seen_ready_to_run() {
        let mut shell = Shell::start("echo started; while :; do :; done");
        let mut line = [0; 8];
        let output = shell.0.stdout.as_mut().expect("a pipe");
        std::io::Read::read_exact(output, &mut line).expect("a line");
        let looks = shell.looks();
        assert_eq!(looks.scenes[0].processes[0].main.letter, 'R', "{looks:?}");
    }

    #[test]
    fn what_is_gone_gives_nothing() {
        let mut child = Command::new("true").spawn().expect("true");
        let pid = i32::try_from(child.id()).expect("a process id");
        child.wait().expect("waited for");
        assert!(WaitSampler::start(pid).stop().is_none());
    }
}
