//! Any program inside a memory budget: paged in user space by the preloaded pager, or by the kernel.

mod choice;
mod figures;
mod fill;
mod kernel;
mod outside;
mod preflight;
mod requests;
mod samples;
mod settings;
mod shared;
mod takeover;
mod timeline;
mod together;
mod watch;

const PAGE_BYTES: u64 = pagewise_wire::PAGE_BYTES;

pub use figures::Figures;
pub use fill::{Filled, fill};
pub use settings::{Budgeted, budgeted};

use crate::experiment::spawn_in;
use crate::explain::OwnLibrary;
use anyhow::{Context, Result, bail};
use pagewise_linux::proc::runtime::{self, Libc};
use pagewise_linux::process::{Finished, Launch, interrupt, release_own_code};
use pagewise_model::advice::Settings as LaunchSettings;
use pagewise_model::answer::{Document, Subject};
use pagewise_model::paged_run::{KernelPaging, PagedRun};
use pagewise_model::paging::PagingTimeline;
use pagewise_model::units::Bytes;
use pagewise_wire::settings::{Choice, WhenFull};
use std::ffi::OsString;
use std::fs::File;
use std::path::PathBuf;
use takeover::Standby;
use timeline::Timeline;
use together::Together;
use watch::Course;

/// Smallest budget: below it the program's own libraries leave no room.
pub(crate) const LEAST_MEMORY: Bytes = Bytes(16 << 20);

/// What brings pages in and out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// The preloaded pager.
    Ours,
    /// The kernel, with a memory cgroup and a swap file of the run's own.
    Kernel,
    /// The pager, until the kernel turns out to be better; the kernel for a program into which the pager
    /// cannot be loaded.
    Auto,
}

/// Bytes that may be resident.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Budget {
    /// For all processes together.
    Together(Bytes),
    /// For each process, however many there are.
    Each(Bytes),
}

impl Budget {
    /// The number of bytes.
    #[must_use]
    pub fn size(self) -> Bytes {
        match self {
            Self::Together(size) | Self::Each(size) => size,
        }
    }
}

/// What to run, and how.
#[derive(Clone, Debug)]
pub struct Request {
    /// The program.
    pub launch: Launch,
    /// What brings pages in and out; unless it is given, the best that can.
    pub engine: Option<Engine>,
    /// The budget for resident memory.
    pub budget: Budget,
    /// Name of the policy that selects pages to evict.
    pub policy: String,
    /// Folder, file or block device for pages that do not fit.
    pub store: PathBuf,
    /// Bytes that the store may take on disk; by default a multiple of the budget.
    pub store_size: Option<Bytes>,
    /// Where evicted pages are kept: `disk`, `compressed`, `tiered` or `auto`.
    pub store_kind: String,
    /// Largest share of the budget for compressed pages, in percent, unless the default for the kind.
    pub compressed: Option<u8>,
    /// Whether pages on disk are encrypted.
    pub encrypt: bool,
    /// What to do when the store is full.
    pub when_full: WhenFull,
    /// Whether programs that would run outside the budget are refused.
    pub strict: bool,
    /// How faults reach the pager.
    pub delivery: Choice,
    /// Smallest mapping to manage.
    pub min_region: Option<Bytes>,
    /// Smallest mapping of a file to manage; `None` for none.
    pub files: Option<Bytes>,
    /// Pages per second whose next use is watched.
    pub heat: u32,
    /// File for recorded page events.
    pub record: Option<PathBuf>,
    /// The pager's library for a C library.
    pub library: OwnLibrary,
    /// Options that were given and that only the pager has.
    pub options_of_pager: Vec<&'static str>,
}

/// Result of a run.
#[derive(Clone, Debug)]
pub struct Paged {
    /// Its figures.
    pub run: Document<PagedRun>,
    /// Its timeline, if requested.
    pub timeline: Option<Document<PagingTimeline>>,
    /// What was outside the budget, in words.
    pub outside: Vec<String>,
    /// What else the user should know.
    pub notes: Vec<String>,
}

