//! `pagewise run`: any program, inside a memory budget, paged in user space.

mod figures;
mod fill;
mod outside;
mod preflight;
mod requests;
mod samples;
mod shares;
mod simulate;
mod timeline;
mod together;

use crate::own_library;
use crate::terminal;
use anyhow::{Context, Result, anyhow, bail};
use clap::Args as ClapArgs;
use figures::Figures;
use outside::{Sizes, Told};
use pagewise_analyse::tune::parse_size;
use pagewise_linux::proc::runtime::{self, Libc};
use pagewise_linux::process::{Finished, Launch, Running, interrupt};
use pagewise_model::advice::{Setting, Settings as LaunchSettings};
use pagewise_model::document::Kind;
use pagewise_model::paged_run::{MIN_REGION, PAGED_RUN_VERSION, PagedProcess, PagedRun};
use pagewise_model::quantity::count;
use pagewise_model::run::Ending;
use pagewise_model::units::Bytes;
use pagewise_pager::settings::{Choice, Settings, VARIABLE, WhenFull};
use pagewise_report::text;
use pagewise_wire::snapshot;
use requests::Requests;
use std::ffi::{CString, OsString};
use std::fs::File;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
use timeline::Timeline;
use together::Together;

/// Examples for `--help`.
pub const EXAMPLES: &str = "\
Examples:
  pagewise run --memory 1G -- ./simulate            a gigabyte, the rest on disk
  pagewise run --memory 512M --stats -- sort big    and what paging did
  pagewise run --memory 512M -o sort.html -- sort big   a page about its course
  pagewise run --memory-each 200M -- make -j8       each process its own budget
  pagewise run --memory 2G --policy prefetch -- ./scan
  pagewise run --memory 1G --delivery sigbus -- ./compute
  pagewise run --memory 1G --json -o run.json -- redis-server
  pagewise run --memory 1G --record-faults run.faults -- ./solve
  pagewise run --memory 1G --policy replay:run.faults -- ./solve
  pagewise run --fill 4711 -- gcore 4711            a core of all its pages
  pagewise run --memory 2G --simulate run.faults --policy 2q,s3fifo,prefetch,csr";

