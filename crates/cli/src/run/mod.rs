//! `pagewise run`: any program, inside a memory budget.

mod simulate;

use crate::export::{Written, tables};
use crate::own_library;
use crate::size;
use crate::status;
use crate::terminal;
use anyhow::{Context, Result, anyhow};
use clap::Args as ClapArgs;
use pagewise_linux::process::Launch;
use pagewise_model::paged_run::PagedProcess;
use pagewise_model::run::Ending;
use pagewise_model::units::Bytes;
use pagewise_operate::destination;
use pagewise_operate::paged_run::{self, Budget, Engine, Figures, Filled, Paged, Request, prepare};
use pagewise_report::text::{self, run_line};
use pagewise_wire::settings::{Choice, WhenFull};
use std::ffi::OsString;
use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

/// Examples for `--help`.
pub const EXAMPLES: &str = "\
Examples:
  pagewise run --memory 1G -- ./simulate            a gigabyte, the rest on disk
  pagewise run --memory 512M --stats -- sort big    and what paging did
  pagewise run --memory 512M -o sort.html -- sort big   a page about its course
  pagewise run --memory-each 200M -- make -j8       each process its own budget
  pagewise run --memory 2G --policy prefetch -- ./scan
  pagewise run --memory 1G --delivery sigbus -- ./compute
  sudo pagewise run --memory 1G --engine kernel -- ./random
  pagewise run --memory 1G --json -o run.json -- redis-server
  pagewise run --memory 1G --export parquet -o tables -- ./solve
  pagewise run --memory 1G --record-faults run.faults -- ./solve
  pagewise run --memory 1G --policy replay:run.faults -- ./solve
  pagewise run --fill 4711 -- gcore 4711            a core of all its pages
  pagewise run --memory 2G --simulate run.faults --policy 2q,s3fifo,prefetch,csr";

