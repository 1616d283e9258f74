//! `pagewise huge balance`: build and split huge pages of a running program until its work costs
//! least, from outside, on a stock kernel.

mod budget;
mod flips;
mod history;
mod outcome;
mod population;
mod session;
mod signal;
mod system;
mod undo;
mod verdict;

use crate::destination;
use crate::duration::parse as duration;
use crate::terminal;
use anyhow::{Context, Result, bail};
use budget::Limits;
use pagewise_analyse::tune::parse_size;
use pagewise_linux::hugepages::actuator::Change;
use pagewise_linux::hugepages::map::PageSizes;
use pagewise_linux::hugepages::progress::Progress;
use pagewise_linux::hugepages::system::Wish;
use pagewise_linux::hugepages::trial::{self, Found, Trial};
use pagewise_linux::proc::ProcRoot;
use pagewise_linux::process::{Launch, Output, Running, interrupt};
use pagewise_model::advice::Setting;
use pagewise_model::balance::HugeVerdict;
use pagewise_model::run::Ending;
use pagewise_model::units::Bytes;
use pagewise_report::text::huge_balance;
use pagewise_simulate::balance::{Controller, Fixed, MinCost, MinCostSettings};
use population::{Population, Selection};
use session::{Plan, Session};
use std::ffi::OsString;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
use system::Written;

const EXAMPLES: &str = "\
Examples:
  pagewise huge balance -p 4242                        look: would they help?
  pagewise huge balance -p 4242 --apply --max-rss 4G   act, within this memory
  pagewise huge balance -- ./server                    start a program and act
  pagewise huge balance --prove --progress symbol:requests -- ./server
  pagewise huge balance --undo                         take everything back";

/// Build and split huge pages of a running program until its work costs least
///
/// Watches what a unit of work costs in CPU time while it tries numbers of huge pages, and keeps
/// the best. Work is counted by what --progress names, else by instructions where the machine has
/// hardware counters, else by read and write calls. Needs no change of the program and no global
/// switch; every change is verified in the page map and noted in a journal before it is made.
/// A process that was not started here is only looked at, unless --apply is given.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
#[command(group = clap::ArgGroup::new("subject").args(["pid", "cgroup", "command"]).multiple(false))]
pub struct Args {
    /// A running process; may be given again
    #[arg(short, long, value_name = "PID", value_parser = clap::value_parser!(i32).range(1..))]
    pid: Vec<i32>,

    /// All processes of a cgroup: its folder, or its name below /sys/fs/cgroup
    #[arg(long, value_name = "GROUP")]
    cgroup: Option<PathBuf>,

    /// The program to run and its arguments
    #[arg(last = true, value_name = "CMD")]
    command: Vec<OsString>,

    /// Act on processes that were not started here
    #[arg(long)]
    apply: bool,

    /// Only look, even at a program that is started here
    #[arg(long, conflicts_with = "apply")]
    dry_run: bool,

    /// Give page sizes back as they were: of -p PID, or of every process with a journal
    #[arg(long, conflicts_with_all = ["apply", "dry_run", "command", "cgroup", "prove", "restore"])]
    undo: bool,

    /// What counts as work: file:PATH, symbol:NAME (a 64-bit variable), memory:0xADDRESS, calls
    #[arg(long, value_name = "COUNTER")]
    progress: Option<Progress>,

    /// Never let resident memory grow beyond this by building huge pages, such as 4G
    #[arg(long, value_name = "SIZE", value_parser = size)]
    max_rss: Option<Bytes>,

    /// Most changes of a page's size in a second
    #[arg(long, value_name = "N", default_value = "1000", value_parser = positive)]
    max_actions: f64,

    /// Most CPU time of the controller, as a share of one CPU over 5 minutes
    #[arg(long, value_name = "PERCENT", default_value = "1%", value_parser = share)]
    max_cpu: f64,

    /// How the number of huge pages is chosen
    #[arg(long, value_enum, default_value = "min-cost")]
    controller: Choice,

    /// Time between two looks
    #[arg(long, value_name = "TIME", default_value = "100ms", value_parser = duration)]
    interval: Duration,

    /// Stop after this time; a program that was started here goes on [default: 5s for a dry run]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    duration: Option<Duration>,

    /// At the end compare base and huge pages in turn, several times, in the running program
    #[arg(long, conflicts_with = "dry_run")]
    prove: bool,

    /// Give page sizes back at the end
    #[arg(long)]
    restore: bool,

    /// Start the program so that the kernel gives huge pages only where somebody asks (Linux 6.18)
    #[arg(long, requires = "command")]
    only_ours: bool,