/// Options of `pagewise run`.
#[derive(ClapArgs, Debug)]
pub struct Args {
    /// Memory that the program and all that it starts may keep resident together, such as 512M or 2G
    ///
    /// Pages that a process shares with its children count once. What cannot be managed is taken off
    /// first; shares of the rest move to the processes that read most back.
    #[arg(long, value_name = "SIZE", value_parser = size,
          required_unless_present_any = ["memory_each", "fill"], conflicts_with = "memory_each")]
    memory: Option<u64>,
    /// Memory that each process may keep resident, however many there are
    #[arg(long, value_name = "SIZE", value_parser = size)]
    memory_each: Option<u64>,
    /// Which pages leave, and which come early: prefetch (over 2q), 2q, fifo, clock,
    /// s3fifo, csr, replay:FILE, or ./mine.so
    #[arg(long, default_value = "prefetch", value_name = "NAME")]
    policy: String,
    /// Folder, file or block device for what does not fit
    ///
    /// In a folder the file has no name, and is gone with the last process that uses it.
    #[arg(long, default_value = "/var/tmp", value_name = "PATH")]
    store: PathBuf,
    /// Bytes that the store may take on disk [default: 8 times --memory, at least 4G]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    store_size: Option<u64>,
    /// Where evicted pages rest: disk, compressed (in memory), or tiered (compressed, then disk)
    #[arg(long, default_value = "disk", value_name = "KIND",
          value_parser = ["disk", "compressed", "tiered"])]
    store_kind: String,
    /// Share of --memory for compressed pages, in percent (compressed and tiered)
    #[arg(long, default_value_t = 30, value_name = "PERCENT",
          value_parser = clap::value_parser!(u8).range(1..=90))]
    compressed: u8,
    /// Encrypt what goes to disk, with a key that dies with the run
    #[arg(long)]
    encrypt: bool,
    /// What to do when the store is full: exceed (pass the budget, with a message), wait (until there is
    /// room), or end (the program, by SIGBUS). Nothing is lost by any of them
    #[arg(long, default_value = "exceed", value_name = "WHAT",
          value_parser = ["exceed", "wait", "end"])]
    when_full: String,
    /// Refuse what would run outside the budget
    ///
    /// Programs that cannot be managed are not started (EACCES), and processes that pass --memory by more
    /// than a tenth, one or all together, end the run; either ends with status 1 or more. Without it a line at the end
    /// tells of both.
    #[arg(long)]
    strict: bool,
    /// How faults reach the pager
    ///
    /// fd: handler threads; every system call works. sigbus: the faulting thread itself; faster,
    /// and it scales, for programs that compute: a system call on a missing page is served where
    /// libc's function is used, else it fails with EFAULT. auto: fd where the kernel allows it.
    #[arg(long, default_value = "auto", value_parser = ["auto", "fd", "sigbus"])]
    delivery: String,
    /// Smallest stretch of anonymous memory to manage
    ///
    /// [default: 64M, and less, down to 256K, while more than an eighth of --memory lies in smaller
    /// ones]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    min_region: Option<u64>,
    /// Show figures while the program runs (on a terminal) and a table at its end, on stderr
    #[arg(long)]
    stats: bool,
    /// Print figures at the end as JSON (schema: pagewise help schema.json)
    #[arg(long)]
    json: bool,
    /// Write a page about the run's course there; with --json, the JSON
    #[arg(short, long, value_name = "FILE", conflicts_with_all = ["simulate", "fill"])]
    output: Option<PathBuf>,
    /// Record page events for the replay policy and for simulation
    #[arg(long = "record-faults", value_name = "FILE")]
    record: Option<PathBuf>,
    /// Write the run's course there, for `pagewise report` (schema: pagewise help schema.json)
    ///
    /// Resident memory, the store, faults and transfers, a reading each 50 ms, less often in long
    /// runs. Taking them costs the program nothing but what --heat does.
    #[arg(long, value_name = "FILE", conflicts_with = "simulate")]
    timeline: Option<PathBuf>,
    /// Resident pages per second whose next use is watched, to tell hot ones from cold (at most 250)
    ///
    /// Each is moved out of the program's reach until it is touched, which costs that touch some
    /// microseconds. 0 watches none. [default: 40 with --stats, --timeline or a page, else 0]
    #[arg(long, value_name = "PAGES", value_parser = clap::value_parser!(u32).range(0..=250))]
    heat: Option<u32>,
    /// Run policies (--policy 2q,s3fifo,csr) on a recorded trace instead of a program
    ///
    /// Prints what each would have waited for, read and written with --memory, beside Belady's MIN,
    /// below which no policy can read. Nothing is run, and nothing is written.
    #[arg(long, value_name = "TRACE", conflicts_with_all = ["command", "record"])]
    simulate: Option<PathBuf>,
    /// Bring all pages of a process of a run into memory while CMD runs, or until Ctrl-C
    ///
    /// For debuggers and gcore, which cannot read pages that are away. Its budget is lifted meanwhile; the
    /// program runs on until a debugger stops it.
    #[arg(long, value_name = "PID", conflicts_with_all = ["memory", "memory_each", "simulate"])]
    fill: Option<u32>,
    /// The program and its arguments
    #[arg(last = true, required_unless_present_any = ["simulate", "fill"], value_name = "CMD")]
    command: Vec<OsString>,
}

fn size(text: &str) -> Result<u64, String> {
    match parse_size(text) {
        Some(bytes) if bytes.0 > 0 => Ok(bytes.0),
        _ => Err(format!("'{text}' is no size; examples: 512M, 2G")),
    }
}

/// Smallest budget: below it a program's own libraries leave no room.
const LEAST_MEMORY: u64 = 16 << 20;

