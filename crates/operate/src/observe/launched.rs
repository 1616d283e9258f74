//! A program that we start, from its launch to its end.

use super::ending::{end, end_in_time};
use super::seen::{FIRST_LOOK, STEP, Seen};
use super::{
    Beginning, MemoryWatch, Observation, ObserveOptions, Outcome, Subject, counters, file, identity,
};
use crate::memory::Start;
use pagewise_linux::delays::DelayWatch;
use pagewise_linux::host;
use pagewise_linux::perf::{self, Counters, Recorder, Recording, Target};
use pagewise_linux::proc::{ProcRoot, Sampler, Scheduled, WaitSampler};
use pagewise_linux::process::{self, Finished, Gated, Launch, Running, interrupt};
use pagewise_linux::sys::perf_event::monotonic_now;
use pagewise_model::delays::Delays;
use pagewise_model::host::HostSnapshot;
use pagewise_model::tasks::largest;
use pagewise_model::units::Nanos;
use std::fs;
use std::path::Path;
use std::thread;
use std::time::Duration;

/// Allocators are looked up at these times after the start: early for programs that end soon, later
/// for libraries that are loaded late.
const LOOKS_FOR_ALLOCATORS: [Duration; 6] = [
    Duration::from_millis(2),
    Duration::from_millis(10),
    Duration::from_millis(50),
    Duration::from_millis(250),
    Duration::from_secs(2),
    Duration::from_secs(15),
];

/// Starts the program and observes it until it ends.
pub(super) fn observe(options: &ObserveOptions, launch: &Launch) -> anyhow::Result<Observation> {
    perf::wait_until_closed();
    // Reading some hundred files takes milliseconds, for which the program need not wait; but among
    // samples of the whole machine it would be seen.
    let mut host = options.subject.is_whole_machine().then(host_of_own);
    // The kernel counts for tasks that are created from now on.
    let delays = options.delays.then(DelayWatch::begin).flatten();
    let gated = launch.spawn_gated()?;
    let pid = gated.pid();
    let identity = identity::warning(gated.path());
    let target = match options.subject {
        Subject::SystemDuring(_) => Target::System,
        _ => Target::Gated(pid),
    };
    let counters = counters(options, &target);
    let recorder = Recorder::open(target, &options.recorder)?;
    let mut recording = file::begin(recorder, &options.output, options.hide)?;
    let mut beginning = Beginning::now();
    let running = release(gated, &mut recording, &options.output)?;
    let reader = match &host {
        Some(_) => None,
        None => thread::Builder::new().spawn(host_of_own).ok(),
    };
    let sampler = Sampler::start(pid, options.interval);
    let wait_sampler = (!options.subject.is_whole_machine()).then(|| WaitSampler::from_birth(pid));
    let memory = MemoryWatch::begin(options, pid, Start::read(&ProcRoot::default(), pid));
    let (finished, seen, last) = accompany(running, options, &beginning)?;
    let (memory, present) = memory.end();
    let ended = delays.and_then(|watch| watch.stop(pid));
    let sums = ended.iter().flatten().map(|task| task.delays);
    let delays = sums.reduce(Delays::and);
    let (tasks, other_tasks) = largest(ended.unwrap_or_default(), |task| task.run);
    let outcome = Outcome {
        pid,
        command: launch.words(),
        ending: finished.ending,
        cost: finished.cost,
        timeline: sampler.stop_after(&finished.cost),
        contention: beginning.contention.so_far(),
        kernel_threads: beginning.kernel_threads.stop(),
        looks: wait_sampler.and_then(|wait_sampler| wait_sampler.stop_after(last)),
        counters: counters.map_or_else(Vec::new, Counters::stop),
        delays,
        tasks,
        other_tasks,
        memory,
        present,
        notes: identity.into_iter().chain(left_running()).collect(),
        seen,
    };
    if let Some(reader) = reader {
        host = reader.join().ok();
    }
    let host = host.unwrap_or_else(host_of_own);
    file::conclude(options, recording, outcome, &beginning, host)
}

/// What the command started and left running.
fn left_running() -> Option<String> {
    let left = process::still_running();
    let names: Vec<String> = left
        .iter()
        .map(|(pid, name)| format!("{name} ({pid})"))
        .collect();
    (!names.is_empty()).then(|| {
        format!(
            "Still running after the command's end: {}. What it does from now on is not in these figures.",
            names.join(", ")
        )
    })
}

/// The machine, and our own settings, which the program inherits.
pub(super) fn host_of_own() -> HostSnapshot {
    let own = i32::try_from(std::process::id()).unwrap_or_default();
    host::snapshot_with(own)
}

/// Lets the program call exec. If exec fails, the recording is removed again.
pub(super) fn release(
    gated: Gated,
    recording: &mut Recording,
    output: &Path,
) -> anyhow::Result<Running> {
    match gated.release() {
        Ok(running) => {
            recording.released();
            Ok(running)
        }
        Err(error) => {
            // The file has no data; a failure to remove it matters less than the error itself.
            if output.metadata().is_ok_and(|metadata| metadata.is_file()) {
                let _ = fs::remove_file(output);
            }
            Err(error.into())
        }
    }
}

/// Figures of the first thread at its end, and the time of its end.
type Last = Option<(Nanos, Scheduled)>;

/// Waits for the program's end, and inspects it meanwhile.
fn accompany(
    mut running: Running,
    options: &ObserveOptions,
    beginning: &Beginning,
) -> Result<(Finished, Seen, Last), process::Error> {
    let mut seen = Seen::begin();
    let mut looks = LOOKS_FOR_ALLOCATORS.into_iter().peekable();
    let mut next_look = FIRST_LOOK;
    loop {
        let elapsed = beginning.instant.elapsed();
        let over = options.duration.is_some_and(|most| elapsed >= most);
        if interrupt::requested().is_some() {
            return Ok((end(running)?, seen, None));
        }
        if over {
            return Ok((end_in_time(running)?, seen, None));
        }
        while looks.next_if(|&look| look <= elapsed).is_some() {
            seen.look_at_allocators(running.pid());
        }
        if next_look <= elapsed {
            seen.look_at_family(running.pid());
            if options.pages {
                seen.look_at_pages(running.pid());
                seen.look_at_nodes(running.pid());
            }
            next_look = beginning.instant.elapsed().mul_f64(1.0 + STEP);
        }
        let next = looks.peek().copied().into_iter().chain(options.duration);
        let next = next.fold(next_look, Duration::min);
        let wait = next.saturating_sub(elapsed);
        let (last, wait) = match running.ends_within(wait) {
            true => (last_of(running.pid()), Duration::ZERO),
            false if running.pidfd().is_some() => (None, Duration::ZERO),
            false => (None, wait),
        };
        if let Some(finished) = running.wait_for(wait)? {
            return Ok((finished, seen, last));
        }
    }
}

/// Until it is reaped, an ended process still shows the figures of its first thread.
fn last_of(pid: i32) -> Last {
    let last = ProcRoot::default().scheduled(pid, pid)?;
    Some((monotonic_now(), last))
}
