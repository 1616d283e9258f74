//! One observation, from launch to a finished perf.data file: what `record` and `doctor` share.

use crate::destination;
use crate::huge::join as page_sizes;
use crate::seen::{FIRST_LOOK, STEP, Seen};
use anyhow::Context;
use pagewise_linux::delays::DelayWatch;
use pagewise_linux::perf::{
    self, Counters, EventCount, Note, Options, Recorder, Recording, Target,
};
use pagewise_linux::proc::{ContentionWatch, Onlooker, ProcRoot, Sampler};
use pagewise_linux::process::library::surroundings;
use pagewise_linux::process::{Finished, Gated, Launch, Running, interrupt};
use pagewise_linux::sys::perf_event::monotonic_now;
use pagewise_linux::{host, process};
use pagewise_model::contention::Contention;
use pagewise_model::delays::Delays;
use pagewise_model::formats::perf_data::Features;
use pagewise_model::host::HostSnapshot;
use pagewise_model::looks::Looks;
use pagewise_model::loss::Losses;
use pagewise_model::recording::{Counter, SIDECAR_VERSION, Sidecar};
use pagewise_model::run::{Ending, RunCost};
use pagewise_model::timeline::Timeline;
use pagewise_model::units::{Bytes, Nanos};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Who is observed.
#[derive(Clone, Debug)]
pub enum Subject {
    /// A program that we start.
    Command(Launch),
    /// Processes that run already; the first one's tree is put into the timeline.
    Processes(Vec<i32>),
    /// Everything on this machine.
    System,
    /// Everything on this machine while a program runs that we start.
    SystemDuring(Launch),
}

/// What to observe and where to put it.
#[derive(Clone, Debug)]
pub struct ObserveOptions {
    /// Who.
    pub subject: Subject,
    /// What to record.
    pub recorder: Options,
    /// Whether counters are read beside it.
    pub counters: bool,
    /// Whether page sizes of a program that is started are looked at while it runs.
    pub pages: bool,
    /// Whether the waits of a program that is started are counted, where that is allowed.
    pub delays: bool,
    /// The perf.data file; replaced where it exists.
    pub output: PathBuf,
    /// Time between two points of the timeline.
    pub interval: Duration,
    /// Ends the observation, and a program that we started, after this time.
    pub duration: Option<Duration>,
}

/// Samples of CPU time per second: what the kernel does is told from them. Each costs some
/// microseconds, so together a thousandth of the time.
const CPU_FREQUENCY: u64 = 299;

impl ObserveOptions {
    /// All that an explanation takes, and no more.
    pub fn explaining(subject: Subject, output: &Path) -> Self {
        Self {
            subject,
            recorder: Options {
                cpu: Some(CPU_FREQUENCY),
                cpu_of_kernel: true,
                ..Options::default()
            },
            counters: false,
            pages: true,
            delays: true,
            output: output.to_path_buf(),
            interval: Duration::from_millis(100),
            duration: None,
        }
    }
}

/// What came of it. The rest is in the file.
#[derive(Clone, Debug)]
pub struct Observation {
    /// The perf.data file.
    pub path: PathBuf,
    /// Its size.
    pub size: Bytes,
    /// How the program ended.
    pub ending: Ending,
    /// What it used.
    pub cost: RunCost,
    /// What observing took from what was observed, estimated.
    pub own_cost: Nanos,
    /// Records by source.
    pub counts: Vec<EventCount>,
    /// What was lost.
    pub losses: Losses,
    /// What was asked for but not to be had, each with its remedy.
    pub notes: Vec<String>,
}

/// How a program ended while it was observed, and what was learnt only while it lived.
struct Outcome {
    ending: Ending,
    cost: RunCost,
    timeline: Timeline,
    counters: Vec<Counter>,
    notes: Vec<String>,
    seen: Seen,
    /// How much the CPUs were shared.
    contention: Option<Contention>,
    /// What threads were seen to do.
    looks: Option<Looks>,
    /// How long its tasks waited.
    delays: Option<Delays>,
}

