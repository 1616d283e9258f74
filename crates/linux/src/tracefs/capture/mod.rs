//! A live function_graph capture, guarded.
//!
//! ```text
//! guard ─▶ instance, or the top of tracefs ─▶ buffer, roots, filter, processes
//!                                             ─▶ tracer ─▶ options, events ─▶ trace_pipe
//! ```
//!
//! The tracer works in an instance since Linux 6.12; before that, it needs the top of tracefs. The
//! list of roots (`set_graph_function`) and the depth are shared by all in any case.

mod settings;
mod stats;

pub use stats::Stats;

use super::control::Control;
use super::functions::{Function, Functions};
use super::guard::{Difference, Guard, Recovered};
use super::{Error, Tracefs};
use crate::pseudo_file;
use std::collections::HashSet;
use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

/// The tracer.
const TRACER: &str = "function_graph";

/// What to capture and how.
#[derive(Clone, Debug)]
pub struct Options {
    /// Buffer for each CPU in KiB.
    pub buffer_kib: u64,
    /// Maximum depth of recorded calls; 0 means no limit.
    pub depth: u32,
    /// Whether to record events with the calls.
    pub events: bool,
    /// Further functions from which to trace.
    pub roots: Vec<String>,
    /// Whether to ignore settings that others left behind.
    pub forced: bool,
    /// Folder of the journal.
    pub journal: PathBuf,
}

/// Tasks whose calls are recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// These threads, and threads and processes that they start.
    Tasks(Vec<i32>),
    /// All processes but this one.
    System,
}

/// Result of selecting functions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// Functions requested.
    pub wanted: usize,
    /// Functions that the kernel traces.
    pub taken: usize,
    /// Names of functions that it does not trace.
    pub rejected: Vec<String>,
}

/// A capture. Dropping it restores everything.
#[derive(Debug)]
pub struct Capture {
    /// Closed before the guard restores: an open pipe pins the tracer.
    pipe: Option<File>,
    control: Control,
    functions: Functions,
    /// Whether the kernel takes line numbers in place of names.
    by_line: bool,
    in_instance: bool,
    buffer_kib: u64,
    events: Vec<String>,
    /// What was restored after a killed process, if anything.
    recovered: Option<Recovered>,
    guard: Guard,
}

impl Capture {
    /// Whether the kernel has the tracer; the error is the reason if not.
    ///
    /// # Errors
    /// [`Error::Unable`] with the tracers of the kernel, or a file that can't be read.
    pub fn is_possible(tracefs: &Tracefs) -> Result<(), Error> {
        let top = tracefs.control();
        let tracers = top.setting("available_tracers")?.unwrap_or_default();
        if tracers.split_whitespace().any(|tracer| tracer == TRACER) {
            // Under lockdown and the like, tracers are listed, but no function can be selected.
            return match top.read("set_graph_function") {
                Ok(_) => Ok(()),
                Err(Error::Control { path, cause, .. }) => Err(Error::Unable(format!(
                    "the kernel has {TRACER} but does not allow functions to be selected: {}: {cause}",
                    path.display()
                ))),
                Err(error) => Err(error),
            };
        }
        Err(Error::Unable(match tracers.is_empty() {
            true => "this kernel has no tracers (CONFIG_FTRACE)".to_owned(),
            false => format!(
                "this kernel has no {TRACER} tracer (CONFIG_FUNCTION_GRAPH_TRACER); it has: {tracers}"
            ),
        }))
    }

    /// Takes the tracer and sets it up, with only the roots traced and recording off.
    ///
    /// # Errors
    /// If it is in use, not allowed or missing. Everything is restored then.
    pub fn prepare(tracefs: &Tracefs, options: &Options) -> Result<Self, Error> {
        Self::is_possible(tracefs)?;
        let functions = Functions::new(&tracefs.control(), &options.roots)?;
        let (mut guard, recovered) =
            Guard::begin(tracefs.control(), &options.journal, options.forced)?;
        let top = guard.top().clone();
        let (control, in_instance) = match own_instance(&mut guard)? {
            Some(instance) => (instance, true),
            None => (top, false),
        };
        let mut capture = Self {
            pipe: None,
            control,
            functions,
            by_line: true,
            in_instance,
            buffer_kib: 0,
            events: Vec::new(),
            recovered,
            guard,
        };
        capture.set_up(options)?;
        Ok(capture)
    }