/// A run that is ready to start: everything that could prevent it has been checked.
#[derive(Debug)]
pub struct Ready(Way);

#[derive(Debug)]
enum Way {
    Ours(Box<Preloaded>),
    Kernel(Box<kernel::Ready>),
}

/// A run with the preloaded pager.
#[derive(Debug)]
struct Preloaded {
    request: Request,
    shared: File,
    together: Option<Together>,
    settings: LaunchSettings,
    /// The kernel, where it may take over.
    standby: Option<Standby>,
    /// Kept open for the whole run: the program's processes open it through our descriptor.
    _record: Option<File>,
}

/// Why no program can be paged by a build for another machine than x86-64.
pub const ELSEWHERE: &str =
    "user-level paging runs only on x86-64 Linux; this build is for another machine";

/// Why the program of a command cannot be paged, as far as its file shows.
pub(crate) fn obstacle_to(command: &[OsString]) -> Option<String> {
    if !cfg!(target_arch = "x86_64") {
        return Some(ELSEWHERE.to_owned());
    }
    // A program that does not exist fails when it is started.
    let program = Launch::from_command(command)?.path().ok()?;
    runtime::obstacle(&program).map(|obstacle| preflight::refusal(&program, obstacle))
}

/// Checks everything that can be checked before the program runs.
///
/// # Errors
/// If the program cannot be run under a budget, with the reason and a remedy.
pub fn prepare(request: Request, say: &dyn Fn(&str)) -> Result<Ready> {
    let budget = request.budget.size();
    if budget < LEAST_MEMORY {
        bail!(
            "--memory {} is too small: it must be at least 16M",
            budget.0
        );
    }
    match request.engine {
        Some(Engine::Kernel) => by_kernel(request)
            .context("--engine kernel cannot run here (--engine ours needs no privilege)"),
        None | Some(Engine::Auto) => by_what_can(request, say),
        Some(Engine::Ours) => by_pager(request, say),
    }
}

/// By the kernel if the pager cannot be loaded into the program.
fn by_what_can(request: Request, say: &dyn Fn(&str)) -> Result<Ready> {
    let program = request.launch.path()?;
    let Some(obstacle) = runtime::obstacle(&program) else {
        return by_pager(request, say);
    };
    if !rustix::process::geteuid().is_root() {
        bail!("{}", preflight::refusal(&program, obstacle));
    }
    let why = preflight::why(&program, obstacle);
    let ready =
        by_kernel(request).with_context(|| format!("{why}, and Linux cannot page it here"))?;
    say(&format!("{why}: the kernel pages it (--engine kernel)"));
    Ok(ready)
}

fn by_kernel(request: Request) -> Result<Ready> {
    Ok(Ready(Way::Kernel(Box::new(kernel::prepare(request)?))))
}

fn by_pager(request: Request, say: &dyn Fn(&str)) -> Result<Ready> {
    Ok(Ready(Way::Ours(Box::new(preload(request, say)?))))
}

fn preload(request: Request, say: &dyn Fn(&str)) -> Result<Preloaded> {
    if !cfg!(target_arch = "x86_64") {
        bail!("{ELSEWHERE}");
    }
    preflight::check_file_limit()?;
    let program = request.launch.path()?;
    if let Some(obstacle) = runtime::obstacle(&program) {
        bail!("{}", preflight::refusal(&program, obstacle));
    }
    // A file that is not a program fails when it is started.
    let library = (request.library)(runtime::libc(&program).unwrap_or(Libc::Glibc))?;
    let shared = shared::memory()?;
    let together = match request.budget {
        Budget::Together(budget) => Some(Together::new(budget.0, &shared)?),
        Budget::Each(_) => None,
    };
    let record = request.record.as_deref().map(crate::destination::begin);
    let record = record.transpose()?;
    let settings = settings::for_run(&request, &library, &shared, record.as_ref(), say)?;
    let standby = match request.engine {
        None => Standby::prepare(&request).ok(),
        Some(Engine::Auto) => Standby::prepare(&request)
            .inspect_err(|error| {
                say(&format!(
                    "--engine auto: the pager pages the whole run, since the kernel cannot take over: {error:#}"
                ));
            })
            .ok(),
        Some(Engine::Ours | Engine::Kernel) => None,
    };
    interrupt::install()?;
    Ok(Preloaded {
        standby,
        request,
        shared,
        together,
        settings,
        _record: record,
    })
}