/// Options of `pagewise run`.
#[derive(ClapArgs, Debug)]
pub struct Args {
    /// Memory that the program and everything it starts may keep resident together, such as 512M or 2G
    ///
    /// Pages that a process shares with its children count once. Memory that cannot be managed is
    /// subtracted first; shares of the rest move to the processes that read the most pages back.
    #[arg(long, value_name = "SIZE", value_parser = size::positive,
          required_unless_present_any = ["memory_each", "fill"], conflicts_with = "memory_each")]
    memory: Option<Bytes>,
    /// Memory that each process may keep resident, however many there are
    #[arg(long, value_name = "SIZE", value_parser = size::positive)]
    memory_each: Option<Bytes>,
    /// What brings pages in and out: ours (in user space, without privileges), kernel, or auto
    /// [default: auto where it can, else ours]
    ///
    /// kernel: a memory cgroup and a swap file of the run's own, which take root. Faster where access is random or many
    /// threads write; programs of every kind are held, static ones too. --memory is a hard limit and includes the page
    /// cache. Options about pages (--policy, --delivery, --store-kind, …) are for ours alone. auto: ours, but kernel for a
    /// program into which no library can be loaded (static, Go, set-user-ID, of another libc), and for the rest of a
    /// run once it waits for pages in random places for two seconds, where that can be (root, --memory, no option about pages but
    /// --delivery, --min-region and --when-full); given by name, it says where it cannot.
    #[arg(long, value_name = "WHICH", value_parser = ["ours", "kernel", "auto"])]
    engine: Option<String>,
    /// Which pages to evict and which to read ahead: prefetch (over 2q), 2q, fifo, clock,
    /// s3fifo, csr, replay:FILE, or ./mine.so [default: prefetch; with --simulate all without a file]
    #[arg(long, value_name = "NAME")]
    policy: Option<String>,
    /// Folder, file or block device for what does not fit
    ///
    /// In a folder the file has no name, and disappears with the last process that uses it.
    #[arg(long, default_value = "/var/tmp", value_name = "PATH")]
    store: PathBuf,
    /// Bytes that the store may take on disk [default: 8 times --memory, at least 4G]
    #[arg(long, value_name = "SIZE", value_parser = size::positive)]
    store_size: Option<Bytes>,
    /// Where evicted pages are kept: disk, compressed (in memory), tiered (compressed, then disk), or
    /// auto (compressed as far as that saves time, else disk)
    #[arg(long, default_value = "disk", value_name = "KIND",
          value_parser = ["disk", "compressed", "tiered", "auto"])]
    store_kind: String,
    /// Largest share of --memory for compressed pages, in percent [default: 60 with auto, else 30]
    #[arg(long, value_name = "PERCENT",
          value_parser = clap::value_parser!(u8).range(1..=90))]
    compressed: Option<u8>,
    /// Encrypt what goes to disk, with a key that exists only during the run
    #[arg(long)]
    encrypt: bool,
    /// What to do when the store is full: exceed (pass the budget, with a message), wait (until there is
    /// room), or end (the program, by SIGBUS). None of them loses data
    #[arg(long, default_value = "exceed", value_name = "WHAT",
          value_parser = ["exceed", "wait", "end"])]
    when_full: String,
    /// Refuse anything that would run outside the budget
    ///
    /// Programs that cannot be managed are not started (EACCES), and the run ends when one process, or all together,
    /// exceed --memory by more than a tenth; in either case the exit status is not 0. Without --strict, a line at the
    /// end reports both.
    #[arg(long)]
    strict: bool,
    /// How faults reach the pager
    ///
    /// fd: handler threads; every system call works. sigbus: the faulting thread itself; faster and
    /// scalable, for programs that compute: a system call on a missing page works through libc's
    /// functions, otherwise it fails with EFAULT. auto: fd where the kernel allows it.
    #[arg(long, default_value = "auto", value_parser = ["auto", "fd", "sigbus"])]
    delivery: String,
    /// Smallest region of anonymous memory to manage
    ///
    /// [default: 64M; less, down to 256K, while more than an eighth of --memory lies in smaller
    /// regions]
    #[arg(long, value_name = "SIZE", value_parser = size::positive)]
    min_region: Option<Bytes>,
    /// Also manage read-only mapped files of at least this size
    ///
    /// Private and shared mappings with read access alone. Pages are read from the file itself, past the page cache
    /// where its file system allows that, in pieces that the policy chooses, and are dropped to make room; nothing of
    /// them is written. Each file is under a lease: as soon as somebody opens it for writing, the mapping becomes an
    /// ordinary one, and a line at the end says so. This needs the rights of the file's owner and a file that is not
    /// open for writing; other mappings stay the kernel's. [default: none is managed]
    #[arg(long, value_name = "SIZE", value_parser = size::positive)]
    files: Option<Bytes>,
    /// Show figures while the program runs (on a terminal) and a table at its end, on stderr
    #[arg(long)]
    stats: bool,
    /// Print figures at the end as JSON (schema: pagewise help schema.json)
    #[arg(long)]
    json: bool,
    /// Write a page about the course of the run to this file; with --json, the JSON
    #[arg(short, long, value_name = "FILE", conflicts_with_all = ["simulate", "fill"])]
    output: Option<PathBuf>,
    #[command(flatten)]
    tables: tables::Options,
    /// Record page events for the replay policy and for simulation
    #[arg(long = "record-faults", value_name = "FILE")]
    record: Option<PathBuf>,
    /// Write the course of the run to this file, for `pagewise report` (schema: pagewise help schema.json)
    ///
    /// Resident memory, the store, faults and transfers, read every 50 ms, less often in long runs.
    /// Readings cost the program nothing beyond what --heat costs.
    #[arg(long, value_name = "FILE", conflicts_with = "simulate")]
    timeline: Option<PathBuf>,
    /// Resident pages per second to watch until their next use, to tell hot pages from cold ones (at most 250)
    ///
    /// Each is made inaccessible until it is touched, which costs that touch a few microseconds. 0
    /// watches none. [default: 40 with --stats, --timeline or a page, else 0]
    #[arg(long, value_name = "PAGES", value_parser = clap::value_parser!(u32).range(0..=250))]
    heat: Option<u32>,
    /// Run policies (--policy 2q,s3fifo,csr) on a recorded trace instead of a program, and name the best
    ///
    /// Prints what each would have waited for, read and written with --memory, compared with
    /// Belady's MIN, the fewest reads that any policy could need. Runs and writes nothing.
    #[arg(long, value_name = "TRACE", conflicts_with_all = ["command", "record"])]
    simulate: Option<PathBuf>,
    /// Load all pages of a paged process into memory while CMD runs, or until Ctrl-C
    ///
    /// For debuggers and gcore, which cannot read evicted pages. The process's budget is lifted meanwhile;
    /// the program keeps running until a debugger stops it.
    #[arg(long, value_name = "PID", conflicts_with_all = ["memory", "memory_each", "simulate"])]
    fill: Option<u32>,
    /// The program and its arguments
    #[arg(last = true, required_unless_present_any = ["simulate", "fill"], value_name = "CMD")]
    command: Vec<OsString>,
}