    fn set_up(&mut self, options: &Options) -> Result<(), Error> {
        let control = self.control.clone();
        self.guard.set(&control, "tracing_on", "0")?;
        self.buffer_kib = self.size_buffer(options.buffer_kib)?;
        if let Some(clock) = control.setting("trace_clock")?
            && !matches!(
                pseudo_file::bracketed(&clock),
                Some("global" | "mono" | "mono_raw" | "boot" | "tai")
            )
        {
            // Tasks move between CPUs, whose local clocks may differ; other clocks do not show
            // time.
            self.guard.set(&control, "trace_clock", "global")?;
        }
        self.choose_roots()?;
        let roots = self.functions.root_functions();
        self.select(&roots)?;
        if options.depth > 0 {
            let top = self.guard.top().clone();
            self.guard
                .set(&top, "max_graph_depth", &options.depth.to_string())?;
        }
        for option in self.shared_options() {
            self.guard.keep(&option)?;
        }
        // Saved before the tracer is set, because it has to be undone first.
        self.guard.set(&control, "current_tracer", TRACER)?;
        self.set_options()?;
        if options.events {
            self.enable_events()?;
        }
        control.clear("trace")?;
        self.pipe = Some(self.open_pipe()?);
        Ok(())
    }

    /// The functions that the kernel has.
    #[must_use]
    pub fn functions(&self) -> &Functions {
        &self.functions
    }

    /// Whether the capture has an instance of its own.
    #[must_use]
    pub fn is_in_instance(&self) -> bool {
        self.in_instance
    }

    /// KiB of buffer for each CPU.
    #[must_use]
    pub fn buffer_kib(&self) -> u64 {
        self.buffer_kib
    }

    /// Events that are recorded.
    #[must_use]
    pub fn events(&self) -> &[String] {
        &self.events
    }

    /// What was restored after a killed process.
    #[must_use]
    pub fn recovered(&self) -> Option<&Recovered> {
        self.recovered.as_ref()
    }

    /// Traces these functions inside the roots and no others. Recording should be off.
    ///
    /// # Errors
    /// If the kernel accepts none of them: an empty filter would trace every function.
    pub fn select(&mut self, functions: &[Function]) -> Result<Selection, Error> {
        const FILE: &str = "set_ftrace_filter";
        let control = self.control.clone();
        let wanted: HashSet<&str> = functions.iter().map(|one| one.name.as_str()).collect();
        if self.by_line {
            let lines = functions.iter().map(|function| function.line.to_string());
            let rejected = self.guard.replace(&control, FILE, lines)?;
            let taken = traced(&control)?;
            let exact = taken.len() == wanted.len()
                && taken.iter().all(|name| wanted.contains(name.as_str()));
            if rejected.is_empty() && exact {
                return Ok(Selection {
                    wanted: wanted.len(),
                    taken: taken.len(),
                    rejected: Vec::new(),
                });
            }
            self.by_line = false;
        }
        let names = functions.iter().map(|function| function.name.as_str());
        self.guard.replace(&control, FILE, names)?;
        let taken = traced(&control)?;
        if taken.is_empty() {
            return Err(Error::Unable(format!(
                "the kernel accepts none of {} functions in {}",
                wanted.len(),
                control.path(FILE).display()
            )));
        }
        let mut rejected: Vec<String> = wanted.iter().map(|&name| name.to_owned()).collect();
        rejected.retain(|name| !taken.contains(name));
        rejected.sort();
        Ok(Selection {
            wanted: wanted.len(),
            taken: taken.len(),
            rejected,
        })
    }

