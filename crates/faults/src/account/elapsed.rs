//! Where elapsed time went: what the program was doing at the moments when it was sampled
//! ("looks").
//!
//! While any thread is ready to run, elapsed time belongs to the CPUs. Otherwise one wait explains
//! it: the first thread's, or, if that waits for a thread or process of the same program, the wait
//! of that one, and so on.

use super::heaviest;
use super::table::{KernelTable, Wait, WaitsFor};
use crate::attribute::wilson;
use pagewise_model::account::TimePart;
use pagewise_model::looks::{Looks, Scene, SeenProcess, ThreadState};
use pagewise_model::run::RunCost;
use pagewise_model::units::{Estimate, Nanos};
use std::collections::BTreeMap;

/// With fewer looks nothing is reported.
const FEWEST: u64 = 10;
/// Looks must cover this part of the elapsed time.
const MOST_OF_IT: f64 = 0.5;

/// Time by kind.
#[derive(Default)]
struct Part {
    label: String,
    next: Option<String>,
    nanos: u64,
    places: BTreeMap<String, u64>,
    who: BTreeMap<String, u64>,
}

/// The elapsed time of a run from the looks; empty if they are too few.
pub(crate) fn elapsed(looks: Option<&Looks>, cost: &RunCost, table: &KernelTable) -> Vec<TimePart> {
    let Some(looks) = looks.filter(|looks| looks.count >= FEWEST && looks.span.0 > 0) else {
        return Vec::new();
    };
    let wall = cost.wall.0 as f64;
    let span = looks.span.0 as f64;
    if span < MOST_OF_IT * wall {
        return Vec::new();
    }
    let count = looks.count as f64;
    let time = |nanos: f64| wilson((nanos / span).min(1.0), count).scaled(wall);
    let (ready, parts) = sums(looks, table);
    let mut found = on_cpu(time(ready as f64), looks.run_delay, cost);
    found.extend(parts.into_iter().map(|(id, part)| TimePart {
        id,
        label: part.label,
        time: time(part.nanos as f64),
        places: heaviest(&part.places),
        shares: Vec::new(),
        who: heaviest(&part.who),
        next: part.next,
    }));
    if looks.unkept.0 > 0 {
        found.push(TimePart::plain(
            "unseen",
            "not told apart",
            time(looks.unkept.0 as f64),
        ));
    }
    found.retain(|part| part.time.value > 0.0);
    found.sort_by(|a, b| b.time.value.total_cmp(&a.time.value));
    found
}

/// Time in which some thread was ready to run, and the waits of the remaining time.
fn sums(looks: &Looks, table: &KernelTable) -> (u64, BTreeMap<String, Part>) {
    let mut ready = 0;
    let mut parts: BTreeMap<String, Part> = BTreeMap::new();
    for scene in &looks.scenes {
        if scene.processes.iter().any(runs) {
            ready += scene.time.0;
            continue;
        }
        let blamed = Chain::new(looks, scene, table).follow();
        let (id, label) = match (blamed.wait, blamed.state.letter) {
            (Some(wait), _) => (wait.id.clone(), wait.label.clone()),
            (None, 'T' | 't') => ("stopped".to_owned(), "stopped".to_owned()),
            (None, 'D') => (
                "kernel".to_owned(),
                "in uninterruptible sleep in the kernel".to_owned(),
            ),
            (None, _) => ("other".to_owned(), "waiting for something else".to_owned()),
        };
        let part = parts.entry(id).or_insert_with(|| Part {
            label,
            next: blamed.wait.and_then(|wait| wait.next.clone()),
            ..Part::default()
        });
        part.nanos += scene.time.0;
        *part.who.entry(blamed.process.name.clone()).or_default() += scene.time.0;
        if let Some(place) = place(looks, blamed.state) {
            *part.places.entry(place.to_owned()).or_default() += scene.time.0;
        }
    }
    (ready, parts)
}

fn runs(process: &SeenProcess) -> bool {
    let mut states = std::iter::once(&process.main).chain(&process.others);
    states.any(|state| state.letter == 'R')
}

fn place(looks: &Looks, state: ThreadState) -> Option<&str> {
    let place = usize::try_from(state.place?).ok()?;
    looks.places.get(place).map(String::as_str)
}

