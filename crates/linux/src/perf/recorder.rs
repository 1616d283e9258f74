//! The recorder's life: open, start, release, stop, finish.

use super::account::{Account, EventCount};
use super::build_ids::BuildIds;
use super::drain::{Command, Drain, Drained};
use super::notes::Note;
use super::opening::{self, Opened, Opener};
use super::plan::{Plan, Start};
use super::{Error, Mode, Options, Target, access, existing, side_band, threads};
use crate::proc::ProcRoot;
use crate::sys::machine::prefer_this_thread;
use crate::sys::perf_event;
use crate::tracefs::Tracefs;
use pagewise_formats::perf_data::{
    Features, SourceAttr, TracingData, WriteError, Writer, sample_type,
};
use pagewise_model::loss::Losses;
use pagewise_model::recording::Collection;
use rustc_hash::FxHashSet;
use std::fs::File;
use std::io::{self, PipeWriter, Write};
use std::path::Path;
use std::thread::JoinHandle;

/// Events that are open but not yet written anywhere.
pub struct Recorder {
    plan: Plan,
    opened: Opened,
    notes: Vec<Note>,
    mode: Mode,
    target: Target,
    /// Records that arrived while events were being opened.
    early: Vec<u8>,
    proc: ProcRoot,
    /// Wanted samples per second; `None` for a fixed period.
    frequency: Option<u64>,
}

/// A recording in progress: a separate thread moves records from the rings to the file. Dropping it
/// ends that thread and leaves the file without its closing sections.
#[derive(Debug)]
pub struct Recording {
    thread: Option<JoinHandle<Drained>>,
    control: PipeWriter,
    tracing_data: Option<TracingData>,
}

/// A recording whose events are all written. [`Recorded::finish`] adds the closing sections.
#[derive(Debug)]
pub struct Recorded {
    /// How events were collected.
    pub collection: Collection,
    /// What the collector lost.
    pub losses: Losses,
    /// Records by source.
    pub counts: Vec<EventCount>,
    span: Option<(u64, u64)>,
    tracing_data: Option<TracingData>,
    writer: Writer<File>,
}

/// More threads than this are a crowd: opening events for one thread on one CPU takes some 15 µs.
const CROWD: usize = 100;
/// A crowd's samples have no copies of stacks, so more can be taken, for each thread to have some.
const CHEAPER: u64 = 5;

/// The fields that trail every record that is not a sample: those of the plan's first source.
const SIDE_BAND: u64 =
    sample_type::IDENTIFIER | sample_type::TID | sample_type::TIME | sample_type::CPU;

impl Recorder {
    /// Opens everything that the kernel allows. A refusal becomes a note; without perf events the
    /// recorder records nothing, and a note explains it.
    ///
    /// # Errors
    /// If the target is gone or may not be observed.
    pub fn open(target: Target, options: &Options) -> Result<Self, Error> {
        let mut recorder = Self {
            plan: Plan::default(),
            opened: Opened::default(),
            mode: options.mode,
            target,
            early: Vec::new(),
            proc: ProcRoot::default(),
            notes: Vec::new(),
            frequency: (options.faults && options.period.is_none()).then_some(options.frequency),
        };
        recorder.check_target()?;
        if let Some(mut access) = access::probe(&mut recorder.notes) {
            // If all processes are observed, no records are dropped.
            access.machine &= recorder.target != Target::System;
            let crowd = recorder.is_crowd();
            let options = Options {
                dwarf_stacks: options.dwarf_stacks && !crowd,
                ..options.clone()
            };
            recorder.plan = Plan::new(&options, access, Tracefs::find, &mut recorder.notes);
            if crowd {
                match access.machine {
                    true => recorder.plan.watch_all(),
                    false => recorder.plan.keep_open(),
                }
                recorder.frequency = recorder.frequency.map(|hz| hz.saturating_mul(CHEAPER));
            }
            recorder.open_target()?;
        }
        Ok(recorder)
    }