/// Runs the program and ends as it ended.
///
/// # Errors
/// When the program cannot be run under a budget, with the reason and what to do.
pub fn run(args: &Args) -> Result<ExitCode> {
    if let Some(trace) = &args.simulate {
        simulate::simulate(trace, &args.policy, args.budget(), args.json)?;
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(pid) = args.fill {
        return fill::fill(pid, &args.command);
    }
    if args.budget() < LEAST_MEMORY {
        bail!("--memory {} is too small: at least 16M", args.budget());
    }
    let mut launch =
        Launch::of(&args.command).ok_or_else(|| anyhow!("there is no program to run"))?;
    preflight::check_file_limit()?;
    let program = match launch.path() {
        Ok(program) => program,
        Err(error) => return crate::doctor::failed_to_start(error.into()),
    };
    if let Some(obstacle) = runtime::obstacle(&program) {
        bail!("{}", preflight::refusal(&program, obstacle));
    }
    // What is no program at all fails when it is started.
    let library = own_library::installed(runtime::libc(&program).unwrap_or(Libc::Glibc))?;
    let shared = shared_memory()?;
    let together = match args.memory {
        Some(budget) => Some(Together::new(budget, &shared)?),
        None => None,
    };
    let record = args.record.as_deref().map(recording).transpose()?;
    launch.settings = settings(args, &library, &shared, record.as_ref())?;
    interrupt::install()?;
    // Made before the program runs, so that a wrong path costs no run.
    let output = args.timeline.as_deref().map(recording).transpose()?;
    let named = args.output.as_deref().map(recording).transpose()?;
    let (document, page) = if args.json {
        (named, None)
    } else {
        (None, named)
    };
    let running = match launch.spawn() {
        Ok(running) => running,
        Err(error) => return crate::doctor::failed_to_start(error.into()),
    };
    let has_course = output.is_some() || page.is_some();
    let mut timeline = has_course.then(Timeline::new);
    let mut course = Course {
        timeline: timeline.as_mut(),
        sizes: Sizes::default(),
        together,
    };
    let finished = watch(running, args, &shared, &mut course)?;
    let Course {
        sizes, together, ..
    } = course;
    let figures = Figures::read(&shared)?;
    let run = tell(args, &figures, &finished, together.as_ref(), document)?;
    let outside = tell_outside(args, &run, &figures, &sizes, together.as_ref());
    if let Some(timeline) = timeline {
        let timeline = timeline.finish(&run, &figures);
        if let Some(mut file) = output {
            let text = pagewise_report::json::to_string(&timeline)?;
            file.write_all(text.as_bytes()).context("--timeline")?;
        }
        if let Some(mut file) = page {
            let page = pagewise_report::html::render_paging(&timeline)?;
            file.write_all(page.as_bytes()).context("-o")?;
        }
    }
    match (args.strict && outside, finished.ending) {
        (true, Ending::Exited(0) | Ending::Killed(_)) => Ok(ExitCode::FAILURE),
        _ => Ok(ending(finished.ending)),
    }
}

/// What is seen of a run while it runs.
struct Course<'a> {
    timeline: Option<&'a mut Timeline>,
    sizes: Sizes,
    /// Where the processes have one budget.
    together: Option<Together>,
}

impl Args {
    /// The budget, of all processes together or of each.
    fn budget(&self) -> u64 {
        self.memory.or(self.memory_each).unwrap_or(0)
    }
}

/// Says what was outside the budget; whether anything was.
fn tell_outside(
    args: &Args,
    run: &PagedRun,
    figures: &Figures,
    sizes: &Sizes,
    together: Option<&Together>,
) -> bool {
    // What came into memory for somebody outside is no surprise.
    let largest = match figures.held.is_empty() {
        false => 0,
        true => run.cost.max_rss.0,
    };
    let passed = together
        .and_then(Together::passed)
        .or_else(|| outside::passed(sizes, args.budget(), largest));
    let strangers = outside::strangers(figures);
    for words in passed.iter().chain(&strangers) {
        eprintln!("pagewise: {words}");
    }
    passed.is_some() || strangers.is_some()
}

/// Memory that the program's processes write their figures to: a file without a name.
fn shared_memory() -> Result<File> {
    let file = tempfile::tempfile().context("cannot make a file for statistics")?;
    file.set_len(snapshot::BYTES as u64)
        .and_then(|()| file.write_all_at(&snapshot::header(), 0))
        .context("cannot prepare the file for statistics")?;
    Ok(file)
}

/// A path that other processes of this user can open while this one lives.
fn path_of(file: &File) -> String {
    format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd())
}

fn recording(path: &Path) -> Result<File> {
    crate::destination::begin(path)
}

fn settings(
    args: &Args,
    library: &Path,
    shared: &File,
    record: Option<&File>,
) -> Result<LaunchSettings> {
    let least_store = 4 << 30;
    let mut settings = Settings {
        memory: args.budget(),
        policy: policy(args)?,
        store: store_place(&args.store)?,
        store_kind: args.store_kind.clone(),
        store_bytes: args
            .store_size
            .unwrap_or_else(|| args.budget().saturating_mul(8).max(least_store)),
        compressed_bytes: args.budget() / 100 * u64::from(args.compressed),
        encrypt: args.encrypt,
        delivery: match args.delivery.as_str() {
            "fd" => Choice::Handler,
            "sigbus" => Choice::Signal,
            _ => Choice::Auto,
        },
        smallest: args.min_region.unwrap_or(MIN_REGION.1),
        smallest_ever: args.min_region.unwrap_or(MIN_REGION.0),
        processors: processors(),
        watch: args.heat.unwrap_or_else(|| watched(args)),
        when_full: WhenFull::by_name(&args.when_full).context("--when-full")?,
        strict: args.strict,
        launcher: std::process::id(),
        shared: CString::new(path_of(shared))?,
        record: record.map_or_else(String::new, path_of),
    };
    preflight::check(&mut settings)?;
    launch_settings(&settings, library)
}

