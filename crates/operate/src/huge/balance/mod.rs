//! Builds and splits huge pages of running programs until their work costs least, from outside the
//! program and on a stock kernel.

mod budget;
mod history;
mod member;
mod outcome;
mod population;
mod selection;
mod session;
mod signal;
mod system;
mod undo;

pub use budget::Limits;
pub use undo::undo;

use anyhow::{Context, Result, bail};
use pagewise_linux::hugepages::actuator::Change;
use pagewise_linux::hugepages::map::PageSizes;
use pagewise_linux::hugepages::progress::Progress;
use pagewise_linux::hugepages::system::Wish;
use pagewise_linux::hugepages::trial::{self, Found, Trial};
use pagewise_linux::proc::ProcRoot;
use pagewise_linux::process::{Launch, Running, interrupt};
use pagewise_model::advice::Setting;
use pagewise_model::answer::{Document, Subject as About};
use pagewise_model::balance::Balance;
use pagewise_model::run::Ending;
use pagewise_model::units::Bytes;
use pagewise_simulate::balance::{Controller, Fixed, MinCost, MinCostSettings};
use population::Population;
use selection::Selection;
use session::{Plan, Session};
use std::path::{Path, PathBuf};
use std::time::Duration;
use system::Written;

/// Processes whose page sizes are balanced.
#[derive(Clone, Debug)]
pub enum Subject {
    /// Running processes.
    Processes(Vec<i32>),
    /// All processes of a cgroup: its folder, or its name below `/sys/fs/cgroup`.
    Cgroup(PathBuf),
    /// A program to start, and all processes that it starts.
    Program {
        /// What to start.
        launch: Box<Launch>,
        /// Whether the kernel may use huge pages in it only on request.
        only_ours: bool,
    },
}

/// How the number of huge pages is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// The number at which work costs least.
    MinCost,
    /// As many as fit.
    Always,
    /// None.
    Never,
}

/// What to do, for which processes, and within which limits.
#[derive(Clone, Debug)]
pub struct Request {
    /// The processes.
    pub subject: Subject,
    /// Whether page sizes are changed at all.
    pub acts: bool,
    /// How the number of huge pages is chosen.
    pub choice: Choice,
    /// What counts as work; by default the best that the machine can count.
    pub progress: Option<Progress>,
    /// Limits of the controller.
    pub limits: Limits,
    /// Resident memory beyond which no huge page is built.
    pub max_rss: Option<Bytes>,
    /// Time between two looks.
    pub interval: Duration,
    /// Duration; without one, until the program ends or the user stops it.
    pub duration: Option<Duration>,
    /// Whether base and huge pages are compared in alternation at the end.
    pub prove: bool,
    /// Whether page sizes are restored at the end.
    pub restore: bool,
    /// Settings of the machine while the controller works.
    pub system: Vec<Wish>,
}

/// Result of balancing.
#[derive(Clone, Debug)]
pub struct Balanced {
    /// The result.
    pub found: Document<Balance>,
    /// How the program ended; `None` if it still runs, or was not started here.
    pub ending: Option<Ending>,
}

/// Duration of a dry run unless one is given.
const DRY_RUN: Duration = Duration::from_secs(5);

/// Balances until the subject ends, the time is over or a signal comes; `say` receives messages.
///
/// # Errors
/// If the machine does not allow it or the subject does not exist.
pub fn balance(request: Request, say: &dyn Fn(&str)) -> Result<Balanced> {
    let sizes = PageSizes::read(Path::new("/sys"))?;
    let trial = request.acts.then(|| works_here(sizes, say)).transpose()?;
    interrupt::install()?;
    if !request.acts && !request.system.is_empty() {
        bail!("--system changes the machine's settings, which a dry run does not do: add --apply");
    }
    let written = Written::write(&request.system)?;
    let about = request.subject.about();
    let (selection, mut child) = request.subject.start()?;
    let population = Population::find(selection, sizes, request.max_rss)?;
    let plan = Plan {
        acts: request.acts,
        trial,
        progress: request.progress,
        limits: request.limits,
        interval: request.interval,
        duration: request.duration.or((!request.acts).then_some(DRY_RUN)),
        max_rss: request.max_rss,
        prove: request.prove,
        restore: request.restore,
    };
    let controller = request.choice.controller(&population, &plan);
    let mut session = Session::new(plan, population, controller, say);
    let ended = session.watch(child.as_mut())?;
    let mut found = session.conclude()?;
    found.notes.extend(written.give_back()?);
    found.subject = about;
    // A program that still runs (after its time, or Ctrl-C) is left alone.
    let ending = match (ended, child) {
        (None, Some(mut child)) => child.try_wait()?.map(|finished| finished.ending),
        (ended, _) => ended,
    };
    Ok(Balanced { found, ending })
}