    /// Whether the target has too many threads to reopen events for each turn.
    fn is_crowd(&self) -> bool {
        match &self.target {
            Target::Pids(pids) => opening::threads_of(pids, &self.proc).len() > CROWD,
            Target::Gated(_) | Target::System => false,
        }
    }

    fn check_target(&self) -> Result<(), Error> {
        let Target::Pids(pids) = &self.target else {
            return Ok(());
        };
        match pids.iter().find(|&&pid| self.proc.tasks(pid).is_empty()) {
            Some(&pid) => Err(Error::NoSuchProcess { pid }),
            None => Ok(()),
        }
    }

    fn open_target(&mut self) -> Result<(), Error> {
        let cpus = threads::online_cpus(Path::new("/sys"));
        let mut opener = Opener::new(
            &mut self.plan,
            &mut self.notes,
            cpus,
            &self.target,
            self.mode,
        );
        opener.open_machine();
        match &self.target {
            Target::Gated(pid) => {
                opener.make_room(1);
                if opener.open_threads(&[*pid], &[*pid])? == 0 {
                    return Err(Error::NoSuchProcess { pid: *pid });
                }
            }
            Target::System => {
                opener.make_room(1);
                opener.open_threads(&[opening::EVERYBODY], &[opening::EVERYBODY])?;
            }
            Target::Pids(pids) => {
                open_all_threads(&mut opener, pids, &self.proc, &mut self.early)?;
            }
        }
        self.opened = opener.finish();
        Ok(())
    }

    /// Starts writing to `file`, whose path is `path`, with what is `known` at its front. Running
    /// targets are recorded from here on, a gated child from its exec.
    ///
    /// # Errors
    /// When the file cannot be started or no thread can be started.
    pub fn start(mut self, file: File, path: &Path, known: &Features) -> Result<Recording, Error> {
        let mut ids = self.opened.ids(&self.plan).map_err(|cause| Error::System {
            action: "read the ids of perf events",
            cause,
        })?;
        name_turns(&mut ids);
        let inherit = self.target != Target::System;
        let mut account = Account::new(&self.plan, &ids);
        let mut writer = Writer::with_preface(file, &sources(&self.plan, ids), known)?;
        let running = !matches!(self.target, Target::Gated(_));
        if running {
            self.enable();
        }
        let mut build_ids = BuildIds::default();
        let mut existing = self.existing();
        build_ids.fill(&mut existing);
        account.learn_code(&existing);
        writer.records(&existing)?;
        let (commands, control) = io::pipe().map_err(|cause| Error::System {
            action: "make a pipe",
            cause,
        })?;
        let tracing_data = self.plan.tracing_data.take();
        let mut drain = Drain::new(
            self.opened,
            &self.plan,
            self.mode,
            writer,
            commands,
            inherit,
        );
        drain.observe(&self.target, account, self.notes);
        drain.knows(build_ids);
        drain.keep_room(path);
        drain.sample_at(self.frequency);
        drain.take_in(&self.early);
        if running {
            drain.program_runs();
        }
        let thread = std::thread::Builder::new()
            .name("recorder".to_owned())
            .spawn(move || {
                // If priority is not granted, a busy machine loses records, which are counted.
                prefer_this_thread();
                drain.run()
            })
            .map_err(|cause| Error::System {
                action: "start the recorder's thread",
                cause,
            })?;
        Ok(Recording {
            thread: Some(thread),
            control,
            tracing_data,
        })
    }

    /// Enables all units that are on from the start.
    fn enable(&mut self) {
        for unit in &self.plan.units {
            if unit.start != Start::WithProgram {
                continue;
            }
            for instance in &self.opened.instances {
                if instance.role == unit.role {
                    // Fails for a thread that has ended meanwhile, which needs no events.
                    let _ = instance.events[0].enable();
                }
            }
        }
    }