/// The store's place, wherever a program of the run may have gone meanwhile.
fn store_place(path: &Path) -> Result<CString> {
    let place = std::fs::canonicalize(path)
        .with_context(|| format!("--store {}: name a folder, file or device", path.display()))?;
    CString::new(place.as_os_str().as_bytes()).context("--store")
}

/// Pages per second that are watched where nobody says how many.
fn watched(args: &Args) -> u32 {
    let is_drawn = args.timeline.is_some() || (args.output.is_some() && !args.json);
    if args.stats || is_drawn { 40 } else { 0 }
}

/// The policy's name, checked here rather than in the program.
fn policy(args: &Args) -> Result<String> {
    // The program may change its folder: paths must not depend on it.
    let (head, path) = match args.policy.split_once("replay:") {
        Some((head, path)) => (format!("{head}replay:"), path),
        None if args.policy.contains('/') => match args.policy.strip_prefix("prefetch+") {
            Some(path) => ("prefetch+".to_owned(), path),
            None => (String::new(), args.policy.as_str()),
        },
        None => (String::new(), ""),
    };
    let name = match path {
        "" => args.policy.clone(),
        path => {
            let path = std::fs::canonicalize(path)
                .with_context(|| format!("--policy {}: cannot find it", args.policy))?;
            format!("{head}{}", path.display())
        }
    };
    let config = pagewise_policy::Config {
        pages: 1 << 10,
        budget: 1 << 9,
    };
    pagewise_policy::by_name(&name, &config).context("--policy")?;
    Ok(name)
}

/// Waits for the end; with `--stats` on a terminal a line of figures each second.
fn watch(
    mut running: Running,
    args: &Args,
    shared: &File,
    course: &mut Course<'_>,
) -> Result<Finished> {
    let root = u32::try_from(running.pid()).unwrap_or(0);
    let mut refused = false;
    let live = args.stats && terminal::rewrites_lines();
    let mut requests = Requests::default();
    loop {
        let pause = if live {
            Duration::from_secs(1)
        } else {
            Duration::from_secs(3600)
        };
        let timeline = &mut course.timeline;
        let until_point = timeline.as_ref().map_or(pause, |points| points.pause());
        let pause = course
            .sizes
            .patience(requests.patience(pause.min(until_point)));
        let together = &mut course.together;
        let pause = together.as_ref().map_or(pause, |all| all.patience(pause));
        if let Some(finished) = running.wait_for(pause)? {
            if live {
                eprint!("\r\x1b[K");
            }
            return Ok(finished);
        }
        if let Some(points) = timeline.as_deref_mut().filter(|points| points.is_due()) {
            points.take(&Figures::read(shared)?);
        }
        if let Some(all) = together {
            all.look(root, shared)?;
        }
        if live {
            let figures = Figures::read(shared)?;
            eprint!("\r\x1b[K{}", line(&figures, args.memory, terminal_width()));
        }
        requests.see_to(&running, shared)?;
        let sizes = &mut course.sizes;
        sizes.look(root, args.budget(), |pid| told(shared, pid));
        let passed = together.as_ref().is_some_and(Together::has_passed);
        if args.strict && !refused && (passed || sizes.largest(args.budget()).is_some()) {
            refused = true;
            requests::kill(&running, shared)?;
        }
    }
}

/// What the pager tells of a process just now.
fn told(shared: &File, pid: u32) -> Told {
    let Ok(figures) = Figures::read(shared) else {
        return Told::Managed(None);
    };
    let found = figures.living().find(|one| one.pid == pid);
    match found {
        Some(one) if figures.held.contains(&one.pid) => Told::Held,
        found => Told::Managed(found.map(|one| one.resident_bytes)),
    }
}

fn terminal_width() -> usize {
    terminal::columns().unwrap_or(80)
}