/// Divides the time of ready threads into running and waiting for a CPU. A thread runs for the part
/// of its ready time that all threads together do; while several are ready, the program waits only
/// if none of them runs, which they do independently of each other at worst.
fn on_cpu(ready: Estimate, delay: Option<Nanos>, cost: &RunCost) -> Vec<TimePart> {
    let cpu = cost.cpu().0 as f64;
    let delay = delay.map_or(0.0, |delay| delay.0 as f64);
    let threads = ((cpu + delay) / ready.value.max(1.0)).max(1.0);
    let waits = delay / (cpu + delay).max(1.0);
    let share = 1.0 - waits.powf(threads);
    vec![
        TimePart::plain("cpu", "on a CPU", ready.scaled(share)),
        TimePart::plain(
            "ready",
            "ready to run, waiting for a CPU",
            ready.scaled(1.0 - share),
        ),
    ]
}

/// The wait that explains a scene.
#[derive(Clone, Copy)]
struct Blamed<'a> {
    process: &'a SeenProcess,
    state: ThreadState,
    wait: Option<&'a Wait>,
}

/// Follows who waits for whom in a scene.
struct Chain<'a> {
    looks: &'a Looks,
    scene: &'a Scene,
    table: &'a KernelTable,
    visited: Vec<bool>,
}

impl<'a> Chain<'a> {
    fn new(looks: &'a Looks, scene: &'a Scene, table: &'a KernelTable) -> Self {
        Self {
            looks,
            scene,
            table,
            visited: vec![false; scene.processes.len()],
        }
    }