/// What the best signal on this machine shows of a running process, in a few seconds and without
/// changes.
fn look(pid: i32, duration: Duration) -> Result<String> {
    let sizes = PageSizes::read(Path::new("/sys"))?;
    let population = Population::find(Selection::Processes(vec![pid]), sizes, None)?;
    let plan = Plan {
        acts: false,
        trial: None,
        progress: None,
        limits: Limits {
            actions_per_second: 1.0,
            cpu_share: 0.01,
        },
        interval: Duration::from_millis(100),
        duration: Some(duration),
        max_rss: None,
        prove: false,
        restore: false,
    };
    let mut session = Session::new(plan, population, Box::new(Fixed::never()), &|_| {});
    session.watch(None)?;
    Ok(session.conclude()?.verdict)
}

/// Whether huge pages would help a running process, in a sentence; `None` if it can't be examined.
#[must_use]
pub fn verdict(pid: i32, duration: Duration) -> Option<String> {
    look(pid, duration).ok()
}

impl Subject {
    /// The subject for the result, which lists the processes of a cgroup itself.
    fn about(&self) -> About {
        match self {
            Self::Processes(pids) => About::of_processes(pids.clone()),
            Self::Cgroup(_) => About::default(),
            Self::Program { launch, .. } => About::of_command(launch.words()),
        }
    }

    /// Starts the program, if there is one.
    fn start(self) -> Result<(Selection, Option<Running>)> {
        Ok(match self {
            Self::Processes(pids) => (Selection::Processes(pids), None),
            Self::Cgroup(group) => (Selection::Cgroup(cgroup_folder(&group)?), None),
            Self::Program { launch, only_ours } => {
                let child = start(*launch, only_ours)?;
                (Selection::Tree(child.pid()), Some(child))
            }
        })
    }
}

fn start(mut launch: Launch, only_ours: bool) -> Result<Running> {
    if !only_ours {
        return Ok(launch.spawn()?);
    }
    launch.settings.0.push(Setting::Thp {
        mode: "advised".into(),
    });
    launch.spawn().context(
        "--only-ours needs Linux 6.18 (PR_THP_DISABLE_EXCEPT_ADVISED); without it the machine's settings apply",
    )
}

impl Choice {
    fn controller(self, population: &Population, plan: &Plan) -> Box<dyn Controller> {
        let slots = population.summary();
        match self {
            Self::MinCost => Box::new(MinCost::new(settings(plan, slots.huge + slots.small))),
            Self::Always => Box::new(Fixed::always()),
            Self::Never => Box::new(Fixed::never()),
        }
    }
}

/// The search's constants for a live process: trials of half a second, long enough for a window to
/// cover several time slices, short enough for a search to end within ten seconds.
fn settings(plan: &Plan, slots: u64) -> MinCostSettings {
    let interval = plan.interval.as_secs_f64();
    let intervals = |seconds: f64| {
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a few seconds in intervals of milliseconds"
        )]
        let count = (seconds / interval).ceil().clamp(1.0, 1e6) as u32;
        count
    };
    let all_of_them = slots.max(1024) as f64 / plan.limits.actions_per_second;
    MinCostSettings {
        gate: intervals(0.3),
        window: intervals(0.4),
        settle: 1,
        patience: intervals(all_of_them * 2.0 + 1.0),
        ..MinCostSettings::default()
    }
}

/// Tries on a child process what will be done to others.
fn works_here(sizes: PageSizes, say: &dyn Fn(&str)) -> Result<Trial> {
    let trial = trial::run(&ProcRoot::default(), sizes)?;
    let tell = |change, found| {
        if let Found::Fails(why) = found {
            say(&format!(
                "this kernel cannot {change} huge pages of another process ({}): that direction is left out",
                why.label()
            ));
        }
    };
    tell("build", trial.collapse);
    tell("split", trial.split);
    if !trial.allows(Change::Collapse) && !trial.allows(Change::Split) {
        bail!(
            "page sizes of other processes cannot be changed here: process_madvise(2) with \
             MADV_COLLAPSE needs Linux 6.1, CAP_SYS_NICE and, where it is another user's process, \
             CAP_SYS_PTRACE; run as root"
        );
    }
    Ok(trial)
}

/// A folder below `/sys/fs/cgroup`, given by path or by name.
fn cgroup_folder(group: &Path) -> Result<PathBuf> {
    let mount = Path::new("/sys/fs/cgroup");
    let below = group.strip_prefix("/").unwrap_or(group);
    let candidates = [
        group.to_path_buf(),
        mount.join(below),
        mount.join("memory").join(below),
    ];
    candidates
        .into_iter()
        .find(|folder| folder.join("cgroup.procs").exists())
        .with_context(|| format!("there is no cgroup {}", group.display()))
}