    /// Also set which page sizes faults give, for every program on the machine, while this works:
    /// 64K=always (always, madvise, inherit, never; Linux 6.8). Given back at the end
    #[arg(long, value_name = "SIZE=WHO", conflicts_with_all = ["undo", "dry_run"])]
    system: Vec<Wish>,

    /// Also write the report as one HTML file
    #[arg(short, long, value_name = "FILE", conflicts_with = "undo")]
    output: Option<PathBuf>,

    /// Print JSON (schema: pagewise help schema.json); the program's output goes to stderr
    #[arg(long)]
    json: bool,

    /// Print the answer only, no progress
    #[arg(short, long)]
    quiet: bool,
}

/// Controllers by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Choice {
    /// Try numbers and keep the one at which work costs least
    MinCost,
    /// As many as fit
    Always,
    /// None
    Never,
}

/// Runs the controller, or takes back what one did.
///
/// # Errors
/// When the machine does not allow it or the subject is not there.
pub fn run(args: &Args) -> Result<ExitCode> {
    if args.undo {
        return undo::run(&args.pid, args.json);
    }
    let sizes = PageSizes::of(Path::new("/sys"))?;
    let acts = args.acts();
    let trial = acts.then(|| works_here(args, sizes)).transpose()?;
    interrupt::install()?;
    if !acts && !args.system.is_empty() {
        bail!("--system changes the machine's settings: a dry run does not; give --apply");
    }
    let written = Written::write(&args.system)?;
    let child = args.start()?;
    let selection = args.selection(child.as_ref())?;
    let mut population = Population::new(selection, sizes, args.max_rss);
    population.refresh()?;
    if population.members.is_empty() {
        bail!("{}", nobody(&population));
    }
    let plan = Plan {
        acts,
        trial,
        progress: args.progress.clone(),
        limits: Limits {
            actions_per_second: args.max_actions,
            cpu_share: args.max_cpu,
        },
        interval: args.interval,
        duration: args.duration.or((!acts).then_some(DRY_RUN)),
        max_rss: args.max_rss,
        prove: args.prove,
        restore: args.restore,
        quiet: args.quiet,
    };
    let controller = args.controller(&population, &plan);
    let mut session = Session::new(plan, population, controller);
    let mut child = child;
    let ended = session.watch(child.as_mut())?;
    let mut found = session.conclude()?;
    found.notes.extend(written.give_back()?);
    found.command = args
        .command
        .iter()
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    deliver(args, &found)?;
    finish(child, ended)
}

/// What the best signal here tells of a running process, in a few seconds and without a change.
///
/// # Errors
/// When it is gone, or belongs to somebody else.
pub fn look(pid: i32, duration: Duration) -> Result<HugeVerdict> {
    let sizes = PageSizes::of(Path::new("/sys"))?;
    let mut population = Population::new(Selection::Processes(vec![pid]), sizes, None);
    population.refresh()?;
    if population.members.is_empty() {
        bail!("{}", nobody(&population));
    }
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
        quiet: true,
    };
    let mut session = Session::new(plan, population, Box::new(Fixed::never()));
    session.watch(None)?;
    Ok(session.conclude()?.verdict)
}

/// How long a dry run looks where nothing else is said.
const DRY_RUN: Duration = Duration::from_secs(5);

impl Args {
    fn acts(&self) -> bool {
        self.apply || !(self.dry_run || self.command.is_empty())
    }

    fn start(&self) -> Result<Option<Running>> {
        let Some(mut launch) = Launch::of(&self.command) else {
            return Ok(None);
        };
        if self.json {
            launch.output = Output::Stderr;
        }
        if self.only_ours {
            launch.settings.0.push(Setting::Thp {
                mode: "advised".into(),
            });
        }
        let started = launch.spawn();
        let started = match self.only_ours {
            true => started.context(
                "--only-ours needs Linux 6.18 (PR_THP_DISABLE_EXCEPT_ADVISED); without it the \
                 machine's settings hold",
            )?,
            false => started?,
        };
        Ok(Some(started))
    }

    fn selection(&self, child: Option<&Running>) -> Result<Selection> {
        if let Some(child) = child {
            return Ok(Selection::Tree(child.pid()));
        }
        if let Some(group) = &self.cgroup {
            return Ok(Selection::Cgroup(cgroup_folder(group)?));
        }
        match self.pid.as_slice() {
            [] => bail!("say whom to balance: -p PID, --cgroup GROUP, or a command after --"),
            pids => Ok(Selection::Processes(pids.to_vec())),
        }
    }