/// Moment at which an observation began.
struct Beginning {
    clock: Nanos,
    unix_ms: u64,
    instant: Instant,
    /// What all processes had used by then.
    machine: Option<RunCost>,
    /// How long tasks had waited for CPUs by then.
    contention: ContentionWatch,
}

/// Allocators are looked for at these times after the start: early for programs that end soon,
/// later for libraries that are loaded late.
const LOOKS_FOR_ALLOCATORS: [Duration; 6] = [
    Duration::from_millis(2),
    Duration::from_millis(10),
    Duration::from_millis(50),
    Duration::from_millis(250),
    Duration::from_secs(2),
    Duration::from_secs(15),
];
/// A program that was asked to end gets this long to do so.
const GRACE: Duration = Duration::from_secs(3);
/// How often a running process is looked at to see whether it still lives.
const LOOK: Duration = Duration::from_millis(100);

/// Observes the subject until it ends, the time is over or the user says so (Ctrl-C), and writes
/// the recording. Whatever was gathered by then is kept.
///
/// # Errors
/// When the program cannot be started, the process is gone or belongs to somebody else, or the
/// file cannot be written at all. Anything less is a note.
pub fn observe(options: &ObserveOptions) -> anyhow::Result<Observation> {
    interrupt::install()?;
    let own = i32::try_from(std::process::id()).unwrap_or_default();
    match &options.subject {
        Subject::Command(launch) | Subject::SystemDuring(launch) => {
            // The program inherits what is set for us.
            observe_command(options, launch, host::snapshot_with(own))
        }
        Subject::Processes(pids) => {
            let first = pids.first().copied().unwrap_or_default();
            let host = host::snapshot_with(first);
            observe_running(options, Target::Pids(pids.clone()), first, host)
        }
        Subject::System => observe_running(options, Target::System, 1, host::snapshot()),
    }
}

impl Subject {
    fn is_whole_machine(&self) -> bool {
        matches!(self, Self::System | Self::SystemDuring(_))
    }
}

fn observe_command(
    options: &ObserveOptions,
    launch: &Launch,
    host: HostSnapshot,
) -> anyhow::Result<Observation> {
    // The kernel counts for tasks that are made from now on.
    let delays = options.delays.then(DelayWatch::begin).flatten();
    let gated = launch.spawn_gated()?;
    let pid = gated.pid();
    let identity = change_of_identity(gated.path());
    let target = match options.subject {
        Subject::SystemDuring(_) => Target::System,
        _ => Target::Gated(pid),
    };
    let counters = counters(options, &target);
    let recorder = Recorder::open(target, &options.recorder)?;
    let mut recording = begin(recorder, &options.output)?;
    let beginning = Beginning::now();
    let running = release(gated, &mut recording, &options.output)?;
    let sampler = Sampler::start(pid, options.interval);
    let onlooker = (!options.subject.is_whole_machine()).then(|| Onlooker::start(pid));
    let (finished, seen) = accompany(running, options, &beginning)?;
    let mut outcome = Outcome {
        ending: finished.ending,
        cost: finished.cost,
        timeline: sampler.stop_after(&finished.cost),
        contention: beginning.contention.so_far(),
        looks: onlooker.and_then(Onlooker::stop),
        counters: counters.map_or_else(Vec::new, Counters::stop),
        delays: delays.and_then(|watch| watch.stop(pid)),
        notes: Vec::new(),
        seen,
    };
    outcome.notes.extend(identity);
    let command = std::iter::once(&launch.program).chain(&launch.args);
    let command = command.map(|word| word.to_string_lossy().into_owned());
    conclude(
        options,
        recording,
        outcome,
        &beginning,
        host,
        pid,
        command.collect(),
    )
}

