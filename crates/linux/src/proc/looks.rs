//! Looks at what all threads of a process tree do, at a beat that is not regular, on a thread of
//! its own: `/proc/PID/task/TID/{stat,wchan,schedstat}`.
//!
//! Sleep is not sampled by clocks of CPU time, and recording each switch costs more the more a
//! program switches. A look costs some 30 µs for each thread on a virtual machine (51 threads that sleep,
//! 32 looks in 9 s: 48 ms of this thread's schedstat), whatever they do; the beat widens so that looking
//! stays near 0.5 % of a CPU. Moments are drawn around the beat, so that a program
//! with a beat of its own is seen in all its phases.
//!
//! Deliberately absent: time by single threads, and stacks of waiting (`record -e off-cpu`).

use super::sampler::Stop;
use super::{ProcRoot, ProcessReading, Tree};
use crate::sys::machine;
use pagewise_model::looks::{Looks, Scene, SeenProcess, ThreadState};
use pagewise_model::units::Nanos;
use rustc_hash::FxHashMap;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Mean time between two looks while that is cheap.
const BEAT: Duration = Duration::from_millis(20);
/// Longest time between two looks.
const SLOWEST: Duration = Duration::from_secs(2);
/// Looking may take one part in so many of the time.
const COST_SHARE: u32 = 200;
/// Different scenes that are kept, processes of one, and other threads that are looked at in one
/// process: what they hold is bounded whatever runs.
const MOST_SCENES: usize = 1_000;
const MOST_PROCESSES: usize = 64;
const MOST_THREADS: usize = 64;
/// Threads whose time without a CPU is remembered.
const MOST_DELAYS: usize = 100_000;
/// Functions that sleep for files of many kinds (kernel/sched/wait.c).
const FOR_MANY: [&str; 1] = ["wait_woken"];

/// A thread that looks at a process tree. Dropping it ends it too.
#[derive(Debug)]
pub struct Onlooker {
    stop: Arc<Stop>,
    thread: Option<JoinHandle<Looks>>,
}

impl Onlooker {
    /// Looks at `pid` and its descendants from now on. Where they cannot be seen, nothing is.
    #[must_use]
    pub fn start(pid: i32) -> Self {
        let stop = Arc::new(Stop::default());
        let watched = Arc::clone(&stop);
        let thread = std::thread::Builder::new().name("pagewise-looks".to_owned());
        let watch = move || match Tree::new(ProcRoot::default(), pid) {
            Ok(Some(tree)) => Watch::new(ProcRoot::default(), tree).run(&watched),
            _ => Looks::default(),
        };
        Self {
            stop,
            thread: thread.spawn(watch).ok(),
        }
    }

    /// What was seen; `None` where that was nothing.
    #[must_use]
    pub fn stop(mut self) -> Option<Looks> {
        self.stop.now();
        let looks = self.thread.take()?.join().ok()?;
        (looks.count > 0).then_some(looks)
    }
}

impl Drop for Onlooker {
    fn drop(&mut self) {
        self.stop.now();
    }
}

/// Time without a CPU, when first and last seen.
#[derive(Clone, Copy)]
struct Delay {
    first: Nanos,
    last: Nanos,
}

struct Watch {
    proc: ProcRoot,
    tree: Tree,
    looks: Looks,
    places: FxHashMap<String, u32>,
    scenes: FxHashMap<Vec<SeenProcess>, Nanos>,
    delays: FxHashMap<(i32, i32), Delay>,
    last: Instant,
    random: u64,
}

impl Watch {
    fn new(proc: ProcRoot, tree: Tree) -> Self {
        Self {
            proc,
            tree,
            looks: Looks::default(),
            places: FxHashMap::default(),
            scenes: FxHashMap::default(),
            delays: FxHashMap::default(),
            last: Instant::now(),
            random: u64::from(std::process::id()) | 1,
        }
    }

    fn run(mut self, stop: &Stop) -> Looks {
        let mut beat = BEAT;
        loop {
            let before = machine::thread_cpu_time();
            if !self.look() {
                break;
            }
            let cost = Duration::from_nanos((machine::thread_cpu_time() - before).0);
            // Slowly back: one look that was cheap by chance is no reason to hurry.
            beat = (cost * COST_SHARE)
                .max(beat.mul_f64(0.9))
                .clamp(BEAT, SLOWEST);
            if stop.wait_until(Some(Instant::now() + self.drawn(beat))) {
                break;
            }
        }
        self.finish()
    }