    fn controller(&self, population: &Population, plan: &Plan) -> Box<dyn Controller> {
        let slots = population.summary();
        match self.controller {
            Choice::MinCost => Box::new(MinCost::new(settings(plan, slots.huge + slots.small))),
            Choice::Always => Box::new(Fixed::always()),
            Choice::Never => Box::new(Fixed::never()),
        }
    }
}

/// The search's constants for a live process: trials of half a second, long enough that a window
/// holds several time slices, short enough that a search ends within ten seconds.
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
    #[allow(clippy::cast_precision_loss, reason = "slots are far below 2^52")]
    let all_of_them = slots.max(1024) as f64 / plan.limits.actions_per_second;
    MinCostSettings {
        gate: intervals(0.3),
        window: intervals(0.4),
        settle: 1,
        patience: intervals(all_of_them * 2.0 + 1.0),
        ..MinCostSettings::default()
    }
}

/// Tries on a child of ours what will be done to others.
fn works_here(args: &Args, sizes: PageSizes) -> Result<Trial> {
    let trial = trial::run(&ProcRoot::default(), sizes)?;
    let say = |change, found| {
        if let Found::Fails(why) = found
            && !args.quiet
        {
            // Progress that cannot be shown is no reason to stop.
            let _ = writeln!(
                io::stderr(),
                "pagewise: this kernel does not {change} huge pages of another process ({}): \
                 that direction is left out",
                why.label()
            );
        }
    };
    say("build", trial.collapse);
    say("split", trial.split);
    if !trial.allows(Change::Collapse) && !trial.allows(Change::Split) {
        bail!(
            "page sizes of other processes cannot be changed here: process_madvise(2) with \
             MADV_COLLAPSE needs Linux 6.1, CAP_SYS_NICE and, where it is another user's process, \
             CAP_SYS_PTRACE; run as root"
        );
    }
    Ok(trial)
}

/// A folder below `/sys/fs/cgroup`, given whole or by name.
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

fn nobody(population: &Population) -> String {
    match population.unreachable.iter().next() {
        Some((_, why)) => why.clone(),
        None => "there is no such process, or it has ended".to_owned(),
    }
}

fn deliver(args: &Args, found: &pagewise_model::balance::Balance) -> Result<()> {
    if let Some(path) = &args.output {
        let page = pagewise_report::html::render_huge_balance(found, &huge_balance::plain(found))?;
        destination::write(path, page.as_bytes())?;
        if !args.quiet {
            eprintln!("pagewise: the report is in {}", path.display());
        }
    }
    let mut out = terminal::output(args.json);
    if args.json {
        out.write_all(pagewise_report::json::to_string(found)?.as_bytes())?;
    } else {
        write!(
            out,
            "{}",
            huge_balance::render(found, terminal::width(), terminal::style())
        )?;
    }
    out.flush()?;
    Ok(())
}

/// The program's status is ours. One that still runs (after --duration or Ctrl-C) is left alone.
fn finish(child: Option<Running>, ended: Option<Ending>) -> Result<ExitCode> {
    let ending = match (child, ended) {
        (_, Some(ending)) => ending,
        (Some(mut child), None) => match child.try_wait()? {
            Some(finished) => finished.ending,
            None => return Ok(ExitCode::SUCCESS),
        },
        (None, None) => return Ok(ExitCode::SUCCESS),
    };
    Ok(match ending {
        Ending::Exited(status) => ExitCode::from(u8::try_from(status).unwrap_or(1)),
        Ending::Killed(signal) => ExitCode::from(u8::try_from(128 + signal).unwrap_or(1)),
        Ending::Running => ExitCode::SUCCESS,
    })
}

fn size(text: &str) -> Result<Bytes, String> {
    parse_size(text).ok_or_else(|| format!("'{text}' is no size; write it like 512M or 2G"))
}

fn positive(text: &str) -> Result<f64, String> {
    let digits = text.trim_end_matches("/s");
    match digits.parse::<f64>() {
        Ok(value) if value > 0.0 && value.is_finite() => Ok(value),
        _ => Err(format!(
            "'{text}' is no number of changes; write it like 500"
        )),
    }
}

fn share(text: &str) -> Result<f64, String> {
    match text.trim_end_matches('%').trim().parse::<f64>() {
        Ok(value) if value > 0.0 && value <= 100.0 => Ok(value / 100.0),
        _ => Err(format!(
            "'{text}' is no percentage up to 100; write it like 1%"
        )),
    }
}