/// Lets the program execute. Where it cannot, the recording that was begun is removed again.
fn release(gated: Gated, recording: &mut Recording, output: &Path) -> anyhow::Result<Running> {
    match gated.release() {
        Ok(running) => {
            recording.released();
            Ok(running)
        }
        Err(error) => {
            // It holds nothing; that it cannot be removed matters less than the error itself.
            if output.metadata().is_ok_and(|metadata| metadata.is_file()) {
                let _ = fs::remove_file(output);
            }
            Err(error.into())
        }
    }
}

/// Waits for the program's end, looking at it meanwhile.
fn accompany(
    mut running: Running,
    options: &ObserveOptions,
    beginning: &Beginning,
) -> Result<(Finished, Seen), process::Error> {
    let mut seen = Seen::default();
    let mut looks = LOOKS_FOR_ALLOCATORS.into_iter().peekable();
    let mut next_look = FIRST_LOOK;
    loop {
        let elapsed = beginning.instant.elapsed();
        let over = options.duration.is_some_and(|most| elapsed >= most);
        if interrupt::requested().is_some() {
            return Ok((end(running)?, seen));
        }
        if over {
            return Ok((end_in_time(running)?, seen));
        }
        while looks.next_if(|&look| look <= elapsed).is_some() {
            seen.look_at_allocators(running.pid());
        }
        if next_look <= elapsed {
            seen.look_at_family(running.pid());
            if options.pages {
                seen.look_at_pages(running.pid());
            }
            next_look = beginning.instant.elapsed().mul_f64(1.0 + STEP);
        }
        let next = looks.peek().copied().into_iter().chain(options.duration);
        let next = next.fold(next_look, Duration::min);
        let wait = next.saturating_sub(elapsed);
        if let Some(finished) = running.wait_for(wait)? {
            return Ok((finished, seen));
        }
    }
}

/// Ends a program on the user's request. Ctrl-C reached it from the terminal already, and it may
/// well be cleaning up; any other request is passed on.
pub fn end(mut running: Running) -> Result<Finished, process::Error> {
    let by_terminal = interrupt::requested() == Some(libc::SIGINT);
    if by_terminal {
        let deadline = Instant::now() + GRACE;
        while let Some(left) = deadline.checked_duration_since(Instant::now()) {
            if let Some(finished) = running.wait_for(left)? {
                return Ok(finished);
            }
        }
    }
    running.stop(GRACE)
}

/// Ends a program whose time is over. That our signal killed it then says nothing about it: it ran.
pub fn end_in_time(running: Running) -> Result<Finished, process::Error> {
    let finished = running.stop(GRACE)?;
    Ok(match finished.ending {
        Ending::Killed(libc::SIGTERM | libc::SIGKILL) => Finished {
            ending: Ending::Running,
            ..finished
        },
        _ => finished,
    })
}

fn observe_running(
    options: &ObserveOptions,
    target: Target,
    pid: i32,
    host: HostSnapshot,
) -> anyhow::Result<Observation> {
    let proc = ProcRoot::default();
    let counters = counters(options, &target);
    let recorder = Recorder::open(target, &options.recorder)?;
    let recording = begin(recorder, &options.output)?;
    let beginning = Beginning::now();
    let sampler = Sampler::start(pid, options.interval);
    let onlooker = (!options.subject.is_whole_machine()).then(|| Onlooker::start(pid));
    let mut seen = Seen::default();
    let mut next_look = Duration::ZERO;
    let alive = loop {
        let alive = is_alive(&proc, pid);
        let over = options
            .duration
            .is_some_and(|most| beginning.instant.elapsed() >= most);
        if !alive || over || interrupt::requested().is_some() {
            break alive;
        }
        if next_look <= beginning.instant.elapsed() && !options.subject.is_whole_machine() {
            seen.look_at_allocators(pid);
            seen.look_at_family(pid);
            if options.pages {
                seen.look_at_pages(pid);
            }
            next_look = (beginning.instant.elapsed().mul_f64(1.0 + STEP)).max(FIRST_LOOK);
        }
        std::thread::sleep(LOOK);
    };
    let timeline = sampler.stop();
    let outcome = Outcome {
        ending: Ending::Running,
        cost: cost_of(&timeline, beginning.instant.elapsed()),
        timeline,
        contention: beginning.contention.so_far(),
        looks: onlooker.and_then(Onlooker::stop),
        counters: counters.map_or_else(Vec::new, Counters::stop),
        delays: None,
        notes: ended_note(pid, alive),
        seen,
    };
    let command = proc.cmdline(pid).ok().flatten().unwrap_or_default();
    let command = command
        .iter()
        .map(|word| word.to_string_lossy().into_owned());
    conclude(
        options,
        recording,
        outcome,
        &beginning,
        host,
        pid,
        command.collect(),
    )
}