fn tell(
    args: &Args,
    figures: &Figures,
    finished: &Finished,
    together: Option<&Together>,
    to: Option<File>,
) -> Result<PagedRun> {
    let part = |part: &OsString| part.to_string_lossy().into_owned();
    let run = PagedRun {
        schema_version: PAGED_RUN_VERSION,
        kind: Kind::PagedRun,
        command: args.command.iter().map(part).collect(),
        ending: finished.ending,
        cost: finished.cost,
        memory_bytes: args.budget(),
        memory_is_each: together.is_none(),
        together_peak_bytes: together.map(Together::peak_bytes).filter(|peak| *peak > 0),
        policy: args.policy.clone(),
        store: args.store_kind.clone(),
        processes_total: figures.processes_total,
        processes: figures.processes.clone(),
        others: figures.others.clone(),
        refault_distances: figures.refault_distances.clone(),
    };
    if args.stats {
        eprint!("{}", text::paged_run::render(&run));
    }
    if args.json {
        let text = pagewise_report::json::to_string(&run)?;
        match (to, &args.output) {
            (Some(mut file), Some(path)) => {
                file.write_all(text.as_bytes())
                    .with_context(|| format!("cannot write {}", path.display()))?;
            }
            _ => terminal::output(true).write_all(text.as_bytes())?,
        }
    }
    Ok(run)
}

/// What `--stats` keeps on a terminal while the program runs: one line of so many columns.
/// `together` is the budget of all processes, where they have one.
fn line(figures: &Figures, together: Option<u64>, columns: usize) -> String {
    let living = |of: fn(&PagedProcess) -> u64| figures.living().map(of).sum::<u64>();
    let of_several = match figures.living().count() {
        0 | 1 => String::new(),
        many => format!(" in {many} processes"),
    };
    let hot = figures.heat_now().map_or_else(String::new, |heat| {
        format!(", {:.0} % hot", heat.hot.value * 100.0)
    });
    let text = format!(
        "resident {} of {}{of_several}{hot} | store {} | refaults {} | read {} written {} pages",
        Bytes(living(|one| one.resident_bytes)),
        Bytes(together.unwrap_or_else(|| living(|one| one.budget_bytes))),
        Bytes(figures.store_bytes()),
        count(figures.sum_faults(|all| all.refaults)),
        count(figures.sum_pages(|all| all.read)),
        count(figures.sum_pages(|all| all.written)),
    );
    text.chars().take(columns.saturating_sub(1)).collect()
}

/// The program's own status, or 128 and the signal.
fn ending(ending: Ending) -> ExitCode {
    let status = match ending {
        Ending::Exited(status) => status,
        Ending::Killed(signal) => 128 + signal,
        Ending::Running => 1,
    };
    ExitCode::from(u8::try_from(status & 0xff).unwrap_or(1))
}

/// A budget without files around it, for measurements.
#[derive(Clone, Copy, Debug)]
pub struct Budgeted {
    /// Bytes that may be resident.
    pub memory: u64,
    /// Name of the policy.
    pub policy: &'static str,
    /// `fd` or `sigbus`.
    pub delivery: &'static str,
}

/// Processors whose time a run may use: those it may run on, and no more than its cgroup's quota.
fn processors() -> u32 {
    let found = std::thread::available_parallelism().map_or(1, usize::from);
    u32::try_from(found).unwrap_or(u32::MAX)
}

/// Settings that run a program under `budget`.
///
/// # Errors
/// When the pager's library cannot be written.
pub fn budgeted(budget: &Budgeted) -> Result<LaunchSettings> {
    let settings = Settings {
        memory: budget.memory,
        policy: budget.policy.to_owned(),
        store: CString::new("/var/tmp")?,
        store_kind: "disk".to_owned(),
        store_bytes: 4 << 30,
        compressed_bytes: 0,
        encrypt: false,
        delivery: match budget.delivery {
            "fd" => Choice::Handler,
            _ => Choice::Signal,
        },
        smallest: MIN_REGION.0,
        smallest_ever: MIN_REGION.0,
        processors: processors(),
        watch: 0,
        when_full: WhenFull::End,
        strict: true,
        launcher: std::process::id(),
        shared: CString::default(),
        record: String::new(),
    };
    launch_settings(&settings, &own_library::installed(Libc::Glibc)?)
}

fn launch_settings(settings: &Settings, library: &Path) -> Result<LaunchSettings> {
    let path = library
        .to_str()
        .context("the path of the pager's library is no text")?;
    Ok(LaunchSettings(vec![
        Setting::Env {
            name: VARIABLE.to_owned(),
            value: settings.to_text(),
        },
        Setting::Preload {
            path: path.to_owned(),
        },
    ]))
}
