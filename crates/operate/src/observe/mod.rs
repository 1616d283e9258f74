//! One observation, from launch to a finished perf.data file.

mod ending;
mod faults;
mod file;
mod identity;
mod launched;
mod page_sizes;
mod running;
mod seen;

pub use ending::{end, end_in_time};
pub(crate) use faults::FaultRecording;
pub use running::is_alive;

use crate::memory::{Pace, PagesWatch, PeakWatch, Start};
use pagewise_linux::host;
use pagewise_linux::perf::{Counters, EventCount, Options, Target};
use pagewise_linux::proc::{ContentionWatch, KernelThreadWatch, ProcRoot};
use pagewise_linux::process::{Launch, interrupt};
use pagewise_linux::sys::perf_event::monotonic_now;
use pagewise_model::contention::Contention;
use pagewise_model::delays::Delays;
use pagewise_model::kernel_threads::KernelThread;
use pagewise_model::looks::Looks;
use pagewise_model::loss::Losses;
use pagewise_model::memory::{Memory, PresentPages};
use pagewise_model::recording::Counter;
use pagewise_model::run::{Ending, RunCost};
use pagewise_model::tasks::{CountedTask, OtherTasks};
use pagewise_model::timeline::Timeline;
use pagewise_model::units::{Bytes, Nanos};
use seen::Seen;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// What to observe.
#[derive(Clone, Debug)]
pub enum Subject {
    /// A program that we start.
    Command(Launch),
    /// Running processes; the first one's tree goes into the timeline.
    Processes(Vec<i32>),
    /// Everything on this machine.
    System,
    /// Everything on this machine while a program runs that we start.
    SystemDuring(Launch),
}

/// What to observe and where to write it.
#[derive(Clone, Debug)]
pub struct ObserveOptions {
    /// The subject.
    pub subject: Subject,
    /// What to record.
    pub recorder: Options,
    /// Whether counters are read as well.
    pub counters: bool,
    /// Whether page sizes of a program are read while it runs.
    pub pages: bool,
    /// Whether the waits of a started program are counted, if permitted.
    pub delays: bool,
    /// The perf.data file; an existing one is replaced.
    pub output: PathBuf,
    /// Time between two points of the timeline.
    pub interval: Duration,
    /// Ends the observation, and a program that we started, after this time.
    pub duration: Option<Duration>,
    /// What stands in place of command lines and of the values of environment variables, if not they
    /// themselves (without passwords).
    pub hide: Option<Hide>,
}

/// What stands for a text in its place.
pub type Hide = fn(&str) -> String;

/// Samples of CPU time per second, which show the kernel's work. Each costs some microseconds, so
/// together a thousandth of the time.
const CPU_FREQUENCY: u64 = 299;

impl ObserveOptions {
    /// Everything that an explanation needs, and no more.
    #[must_use]
    pub fn explaining(subject: Subject, output: &Path) -> Self {
        Self {
            subject,
            recorder: Options {
                cpu: Some(CPU_FREQUENCY),
                cpu_dense_at_first: true,
                ..Options::default()
            },
            counters: false,
            pages: true,
            delays: true,
            output: output.to_path_buf(),
            interval: Duration::from_millis(100),
            duration: None,
            hide: None,
        }
    }
}

/// Result of an observation. The rest is in the file.
#[derive(Clone, Debug)]
pub struct Observation {
    /// The perf.data file.
    pub path: PathBuf,
    /// Its size.
    pub size: Bytes,
    /// How the program ended.
    pub ending: Ending,
    /// Its cost.
    pub cost: RunCost,
    /// Estimated cost of observing to the observed programs.
    pub own_cost: Nanos,
    /// Records by source.
    pub counts: Vec<EventCount>,
    /// What was lost.
    pub losses: Losses,
    /// What was requested but not available, each with its remedy.
    pub notes: Vec<String>,
    /// Whether everything that was recorded is in the file: not on a full disk.
    pub is_whole: bool,
}