/// Begins to count beside the recording, where that is wanted and possible.
fn counters(options: &ObserveOptions, target: &Target) -> Option<Counters> {
    match options.counters {
        true => Counters::start(target, options.interval),
        false => None,
    }
}

fn ended_note(pid: i32, alive: bool) -> Vec<String> {
    if alive {
        return Vec::new();
    }
    vec![format!(
        "Process {pid} ended while it was observed; its exit status went to its parent."
    )]
}

/// Whether a process lives.
pub fn is_alive(proc: &ProcRoot, pid: i32) -> bool {
    matches!(proc.stat(pid), Ok(Some(stat)) if stat.is_alive())
}

/// What a running tree used while observed, as the timeline saw it.
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

/// Adds our notes to the recorder's. That it was cut off needs no saying where it is known that
/// the program changes its identity: that note tells the same, and which program.
fn add_notes(notes: &mut Vec<String>, ours: Vec<String>) {
    let detached = Note::Detached.text();
    if ours.iter().any(|note| note.contains(IDENTITY)) {
        notes.retain(|note| *note != detached);
    }
    notes.extend(ours);
}

/// Words that only the note about a change of identity has.
const IDENTITY: &str = "runs under another identity";

/// A warning when the program takes on another identity, whose events the kernel hides from us.
fn change_of_identity(program: &Path) -> Option<String> {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    let metadata = fs::metadata(program).ok()?;
    let bits = metadata.permissions().mode();
    let changes_user = bits & libc::S_ISUID != 0 && metadata.uid() != fs_uid()?;
    let changes_group = bits & libc::S_ISGID != 0;
    ((changes_user || changes_group) && fs_uid() != Some(0)).then(|| {
        format!(
            "{} {IDENTITY} (set-user-ID or set-group-ID), so the kernel does \
             not let its faults be recorded. Remedy: run pagewise as root.",
            program.display()
        )
    })
}

/// Our own user id, as the owner of our entry in `/proc`.
fn fs_uid() -> Option<u32> {
    use std::os::unix::fs::MetadataExt;
    Some(fs::metadata("/proc/self").ok()?.uid())
}