    /// Between a half and one and a half of `beat` (xorshift64; Marsaglia, 2003).
    #[allow(clippy::cast_precision_loss, reason = "a random part")]
    fn drawn(&mut self, beat: Duration) -> Duration {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        beat.mul_f64(0.5 + (self.random >> 11) as f64 / (1_u64 << 53) as f64)
    }

    /// Notes what is to be seen now; whether anything lives.
    fn look(&mut self) -> bool {
        let processes = self.tree.read().processes;
        let is_first = self.looks.count == 0;
        let scene = self.scene(&processes, is_first);
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

    fn scene(&mut self, processes: &[ProcessReading], is_first: bool) -> Vec<SeenProcess> {
        let living = processes
            .iter()
            .filter(|process| !matches!(process.state, 'Z' | 'X' | 'x'));
        let living: Vec<&ProcessReading> = living.take(MOST_PROCESSES).collect();
        let place_of = |pid: i32| living.iter().position(|process| process.pid == pid);
        let seen = |process: &&ProcessReading| SeenProcess {
            name: process.comm.clone(),
            parent: place_of(process.parent).and_then(|place| u32::try_from(place).ok()),
            main: self.state(process.pid, process.pid, process.state, is_first),
            others: match process.threads {
                0 | 1 => Vec::new(),
                _ => self.others(process.pid, is_first),
            },
        };
        living.iter().map(seen).collect()
    }

    /// What its threads but the first do, each state once.
    fn others(&mut self, pid: i32, is_first: bool) -> Vec<ThreadState> {
        let mut tasks = self.proc.tasks(pid);
        tasks.retain(|tid| *tid != pid);
        let step = tasks.len().div_ceil(MOST_THREADS).max(1);
        let mut states: Vec<ThreadState> = tasks
            .into_iter()
            .step_by(step)
            .filter_map(|tid| {
                let stat = self.proc.task_stat(pid, tid).ok()??;
                stat.is_alive()
                    .then(|| self.state(pid, tid, stat.state, is_first))
            })
            .collect();
        states.sort_unstable();
        states.dedup();
        states
    }

    fn state(&mut self, pid: i32, tid: i32, letter: char, is_first: bool) -> ThreadState {
        self.note_delay(pid, tid, is_first);
        let place = match letter {
            'S' | 'D' => self.place(pid, tid),
            _ => None,
        };
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

    /// A thread that is met later was born meanwhile.
    fn note_delay(&mut self, pid: i32, tid: i32, is_first: bool) {
        let Some(delay) = self.proc.run_delay(pid, tid) else {
            return;
        };
        let first = if is_first { delay } else { Nanos(0) };
        if let Some(known) = self.delays.get_mut(&(pid, tid)) {
            known.last = known.last.max(delay);
        } else if self.delays.len() < MOST_DELAYS {
            self.delays.insert((pid, tid), Delay { first, last: delay });
        }
    }

    fn finish(mut self) -> Looks {
        let delays = self.delays.values();
        let all = delays.map(|delay| delay.last - delay.first).sum();
        self.looks.run_delay = (!self.delays.is_empty()).then_some(all);
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
    use std::process::{Command, Stdio};

    /// What looks of half a second at a shell's command see of the first process's first thread.
    fn seen_of(script: &str) -> Looks {
        let mut child = Command::new("sh")
            .args(["-c", script])
            .stdin(Stdio::piped())
            .spawn()
            .expect("sh");
        let pid = i32::try_from(child.id()).expect("a process id");
        let onlooker = Onlooker::start(pid);
        std::thread::sleep(Duration::from_millis(500));
        let looks = onlooker.stop().expect("it lived");
        child.kill().expect("killed");
        child.wait().expect("waited for");
        looks
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
        let looks = seen_of("sleep 60; true");
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
        let looks = seen_of("while :; do :; done");
        assert_eq!(looks.scenes[0].processes[0].main.letter, 'R', "{looks:?}");
    }

    #[test]
    fn what_is_gone_gives_nothing() {
        let mut child = Command::new("true").spawn().expect("true");
        let pid = i32::try_from(child.id()).expect("a process id");
        child.wait().expect("waited for");
        assert!(Onlooker::start(pid).stop().is_none());
    }
}