impl Ready {
    /// Runs the program to its end. `say` receives urgent messages, `show` the pager's figures each second;
    /// with `has_course`, readings of them are kept.
    ///
    /// # Errors
    /// If it cannot be started or waited for.
    pub fn run(
        self,
        has_course: bool,
        say: &dyn Fn(&str),
        show: Option<&dyn Fn(&Figures)>,
    ) -> Result<Paged> {
        match self.0 {
            Way::Ours(ready) => ready.run(has_course, say, show),
            Way::Kernel(ready) => ready.run(say),
        }
    }
}

impl Preloaded {
    fn run(
        mut self,
        has_course: bool,
        say: &dyn Fn(&str),
        show: Option<&dyn Fn(&Figures)>,
    ) -> Result<Paged> {
        let request = &self.request;
        let mut launch = request.launch.clone();
        launch.settings = self.settings;
        // Where memory is short, the kernel ends the process that has most of it: not this one, which waits.
        release_own_code();
        let standby = self.standby.take();
        let running = match &standby {
            Some(standby) => spawn_in(&launch, Some(standby.room()))?,
            None => launch.spawn()?,
        };
        let mut course = Course::new(request, &self.shared, self.together.take(), has_course);
        course.standby = standby;
        let finished = course.watch(running, say, show)?;
        let Course {
            timeline,
            sizes,
            together,
            standby,
            ..
        } = course;
        let figures = Figures::read(&self.shared)?;
        let (kernel, left_over) = match standby {
            Some(standby) => standby.finish()?,
            None => (None, None),
        };
        let run = document(request, &figures, &finished, together.as_ref(), kernel);
        // Memory filled for `--fill` is no surprise.
        let largest = match figures.held.is_empty() {
            false => 0,
            true => run.evidence.cost.max_rss.0,
        };
        let passed = together
            .as_ref()
            .and_then(Together::passed)
            .or_else(|| outside::passed(&sizes, request.budget.size().0, largest));
        let outside = passed.into_iter().chain(outside::unmanaged(&figures));
        Ok(Paged {
            timeline: timeline.map(|timeline: Timeline| timeline.finish(&run, &figures)),
            run,
            outside: outside.collect(),
            notes: outside::changed_files(&figures)
                .into_iter()
                .chain(left_over)
                .collect(),
        })
    }
}

/// The run as data.
fn document(
    request: &Request,
    figures: &Figures,
    finished: &Finished,
    together: Option<&Together>,
    kernel: Option<KernelPaging>,
) -> Document<PagedRun> {
    let charged = kernel.as_ref().and_then(|kernel| kernel.peak_bytes);
    let run = PagedRun {
        ending: finished.ending,
        cost: finished.cost,
        memory_bytes: request.budget.size().0,
        memory_is_each: together.is_none(),
        // Looks may miss a short peak, which the kernel knows of each process.
        together_peak_bytes: together
            .map(|together| together.peak_bytes().max(finished.cost.max_rss.0))
            .max(charged)
            .filter(|peak| *peak > 0),
        policy: request.policy.clone(),
        store: request.store_kind.clone(),
        processes_total: figures.processes_total,
        processes: figures.processes.clone(),
        others: figures.others.clone(),
        refault_distances: figures.refault_distances.clone(),
        kernel,
    };
    Document::new(run).about(Subject::of_command(request.launch.words()))
}