    /// Records the calls and events of `target` only.
    ///
    /// # Errors
    /// If the kernel refuses because all tasks have ended.
    pub fn watch(&mut self, target: &Target) -> Result<(), Error> {
        let control = self.control.clone();
        let (chosen, tasks) = match target {
            Target::Tasks(tasks) => (["set_ftrace_pid", "set_event_pid"], tasks.clone()),
            Target::System => (
                ["set_ftrace_notrace_pid", "set_event_notrace_pid"],
                vec![i32::try_from(std::process::id()).unwrap_or(i32::MAX)],
            ),
        };
        for file in chosen {
            if target == &Target::System && !control.has(file) {
                continue; // before 5.7: our own faults are recorded too
            }
            let rejected = self
                .guard
                .replace(&control, file, tasks.iter().map(i32::to_string))?;
            if rejected.len() == tasks.len()
                && let Some(first) = rejected.into_iter().next()
            {
                return Err(control.failed("write", file, first.cause));
            }
        }
        Ok(())
    }

    /// Starts recording.
    ///
    /// # Errors
    /// If the switch can't be written.
    pub fn on(&self) -> Result<(), Error> {
        self.control.write("tracing_on", "1")
    }

    /// Stops recording; the buffers can still be read.
    ///
    /// # Errors
    /// If the switch can't be written.
    pub fn off(&self) -> Result<(), Error> {
        self.control.write("tracing_on", "0")
    }