/// Runs the program and exits as it did.
///
/// # Errors
/// If the program cannot be run under a budget, with the reason and a remedy.
pub fn run(args: &Args) -> Result<ExitCode> {
    if let Some(trace) = &args.simulate {
        let policies = args.policy.clone().unwrap_or_else(simulate::all);
        simulate::simulate(trace, &policies, args.budget().size().0, args.json)?;
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(pid) = args.fill {
        return fill(pid, &args.command);
    }
    match run_paged(args) {
        Ok(paged) => Ok(end(args, &paged)),
        Err(error) => status::failed_to_start(error),
    }
}

/// Runs the program, and writes the results.
fn run_paged(args: &Args) -> Result<Paged> {
    let say = terminal::progress(false);
    let ready = prepare(args.request()?, &say)?;
    // Created before the program runs, so that a wrong path does not cost the run.
    let files = Files::create(args)?;
    let paged = match args.stats && terminal::rewrites_lines() {
        true => {
            let paged = ready.run(files.have_course(), &say, Some(&|now| show(args, now)));
            eprint!("\r\x1b[K");
            paged?
        }
        false => ready.run(files.have_course(), &say, None)?,
    };
    present(args, &paged, files)?;
    Ok(paged)
}

/// Requested files.
struct Files {
    timeline: Option<File>,
    /// The figures as JSON.
    document: Option<File>,
    page: Option<File>,
}

impl Files {
    fn create(args: &Args) -> Result<Self> {
        let begin = |path: &Option<PathBuf>| path.as_deref().map(destination::begin).transpose();
        let timeline = begin(&args.timeline)?;
        if let (Some(_), Some(folder)) = (&args.tables.export, &args.output) {
            tables::aside(folder)?;
        }
        let (document, page) = match (args.json, &args.tables.export) {
            (_, Some(_)) => (None, None),
            (true, None) => (begin(&args.output)?, None),
            (false, None) => (None, begin(&args.output)?),
        };
        Ok(Self {
            timeline,
            document,
            page,
        })
    }

    /// Whether one of them shows the run over time.
    fn have_course(&self) -> bool {
        self.timeline.is_some() || self.page.is_some()
    }
}

fn present(args: &Args, paged: &Paged, files: Files) -> Result<()> {
    if args.stats {
        let style = text::Style {
            color: false,
            ..terminal::style()
        };
        let width = terminal::columns().unwrap_or(80);
        eprint!("{}", text::paged_run::render(&paged.run, width, style));
    }
    if args.json {
        let json = pagewise_report::json::to_string(&paged.run)?;
        match (files.document, &args.output) {
            (Some(mut file), Some(path)) => file
                .write_all(json.as_bytes())
                .with_context(|| format!("cannot write {}", path.display()))?,
            _ => terminal::output(true).write_all(json.as_bytes())?,
        }
    }
    if let (Some(_), Some(folder)) = (&args.tables.export, &args.output) {
        let made = tables::of_paged_run(&paged.run, args.tables.included.parts())?;
        let Written(words) = tables::write(made, folder)?;
        terminal::tell(&words);
    }
    for words in paged.outside.iter().chain(&paged.notes) {
        terminal::tell(&format!("pagewise: {words}"));
    }
    let Some(course) = &paged.timeline else {
        return Ok(());
    };
    if let Some(mut file) = files.timeline {
        let json = pagewise_report::json::to_string(course)?;
        file.write_all(json.as_bytes()).context("--timeline")?;
    }
    if let Some(mut file) = files.page {
        let page = pagewise_report::html::render_paging(course)?;
        file.write_all(page.as_bytes()).context("-o")?;
    }
    Ok(())
}

/// The program's own status, unless `--strict` turns it into a failure.
fn end(args: &Args, paged: &Paged) -> ExitCode {
    match (
        args.strict && !paged.outside.is_empty(),
        paged.run.evidence.ending,
    ) {
        (true, Ending::Exited(0) | Ending::Killed(_)) => ExitCode::FAILURE,
        (_, ending) => status::exit_code(ending, ExitCode::FAILURE),
    }
}

fn fill(pid: u32, command: &[OsString]) -> Result<ExitCode> {
    Ok(
        match paged_run::fill(pid, command, &terminal::progress(false))? {
            Filled::Interrupted => ExitCode::FAILURE,
            Filled::Released => ExitCode::SUCCESS,
            Filled::Used(ended) => status::of_child(ended),
        },
    )
}

impl Args {
    /// The budget, for all processes together or for each.
    fn budget(&self) -> Budget {
        match self.memory {
            Some(bytes) => Budget::Together(bytes),
            None => Budget::Each(self.memory_each.unwrap_or_default()),
        }
    }

    /// Options that were given and that only the pager has.
    fn options_of_pager(&self) -> Vec<&'static str> {
        let given = [
            ("--policy", self.policy.is_some()),
            ("--store-kind", self.store_kind != "disk"),
            ("--compressed", self.compressed.is_some()),
            ("--encrypt", self.encrypt),
            ("--when-full", self.when_full != "exceed"),
            ("--delivery", self.delivery != "auto"),
            ("--min-region", self.min_region.is_some()),
            ("--files", self.files.is_some()),
            ("--heat", self.heat.is_some()),
            ("--record-faults", self.record.is_some()),
            ("--timeline", self.timeline.is_some()),
            ("-o without --json", self.has_page()),
        ];
        let given = given.into_iter().filter(|(_, is_given)| *is_given);
        given.map(|(name, _)| name).collect()
    }

    fn request(&self) -> Result<Request> {
        Ok(Request {
            engine: self.engine.as_deref().map(|engine| match engine {
                "kernel" => Engine::Kernel,
                "auto" => Engine::Auto,
                _ => Engine::Ours,
            }),
            launch: Launch::from_command(&self.command)
                .ok_or_else(|| anyhow!("there is no program to run"))?,
            budget: self.budget(),
            policy: self.policy.as_deref().unwrap_or("prefetch").to_owned(),
            store: self.store.clone(),
            store_size: self.store_size,
            store_kind: self.store_kind.clone(),
            compressed: self.compressed,
            encrypt: self.encrypt,
            when_full: WhenFull::by_name(&self.when_full).context("--when-full")?,
            strict: self.strict,
            delivery: match self.delivery.as_str() {
                "fd" => Choice::Handler,
                "sigbus" => Choice::Signal,
                _ => Choice::Auto,
            },
            min_region: self.min_region,
            files: self.files,
            heat: self.heat.unwrap_or_else(|| self.watched()),
            record: self.record.clone(),
            library: own_library::installed,
            options_of_pager: self.options_of_pager(),
        })
    }

    /// Default number of pages watched per second.
    fn watched(&self) -> u32 {
        let is_drawn = self.timeline.is_some() || self.has_page();
        if self.stats || is_drawn { 40 } else { 0 }
    }

    fn has_page(&self) -> bool {
        self.output.is_some() && !self.json && self.tables.export.is_none()
    }
}

/// Shows the current figures in the terminal's last line.
fn show(args: &Args, now: &Figures) {
    let living = |of: fn(&PagedProcess) -> u64| now.living().map(of).sum::<u64>();
    let line = run_line::RunLine {
        resident: Bytes(living(|one| one.resident_bytes)),
        budget: args
            .memory
            .unwrap_or_else(|| Bytes(living(|one| one.budget_bytes))),
        processes: now.living().count(),
        hot: now.heat_now().map(|heat| heat.hot.value),
        store: Bytes(now.store_bytes()),
        refaults: now.sum_faults(|all| all.refaults),
        read: now.sum_pages(|all| all.read),
        written: now.sum_pages(|all| all.written),
    };
    let columns = terminal::columns().unwrap_or(80);
    eprint!("\r\x1b[K{}", run_line::render(&line, columns));
}