/// Stops recording and puts everything that is not an event behind the events.
fn conclude(
    options: &ObserveOptions,
    recording: Recording,
    outcome: Outcome,
    beginning: &Beginning,
    host: HostSnapshot,
    pid: i32,
    command: Vec<String>,
) -> anyhow::Result<Observation> {
    let whole_machine = options.subject.is_whole_machine();
    let cost = match whole_machine {
        true => beginning.cost_of_machine().unwrap_or(outcome.cost),
        false => outcome.cost,
    };
    let recorded = recording.stop()?;
    let mut collection = recorded.collection.clone();
    collection.whole_machine = whole_machine;
    collection.attached = matches!(options.subject, Subject::Processes(_));
    add_notes(&mut collection.notes, outcome.notes);
    let mut observation = Observation {
        path: options.output.clone(),
        size: Bytes(0),
        ending: outcome.ending,
        cost,
        own_cost: collection.own_cost,
        counts: recorded.counts.clone(),
        losses: recorded.losses.clone(),
        notes: collection.notes.clone(),
    };
    let attached = match (&options.subject, outcome.ending) {
        (Subject::Processes(_), Ending::Running) => Some(pid),
        _ => None,
    };
    let pages = || page_sizes::seen(outcome.seen.pages, &cost, attached);
    let sidecar = Sidecar {
        schema_version: SIDECAR_VERSION,
        surroundings: surroundings(),
        page_sizes: options.pages.then(pages).flatten(),
        command,
        pid,
        started_unix_ms: beginning.unix_ms,
        started_clock: beginning.clock,
        cost,
        ending: outcome.ending,
        timeline: outcome.timeline,
        processes: outcome.seen.by_process(pid),
        huge_pages: outcome.seen.huge,
        allocators: outcome.seen.allocators,
        losses: recorded.losses.clone(),
        collection,
        counters: outcome.counters,
        host,
        contention: outcome.contention,
        looks: outcome.looks,
        delays: outcome.delays,
    };
    if let Err(error) = recorded.finish(features(sidecar)) {
        let (path, cause) = (options.output.display(), error.to_string());
        // Where the events did not fit either, that was told with its cause.
        let cause = match observation.notes.iter().any(|note| note.contains(&cause)) {
            true => String::new(),
            false => format!(" ({cause})"),
        };
        observation.notes.push(format!(
            "The timeline, the host's settings and CPU times are missing from {path}: what goes \
             behind the events could not be written{cause}."
        ));
    }
    observation.size = Bytes(fs::metadata(&options.output).map_or(0, |file| file.len()));
    Ok(observation)
}

fn features(sidecar: Sidecar) -> Features {
    let host = &sidecar.host;
    Features {
        hostname: host.hostname.clone(),
        os_release: host.kernel.clone(),
        arch: host.architecture.clone(),
        version: concat!("pagewise ", env!("CARGO_PKG_VERSION")).to_owned(),
        cpus_online: host.cpus,
        cpus_available: host.cpus,
        cpu_desc: host.cpu.clone(),
        total_mem_kib: host.memory_bytes / 1024,
        cmdline: std::env::args_os()
            .map(|word| word.to_string_lossy().into_owned())
            .collect(),
        sidecar: Some(sidecar),
        ..Features::default()
    }
}

/// Begins the recording in a new file.
fn begin(recorder: Recorder, path: &Path) -> anyhow::Result<Recording> {
    match recorder.start(destination::begin(path)?, path) {
        Err(perf::Error::Write(error)) => {
            Err(error).with_context(|| format!("cannot write the recording {}", path.display()))
        }
        begun => Ok(begun?),
    }
}

impl Beginning {
    fn now() -> Self {
        let unix = SystemTime::now().duration_since(UNIX_EPOCH);
        let unix = unix.unwrap_or_default().as_millis();
        Self {
            clock: monotonic_now(),
            unix_ms: u64::try_from(unix).unwrap_or(u64::MAX),
            instant: Instant::now(),
            machine: ProcRoot::default().machine_cost().ok().flatten(),
            contention: ContentionWatch::begin(),
        }
    }

    /// What all processes used since; `None` where the kernel does not tell.
    fn cost_of_machine(&self) -> Option<RunCost> {
        let now = ProcRoot::default().machine_cost().ok().flatten()?;
        let wall = Nanos::from(self.instant.elapsed());
        Some(now.since(&self.machine?, wall))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_of_identity_is_told_once() {
        let recorded = || vec!["rings".to_owned(), Note::Detached.text()];
        let ours = format!("su {IDENTITY} (set-user-ID)");
        let mut notes = recorded();
        add_notes(&mut notes, vec![ours.clone()]);
        assert_eq!(notes, ["rings".to_owned(), ours]);
        let mut notes = recorded();
        add_notes(&mut notes, vec!["other".to_owned()]);
        assert_eq!(notes.len(), 3);
    }
}