    fn follow(mut self) -> Blamed<'a> {
        let mut at = 0;
        loop {
            self.visited[at] = true;
            let process = &self.scene.processes[at];
            let blamed = self.of_process(process);
            let next = match blamed.wait.and_then(|wait| wait.waits_for) {
                Some(WaitsFor::Children) => self.child_of(at),
                Some(WaitsFor::Tree) => self.other_end(),
                Some(WaitsFor::Threads) | None => None,
            };
            match next {
                Some(next) => at = next,
                None => return blamed,
            }
        }
    }

    fn wait(&self, state: ThreadState) -> Option<&'a Wait> {
        place(self.looks, state).and_then(|name| self.table.wait(name))
    }

    /// The first thread's wait; if that is for other threads, their wait.
    fn of_process(&self, process: &'a SeenProcess) -> Blamed<'a> {
        let blamed = |state: ThreadState| Blamed {
            process,
            state,
            wait: self.wait(state),
        };
        let main = blamed(process.main);
        let waits_for = |one: &Blamed<'_>| one.wait.and_then(|wait| wait.waits_for);
        if waits_for(&main) != Some(WaitsFor::Threads) {
            return main;
        }
        let others = process.others.iter().map(|state| blamed(*state));
        let others = others.filter(|one| waits_for(one) != Some(WaitsFor::Threads));
        let rank = |one: &Blamed<'_>| {
            let known = one.wait.map(|wait| self.table.rank(wait));
            (one.state.letter != 'D', known.unwrap_or(usize::MAX))
        };
        others.min_by_key(rank).unwrap_or(main)
    }

    /// The newest child that was not visited yet.
    fn child_of(&self, parent: usize) -> Option<usize> {
        let is_child = |at: &usize| {
            let of = self.scene.processes[*at].parent;
            !self.visited[*at] && of.and_then(|of| usize::try_from(of).ok()) == Some(parent)
        };
        (0..self.scene.processes.len()).rev().find(is_child)
    }

    /// A process that may be at the other end of a pipe: one that waits for something outside the
    /// program.
    fn other_end(&self) -> Option<usize> {
        let unasked = (0..self.scene.processes.len()).filter(|at| !self.visited[*at]);
        let outside = unasked.filter(|at| {
            let wait = self.of_process(&self.scene.processes[*at]).wait;
            wait.is_some_and(|wait| wait.waits_for.is_none())
        });
        outside.min_by_key(|at| {
            let wait = self.of_process(&self.scene.processes[*at]).wait;
            wait.map_or(usize::MAX, |wait| self.table.rank(wait))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACES: [&str; 6] = [
        "do_wait",
        "futex_do_wait",
        "hrtimer_nanosleep",
        "anon_pipe_read",
        "wait_woken socket",
        "a_function_of_tomorrow",
    ];

    fn state(letter: char, place: &str) -> ThreadState {
        let place = PLACES.iter().position(|one| *one == place);
        ThreadState {
            letter,
            place: place.and_then(|place| u32::try_from(place).ok()),
        }
    }

    fn process(name: &str, parent: Option<u32>, main: ThreadState) -> SeenProcess {
        SeenProcess {
            name: name.to_owned(),
            parent,
            main,
            others: Vec::new(),
        }
    }

    /// A hundred looks in one second, all with these processes.
    fn parts_of(processes: Vec<SeenProcess>) -> Vec<TimePart> {
        let looks = Looks {
            count: 100,
            span: Nanos::SECOND,
            places: PLACES.map(str::to_owned).to_vec(),
            scenes: vec![Scene {
                time: Nanos::SECOND,
                processes,
            }],
            unkept: Nanos(0),
            run_delay: Some(Nanos(300_000_000)),
            ..Looks::default()
        };
        let cost = RunCost {
            wall: Nanos::SECOND,
            user: Nanos(100_000_000),
            ..RunCost::default()
        };
        let table = KernelTable::shipped();
        elapsed(Some(&looks), &cost, table)
    }

    fn first(processes: Vec<SeenProcess>) -> String {
        parts_of(processes)[0].id.clone()
    }

    #[test]
    fn a_shell_that_waits_for_a_child_waits_for_what_the_child_does() {
        let shell = || process("sh", None, state('S', "do_wait"));
        let child = |place| process("child", Some(0), state('S', place));
        assert_eq!(first(vec![shell()]), "children");
        assert_eq!(first(vec![shell(), child("hrtimer_nanosleep")]), "sleep");
        // A pipe from outside the program, and one from a process that waits for the network.
        assert_eq!(first(vec![shell(), child("anon_pipe_read")]), "pipe");
        let sender = child("wait_woken socket");
        assert_eq!(
            first(vec![shell(), sender, child("anon_pipe_read")]),
            "network"
        );
    }

    #[test]
    fn a_thread_that_waits_for_others_waits_for_what_they_do() {
        let mut pool = process("pool", None, state('S', "futex_do_wait"));
        assert_eq!(first(vec![pool.clone()]), "locks");
        pool.others = vec![state('S', "futex_do_wait"), state('S', "wait_woken socket")];
        assert_eq!(first(vec![pool.clone()]), "network");
        pool.others.push(state('D', "a_function_of_tomorrow"));
        assert_eq!(first(vec![pool]), "kernel");
    }

    #[test]
    fn ready_threads_run_and_wait_as_much_as_the_kernel_counted() {
        let shell = process("sh", None, state('S', "do_wait"));
        let parts = parts_of(vec![shell, process("child", Some(0), state('R', ""))]);
        let shares: Vec<(&str, f64)> = parts
            .iter()
            .map(|part| (&*part.id, part.time.value / 1e9))
            .collect();
        assert_eq!(shares, [("ready", 0.75), ("cpu", 0.25)]);
    }

    /// A compiler of 2 CPUs and many threads: 1.36 s of CPU time in 0.79 s.
    #[test]
    fn threads_short_of_cpus_do_not_make_the_program_wait() {
        let cost = RunCost {
            user: Nanos(1_360_000_000),
            ..RunCost::default()
        };
        let delay = Some(Nanos(3_135_000_000));
        let parts = on_cpu(Estimate::exact(0.79e9), delay, &cost);
        let share = |at: usize| parts[at].time.value / 0.79e9;
        assert!((share(0) - 0.87).abs() < 0.01, "{parts:?}");
        assert!((share(0) + share(1) - 1.0).abs() < 1e-9, "{parts:?}");
    }

    #[test]
    fn parts_add_up_to_the_elapsed_time() {
        let table = KernelTable::shipped();
        let scene = |millis: u64, processes| Scene {
            time: Nanos(millis * 1_000_000),
            processes,
        };
        let looks = Looks {
            count: 50,
            span: Nanos(1_000_000_000),
            places: PLACES.map(str::to_owned).to_vec(),
            scenes: vec![
                scene(
                    600,
                    vec![process("a", None, state('S', "hrtimer_nanosleep"))],
                ),
                scene(300, vec![process("a", None, state('R', ""))]),
            ],
            unkept: Nanos(100_000_000),
            run_delay: Some(Nanos(30_000_000)),
            ..Looks::default()
        };
        let cost = RunCost {
            wall: Nanos(1_200_000_000),
            user: Nanos(270_000_000),
            ..RunCost::default()
        };
        let parts = elapsed(Some(&looks), &cost, table);
        let sum: f64 = parts.iter().map(|part| part.time.value).sum();
        assert!((sum - 1.2e9).abs() < 1.0, "{parts:?}");
        assert!(elapsed(Some(&Looks { count: 5, ..looks }), &cost, table).is_empty());
    }
}
