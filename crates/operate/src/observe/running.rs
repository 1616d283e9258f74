//! Running processes, and the whole machine.

use super::seen::{FIRST_LOOK, STEP, Seen};
use super::{Beginning, MemoryWatch, Observation, ObserveOptions, Outcome, counters, file};
use crate::memory::Start;
use pagewise_linux::delays::DelayQuery;
use pagewise_linux::perf::{Counters, Recorder, Target};
use pagewise_linux::proc::{ProcRoot, Sampler, WaitSampler};
use pagewise_linux::process::interrupt;
use pagewise_model::host::HostSnapshot;
use pagewise_model::run::{Ending, RunCost};
use pagewise_model::tasks::largest;
use pagewise_model::timeline::Timeline;
use pagewise_model::units::Nanos;
use std::time::Duration;

/// How often to check whether a running process is still alive.
const LOOK: Duration = Duration::from_millis(100);

/// Observes them until the first ends, the time is over, the user stops it or `goes_on` returns
/// false.
pub(super) fn observe(
    options: &ObserveOptions,
    target: Target,
    pid: i32,
    host: HostSnapshot,
    goes_on: &mut dyn FnMut() -> bool,
) -> anyhow::Result<Observation> {
    let proc = ProcRoot::default();
    let counts_delays = options.delays && !options.subject.is_whole_machine();
    let delays = counts_delays.then(|| DelayQuery::begin(pid)).flatten();
    let counters = counters(options, &target);
    let recorder = Recorder::open(target, &options.recorder)?;
    let recording = file::begin(recorder, &options.output, options.hide)?;
    let mut beginning = Beginning::now();
    let sampler = Sampler::start(pid, options.interval);
    let wait_sampler = (!options.subject.is_whole_machine()).then(|| WaitSampler::start(pid));
    let memory = MemoryWatch::begin(options, pid, Start::unseen());
    let mut seen = Seen::begin();
    let mut next_look = Duration::ZERO;
    let alive = loop {
        let alive = is_alive(&proc, pid);
        let over = options
            .duration
            .is_some_and(|most| beginning.instant.elapsed() >= most);
        if !alive || over || interrupt::requested().is_some() || !goes_on() {
            break alive;
        }
        if next_look <= beginning.instant.elapsed() && !options.subject.is_whole_machine() {
            seen.look_at_allocators(pid);
            seen.look_at_family(pid);
            if options.pages {
                seen.look_at_pages(pid);
                seen.look_at_nodes(pid);
            }
            next_look = (beginning.instant.elapsed().mul_f64(1.0 + STEP)).max(FIRST_LOOK);
        }
        std::thread::sleep(LOOK);
    };
    if alive && options.pages && !options.subject.is_whole_machine() {
        seen.look_at_nodes(pid);
    }
    let (memory, present) = memory.end();
    let (delays, ended) = delays.map_or((None, Vec::new()), DelayQuery::stop);
    let (tasks, other_tasks) = largest(ended, |task| task.run);
    let timeline = sampler.stop();
    let command = proc.cmdline(pid).ok().flatten().unwrap_or_default();
    let outcome = Outcome {
        pid,
        command: command
            .iter()
            .map(|word| word.to_string_lossy().into_owned())
            .collect(),
        ending: Ending::Running,
        cost: cost_of(&timeline, beginning.instant.elapsed()),
        timeline,
        contention: beginning.contention.so_far(),
        kernel_threads: beginning.kernel_threads.stop(),
        looks: wait_sampler.and_then(WaitSampler::stop),
        counters: counters.map_or_else(Vec::new, Counters::stop),
        delays,
        tasks,
        other_tasks,
        memory,
        present,
        notes: ended_note(pid, alive),
        seen,
    };
    file::conclude(options, recording, outcome, &beginning, host)
}

fn ended_note(pid: i32, alive: bool) -> Vec<String> {
    if alive {
        return Vec::new();
    }
    vec![format!(
        "Process {pid} ended while it was observed; its exit status went to its parent."
    )]
}

/// Cost of a running tree while observed, from the timeline.
fn cost_of(timeline: &Timeline, wall: Duration) -> RunCost {
    let last = timeline.points.last().copied().unwrap_or_default();
    let peak = timeline.points.iter().map(|point| point.rss).max();
    RunCost {
        wall: Nanos::from(wall),
        user: last.user,
        system: last.system,
        minor_faults: last.minor_faults,
        major_faults: last.major_faults,
        max_rss: peak.unwrap_or_default(),
        ..RunCost::default()
    }
}

/// Whether a process lives.
pub fn is_alive(proc: &ProcRoot, pid: i32) -> bool {
    matches!(proc.stat(pid), Ok(Some(stat)) if stat.is_alive())
}