/// Observes the subject until it ends, the time is over or the user stops it (Ctrl-C), and writes
/// the recording. Data gathered so far is always kept.
///
/// # Errors
/// If the program cannot be started, the process is gone or belongs to another user, or the file
/// cannot be written at all. Anything less is a note.
pub fn observe(options: &ObserveOptions) -> anyhow::Result<Observation> {
    observe_while(options, &mut || true)
}

/// The same, but a subject that is already running is observed only while `goes_on` returns true.
/// It is first called when observing has started.
///
/// # Errors
/// As [`observe`].
pub fn observe_while(
    options: &ObserveOptions,
    goes_on: &mut dyn FnMut() -> bool,
) -> anyhow::Result<Observation> {
    interrupt::install()?;
    match &options.subject {
        Subject::Command(launch) | Subject::SystemDuring(launch) => {
            launched::observe(options, launch)
        }
        Subject::Processes(pids) => {
            let first = pids.first().copied().unwrap_or_default();
            let host = host::snapshot_with(first);
            running::observe(options, Target::Pids(pids.clone()), first, host, goes_on)
        }
        Subject::System => running::observe(options, Target::System, 1, host::snapshot(), goes_on),
    }
}

impl Subject {
    fn is_whole_machine(&self) -> bool {
        matches!(self, Self::System | Self::SystemDuring(_))
    }
}

/// Starts to count along with the recording, if requested and possible.
fn counters(options: &ObserveOptions, target: &Target) -> Option<Counters> {
    match options.counters {
        true => Counters::start(target, options.interval),
        false => None,
    }
}

/// Looks at the memory of a tree beside the recording.
struct MemoryWatch {
    peak: Option<PeakWatch>,
    pages: Option<PagesWatch>,
}

impl MemoryWatch {
    /// Begins with process `pid`, if its pages are of interest.
    fn begin(options: &ObserveOptions, pid: i32, start: Start) -> Self {
        let is_wanted = options.pages && !options.subject.is_whole_machine();
        let start_peak = || PeakWatch::start(pid, start, Pace::BESIDE);
        Self {
            peak: is_wanted.then(start_peak).flatten(),
            pages: is_wanted.then(|| PagesWatch::start(pid)).flatten(),
        }
    }

    /// Where the memory was at the peak, and which pages were there.
    fn end(self) -> (Option<Memory>, Vec<PresentPages>) {
        (
            self.peak.and_then(PeakWatch::judged),
            self.pages.map(PagesWatch::stop).unwrap_or_default(),
        )
    }
}

/// A program's identity, its end, and what could be seen only while it lived.
#[derive(Default)]
struct Outcome {
    pid: i32,
    command: Vec<String>,
    ending: Ending,
    cost: RunCost,
    timeline: Timeline,
    counters: Vec<Counter>,
    notes: Vec<String>,
    seen: Seen,
    /// How much the CPUs were shared.
    contention: Option<Contention>,
    /// What kernel threads that manage memory used.
    kernel_threads: Vec<KernelThread>,
    /// What threads were seen to do.
    looks: Option<Looks>,
    /// How long its tasks waited.
    delays: Option<Delays>,
    /// Its ended threads, one by one, and others added up.
    tasks: Vec<CountedTask>,
    other_tasks: Option<OtherTasks>,
    /// Where its memory was at the peak, and which pages were there.
    memory: Option<Memory>,
    present: Vec<PresentPages>,
}

/// Start of an observation.
struct Beginning {
    clock: Nanos,
    unix_ms: u64,
    instant: Instant,
    /// Cost of all processes up to then.
    machine: Option<RunCost>,
    /// How long tasks had waited for CPUs up to then.
    contention: ContentionWatch,
    /// What kernel threads had used up to then.
    kernel_threads: KernelThreadWatch,
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
            kernel_threads: KernelThreadWatch::begin(),
        }
    }

    /// Cost of all processes since then; `None` if the kernel does not report it.
    fn cost_of_machine(&self) -> Option<RunCost> {
        let now = ProcRoot::default().machine_cost().ok().flatten()?;
        let wall = Nanos::from(self.instant.elapsed());
        Some(now.since(&self.machine?, wall))
    }
}