    /// Reads the content of the buffers, in order of time, up to `most` bytes; appends to `out`.
    /// Returns whether there was any.
    ///
    /// # Errors
    /// When reading fails.
    pub fn read(&mut self, out: &mut Vec<u8>, most: usize) -> Result<bool, Error> {
        let Some(pipe) = &mut self.pipe else {
            return Ok(false);
        };
        let before = out.len();
        // The kernel returns at most a page at a time.
        let mut page = [0; 16 << 10];
        while out.len() - before < most {
            match pipe.read(&mut page) {
                Ok(0) => break,
                Ok(len) => out.extend_from_slice(&page[..len]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(cause) => return Err(self.control.failed("read", "trace_pipe", cause)),
            }
        }
        Ok(out.len() > before)
    }

    /// How full the fullest CPU's buffer is, from 0 to 1.
    #[must_use]
    pub fn fill(&self) -> f64 {
        let fullest = self.stats().into_iter().map(|(_, stats)| stats.bytes).max();
        fullest.unwrap_or(0) as f64 / (self.buffer_kib * 1024).max(1) as f64
    }

    /// The counters of each CPU's buffer since the capture was prepared.
    #[must_use]
    pub fn stats(&self) -> Vec<(u32, Stats)> {
        let cpus = pseudo_file::names(&self.control.path("per_cpu"));
        let mut found: Vec<(u32, Stats)> = cpus
            .iter()
            .filter_map(|cpu| {
                let number = cpu.strip_prefix("cpu")?.parse().ok()?;
                let text = self.control.read(&format!("per_cpu/{cpu}/stats")).ok()?;
                Some((number, Stats::parse(&text)))
            })
            .collect();
        found.sort_by_key(|(cpu, _)| *cpu);
        found
    }

    /// The current time by the trace's clock, in microseconds, as printed in the text.
    ///
    /// # Errors
    /// If the kernel does not report it.
    pub fn now_us(&self) -> Result<u64, Error> {
        let now = self.stats().into_iter().find_map(|(_, stats)| stats.now_us);
        now.ok_or_else(|| {
            let path = self.control.path("per_cpu/cpu0/stats");
            Error::Unable(format!("{} does not show the trace's time", path.display()))
        })
    }

    /// The comment lines at the start of the kernel's text, with the names of its columns.
    ///
    /// # Errors
    /// When `trace` can't be read.
    pub fn header(&self) -> Result<String, Error> {
        let text = self.control.read("trace")?;
        let comments = text.split_inclusive('\n');
        Ok(comments.take_while(|line| line.starts_with('#')).collect())
    }

    /// Ends the capture and returns what could not be restored.
    ///
    /// # Errors
    /// When the journal can't be emptied.
    pub fn finish(mut self) -> Result<Vec<Difference>, Error> {
        self.pipe = None;
        self.guard.restore()
    }

    /// Sizes the buffers; requests less if there is not enough memory.
    fn size_buffer(&mut self, wanted_kib: u64) -> Result<u64, Error> {
        const LEAST_KIB: u64 = 1024;
        let control = self.control.clone();
        let mut kib = wanted_kib.max(LEAST_KIB);
        loop {
            match self.guard.set(&control, "buffer_size_kb", &kib.to_string()) {
                Ok(()) => return Ok(kib),
                Err(Error::Control { cause, .. })
                    if cause.kind() == io::ErrorKind::OutOfMemory && kib > LEAST_KIB =>
                {
                    kib = (kib / 2).max(LEAST_KIB);
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn choose_roots(&mut self) -> Result<(), Error> {
        const FILE: &str = "set_graph_function";
        let top = self.guard.top().clone();
        let rejected = self
            .guard
            .replace(&top, FILE, self.functions.roots.clone())?;
        let taken: Vec<String> = top
            .list(FILE)?
            .iter()
            .map(|line| function_of(line))
            .collect();
        self.functions.roots.retain(|root| taken.contains(root));
        if self.functions.roots.is_empty() {
            let names: Vec<&str> = rejected.iter().map(|one| one.name.as_str()).collect();
            return Err(Error::Unable(format!(
                "the kernel accepts none of {} in {}",
                names.join(", "),
                top.path(FILE).display()
            )));
        }
        Ok(())
    }

    /// Options whose value at the top changes with ours.
    fn shared_options(&self) -> Vec<String> {
        let top = self.guard.top();
        let shared = settings::OPTIONS
            .iter()
            .filter(|(name, _)| settings::is_shared(name));
        let files = shared.map(|(name, _)| format!("options/{name}"));
        files.filter(|file| top.has(file)).collect()
    }

    fn set_options(&mut self) -> Result<(), Error> {
        let control = self.control.clone();
        for (option, value) in settings::OPTIONS {
            let file = format!("options/{option}");
            let value = if *value { "1" } else { "0" };
            match control.setting(&file)? {
                Some(now) if now != value => self.guard.set(&control, &file, value)?,
                _ => {}
            }
        }
        Ok(())
    }

    fn enable_events(&mut self) -> Result<(), Error> {
        let control = self.control.clone();
        for event in settings::EVENTS {
            let file = format!("events/{event}/enable");
            if control.has(&file) {
                self.guard.set(&control, &file, "1")?;
                self.events.push(event.replace('/', ":"));
            }
        }
        Ok(())
    }

    fn open_pipe(&self) -> Result<File, Error> {
        OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_NONBLOCK)
            .open(self.control.path("trace_pipe"))
            .map_err(|cause| self.control.failed("read", "trace_pipe", cause))
    }
}

/// An instance in which the tracer works, or `None`.
fn own_instance(guard: &mut Guard) -> Result<Option<Control>, Error> {
    let Ok(instance) = guard.instance() else {
        return Ok(None);
    };
    let tracers = instance.setting("available_tracers")?.unwrap_or_default();
    if tracers.split_whitespace().any(|tracer| tracer == TRACER) {
        return Ok(Some(instance));
    }
    // The guard removes it at the end in any case.
    let _ = std::fs::remove_dir(instance.root());
    Ok(None)
}

/// The functions in `set_ftrace_filter`.
fn traced(control: &Control) -> Result<HashSet<String>, Error> {
    let lines = control.list("set_ftrace_filter")?;
    Ok(lines.iter().map(|line| function_of(line)).collect())
}

/// `f` of a line `f` or `f [module]`.
fn function_of(line: &str) -> String {
    line.split_whitespace()
        .next()
        .unwrap_or_default()
        .to_owned()
}

#[cfg(test)]
mod tests;