    fn existing(&mut self) -> Vec<u8> {
        if self.plan.units.is_empty() {
            return Vec::new();
        }
        let mut records = existing::kernel(SIDE_BAND, Path::new("/proc"));
        records.extend(existing::cgroups(SIDE_BAND, Path::new("/proc")));
        let pids = match &self.target {
            Target::Gated(_) => Vec::new(),
            Target::Pids(pids) => opening::families_of(pids, &self.proc),
            Target::System => self.proc.processes(),
        };
        let message = existing::processes(&pids, SIDE_BAND, &self.proc, &mut self.notes);
        records.extend(message);
        records
    }
}

impl Recording {
    /// Reports that the gated program now calls exec: turns and budgets start.
    pub fn released(&mut self) {
        self.send(Command::Released);
    }

    /// Ends recording and reads what is left in the rings.
    ///
    /// # Errors
    /// If the recorder's thread panicked.
    pub fn stop(mut self) -> Result<Recorded, Error> {
        self.send(Command::Stop);
        let thread = self.thread.take();
        let drained = thread.and_then(|thread| thread.join().ok());
        let drained = drained.ok_or_else(|| Error::System {
            action: "end the recorder's thread",
            cause: io::Error::other("it panicked"),
        })?;
        Ok(Recorded {
            collection: drained.collection,
            losses: drained.losses,
            counts: drained.counts,
            span: drained.span,
            tracing_data: self.tracing_data.take(),
            writer: drained.writer,
        })
    }

    fn send(&mut self, command: Command) {
        // The thread keeps the other end open until it ends, and only Stop ends it.
        let _ = self.control.write_all(&[command.byte()]);
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take() {
            self.send(Command::Stop);
            let _ = thread.join();
        }
    }
}

impl Recorded {
    /// Completes the file. Formats of tracepoints and the time span are put into `features`.
    ///
    /// # Errors
    /// If the file cannot be completed; the records are readable nevertheless.
    pub fn finish(self, features: Features) -> Result<File, WriteError> {
        self.writer.finish(&Features {
            tracing_data: self.tracing_data,
            sample_time: self.span,
            ..features
        })
    }
}

/// Opens all threads, including those born meanwhile, until there are no new ones. A thread started
/// by an opened one has inherited its events, as the record of its birth shows.
fn open_all_threads(
    opener: &mut Opener<'_>,
    pids: &[i32],
    proc: &ProcRoot,
    early: &mut Vec<u8>,
) -> Result<(), Error> {
    let required: Vec<i32> = pids.iter().flat_map(|&pid| proc.tasks(pid)).collect();
    let mut covered = FxHashSet::default();
    let mut alive = 0;
    loop {
        let fresh: Vec<i32> = opening::threads_of(pids, proc)
            .into_iter()
            .filter(|tid| !covered.contains(tid))
            .collect();
        if fresh.is_empty() {
            break;
        }
        opener.make_room(fresh.len());
        alive += opener.open_threads(&fresh, &required)?;
        covered.extend(fresh);
        let seen = early.len();
        opener.drain(early);
        for (born, by) in side_band::births(&early[seen..]) {
            if covered.contains(&by) {
                covered.insert(born);
            }
        }
    }
    match (alive, pids) {
        (0, [pid, ..]) => Err(Error::NoSuchProcess { pid: *pid }),
        _ => Ok(()),
    }
}

/// Gives sources without an instance an id of our own: the kernel counts its ids from 1.
fn name_turns(ids: &mut [Vec<u64>]) {
    for (at, ids) in (1_u64..).zip(ids) {
        if ids.is_empty() {
            ids.push(1 << 63 | at);
        }
    }
}

fn sources(plan: &Plan, ids: Vec<Vec<u64>>) -> Vec<SourceAttr> {
    let planned = plan.units.iter().flat_map(|unit| &unit.sources);
    planned
        .zip(ids)
        .map(|(source, ids)| SourceAttr {
            name: source.name.clone(),
            attr: perf_event::attr_bytes(&source.attr),
            ids,
        })
        .collect()
}
