//! A capture with function_graph, from the gate of the program to the finished file.

use super::choice::Choice;
use super::cost::{Cost, Spent};
use super::ended::{Ended, Setting};
use super::output::Output;
use super::reading::Reading;
use super::schedule::{Schedule, Stretch};
use super::stretches::{Cutter, Piece};
use super::subject::Subject;
use super::{Captured, Request, plural, recovered};
use crate::observe;
use anyhow::Context;
use pagewise_linux::host;
use pagewise_linux::proc::ProcRoot;
use pagewise_linux::process::{Finished, Gated, Launch, Running, interrupt};
use pagewise_linux::sys::machine::thread_cpu_time;
use pagewise_linux::tracefs::capture::{Capture, Options};
use pagewise_linux::tracefs::functions::Function;
use pagewise_linux::tracefs::{Tracefs, guard};
use pagewise_model::histogram::Histogram;
use pagewise_model::trace_note::{CaptureNote, TraceNote};
use pagewise_model::units::Nanos;
use std::time::{Duration, Instant};

/// How often the buffers are checked.
const LOOK: Duration = Duration::from_millis(50);
/// Buffers fuller than this are read while the program runs; below it, reading waits, since it
/// takes CPU time from the program.
const FULL: f64 = 0.4;
/// A survey that has seen too few faults continues for up to this many times its length.
const LONGEST_SURVEY: u32 = 10;
/// Bytes of text read at a time.
const CHUNK: usize = 256 << 10;

/// Captures and writes the trace; `say` receives progress messages.
///
/// # Errors
/// If the tracer can't be used, the program can't be started, or the file can't be written. tracefs
/// is restored in any case.
pub fn capture(
    tracefs: &Tracefs,
    request: &Request,
    say: &dyn Fn(&str),
) -> anyhow::Result<Captured> {
    interrupt::install()?;
    let subject = &request.subject;
    let gated = subject.launch().map(Launch::spawn_gated).transpose()?;
    let mut capture = Capture::prepare(tracefs, &options(request))?;
    if let Some(earlier) = capture.recovered() {
        say(&recovered(earlier));
    }
    capture.watch(&subject.target(gated.as_ref())?)?;
    let mut output = Output::create(&request.output)?;
    output.text(capture.header()?.as_bytes())?;
    output.note(&TraceNote::Capture(note_of(&capture, request)))?;
    say(&beginning(&capture, subject));
    let mut session = Session::begin(capture, output, request, say)?;
    let running = gated.map(Gated::release).transpose()?;
    let followed = session.follow(running, subject);
    // Whatever went wrong, the recorded data is kept and tracefs is restored.
    let ended = session.end()?;
    let finished = followed?;
    Ok(Captured {
        summary: ended.summary(finished.as_ref()),
        finished,
    })
}

fn options(request: &Request) -> Options {
    Options {
        buffer_kib: request
            .buffer
            .map_or_else(usual_buffer_kib, |bytes| bytes.0 >> 10),
        depth: request.depth,
        events: request.events,
        roots: request.roots.clone(),
        forced: request.forced,
        journal: guard::usual_folder(),
    }
}

/// The first message.
fn beginning(capture: &Capture, subject: &Subject) -> String {
    let functions = capture.functions();
    let mut text = format!(
        "tracing {}: {} inside {}, {}",
        subject.words(),
        plural(functions.candidates.len() as u64, "function"),
        functions.roots.join(", "),
        match capture.is_in_instance() {
            true => "in an instance of its own",
            false => "with the kernel's only tracer (instances cannot graph before Linux 6.12)",
        }
    );
    if let Some(root) = &functions.guessed_root {
        text += &format!(
            "; no known entry function of faults is traceable here, {root} looks like one"
        );
    }
    text
}

/// 32 MiB for each CPU, but at most a tenth of the available memory.
fn usual_buffer_kib() -> u64 {
    const USUAL_KIB: u64 = 32 << 10;
    let memory = ProcRoot::default().meminfo().ok().flatten();
    let available = memory.and_then(|memory| memory.get("MemAvailable"));
    let cpus = std::thread::available_parallelism().map_or(1, |count| count.get() as u64);
    available.map_or(USUAL_KIB, |bytes| (bytes / 1024 / 10 / cpus).min(USUAL_KIB))
}

fn note_of(capture: &Capture, request: &Request) -> CaptureNote {
    CaptureNote {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        kernel: host::snapshot().kernel,
        command: request.subject.command(),
        roots: capture.functions().roots.clone(),
        events: capture.events().to_vec(),
        depth: request.depth,
        buffer_kib: capture.buffer_kib(),
        sleep_time: true,
    }
}

/// A capture in progress.
struct Session<'a> {
    request: &'a Request,
    say: &'a dyn Fn(&str),
    capture: Capture,
    output: Output,
    schedule: Schedule,
    stretch: Stretch,
    /// The stretch whose text is being read.
    reading: Option<Stretch>,
    cutter: Cutter,
    /// Whether the survey is over but its text is not fully read.
    awaits_census: bool,
    /// Whether too much is left to read.
    is_behind: bool,
    /// End of the stretch; `None` for the rest of the run.
    until: Option<Instant>,
    /// When recording of this stretch started.
    since: Instant,
    /// The functions traced in stretches with paths.
    functions: Vec<Function>,
    choice: Option<Choice>,
    rejected: Vec<String>,
    /// Faults traced with paths.
    paths: Reading,
    /// The present stretch with only the roots.
    roots: Reading,
    root_only: Histogram,
    spent: Spent,
    /// Whether the file has reached its maximum size.
    is_full: bool,
    chunk: Vec<u8>,
    cpu_before: Nanos,
}

impl<'a> Session<'a> {
    fn begin(
        capture: Capture,
        output: Output,
        request: &'a Request,
        say: &'a dyn Fn(&str),
    ) -> anyhow::Result<Self> {
        let mut session = Self {
            functions: capture.functions().candidates.clone(),
            schedule: Schedule::new(request.survey, request.calibrates),
            request,
            say,
            capture,
            output,
            stretch: Stretch::Paths,
            reading: None,
            cutter: Cutter::default(),
            awaits_census: false,
            is_behind: false,
            until: None,
            since: Instant::now(),
            choice: None,
            rejected: Vec::new(),
            paths: Reading::with_census(),
            roots: Reading::default(),
            root_only: Histogram::default(),
            spent: Spent::default(),
            is_full: false,
            chunk: Vec::new(),
            cpu_before: thread_cpu_time(),
        };
        session.begin_stretch()?;
        Ok(session)
    }

    /// Continues until the program ends, the time is over, or the user stops it.
    fn follow(
        &mut self,
        mut running: Option<Running>,
        subject: &Subject,
    ) -> anyhow::Result<Option<Finished>> {
        let started = Instant::now();
        let proc = ProcRoot::default();
        loop {
            let over = self
                .request
                .duration
                .is_some_and(|most| started.elapsed() >= most);
            if interrupt::requested().is_some() {
                return Ok(running.map(observe::end).transpose()?);
            }
            if over {
                return Ok(running.map(observe::end_in_time).transpose()?);
            }
            let wait = if self.is_behind { Duration::ZERO } else { LOOK };
            match &mut running {
                Some(program) => {
                    if let Some(finished) = program.wait_for(wait)? {
                        return Ok(Some(finished));
                    }
                }
                None => std::thread::sleep(wait),
            }
            let watched = subject.watched();
            if !watched.is_empty() && !watched.iter().any(|&pid| observe::is_alive(&proc, pid)) {
                (self.say)("the process has ended");
                return Ok(None);
            }
            if let Err(error) = self.turn() {
                // The program should not suffer if our disk is full.
                (self.say)(&format!(
                    "tracing stops here: {error:#}. The program continues."
                ));
                self.stop_early()?;
            }
        }
    }

    /// Reads what is due and switches to the next stretch when it is time.
    fn turn(&mut self) -> anyhow::Result<()> {
        if self.is_full {
            return Ok(());
        }
        if self.until.is_some_and(|until| Instant::now() >= until) {
            self.drain(CHUNK)?;
            if self.may_survey_longer() {
                self.until = Some(Instant::now() + self.request.survey);
                return Ok(());
            }
            let changing = Instant::now();
            self.change_stretch()?;
            self.spent.last_change = changing.elapsed();
        }
        // The next stretch waits for the result of the survey.
        self.is_behind = self.capture.fill() > FULL || self.awaits_census;
        if self.is_behind {
            let found = self.drain(CHUNK)?;
            self.awaits_census &= found;
        }
        if self.output.written() >= self.request.max_size.0 {
            (self.say)(&format!(
                "{} has reached --max-size: tracing stops here, the program continues",
                self.output.path().display()
            ));
            self.stop_early()?;
        }
        Ok(())
    }

    /// Whether the survey has seen too little, and has time left.
    fn may_survey_longer(&self) -> bool {
        self.stretch == Stretch::Survey
            && !self.paths.is_census_enough()
            && self.since.elapsed() < self.request.survey * LONGEST_SURVEY
    }

    fn stop_early(&mut self) -> anyhow::Result<()> {
        self.capture.off()?;
        self.spent.add(self.stretch, self.since.elapsed());
        self.is_full = true;
        Ok(())
    }

    fn change_stretch(&mut self) -> anyhow::Result<()> {
        self.capture.off()?;
        self.spent.add(self.stretch, self.since.elapsed());
        self.awaits_census |= self.stretch == Stretch::Survey;
        self.begin_stretch()
    }

    fn begin_stretch(&mut self) -> anyhow::Result<()> {
        let (stretch, length) = self.schedule.next(self.spent.last_change);
        let functions = match stretch {
            Stretch::RootOnly => self.capture.functions().root_functions(),
            Stretch::Survey | Stretch::Paths => self.functions.clone(),
        };
        let selection = self.capture.select(&functions)?;
        for name in selection.rejected {
            if !self.rejected.contains(&name) {
                self.rejected.push(name);
            }
        }
        self.cutter.begin(self.capture.now_us()?, stretch);
        self.stretch = stretch;
        self.since = Instant::now();
        self.until = length.map(|length| self.since + length);
        Ok(self.capture.on()?)
    }

    /// Reads text from the kernel; returns whether there was any.
    fn drain(&mut self, most: usize) -> anyhow::Result<bool> {
        self.chunk.clear();
        let found = self.capture.read(&mut self.chunk, most)?;
        let chunk = std::mem::take(&mut self.chunk);
        let mut cutter = std::mem::take(&mut self.cutter);
        let result = cutter.feed(&chunk, |piece| self.piece(piece));
        (self.chunk, self.cutter) = (chunk, cutter);
        result.map(|()| found)
    }

    /// Takes a piece of the text.
    fn piece(&mut self, piece: Piece<'_>) -> anyhow::Result<()> {
        match (piece, self.reading) {
            (Piece::Begin(next), _) => {
                self.conclude()?;
                self.reading = Some(next);
                Ok(())
            }
            // Nothing was recorded before the first stretch.
            (Piece::Text(_), None) => Ok(()),
            (Piece::Text(text), Some(Stretch::RootOnly)) => {
                self.roots.feed(text);
                Ok(())
            }
            (Piece::Text(text), Some(Stretch::Survey | Stretch::Paths)) => {
                self.paths.feed(text);
                self.output.text(text)
            }
        }
    }

    /// Evaluates the stretch that has been read completely.
    fn conclude(&mut self) -> anyhow::Result<()> {
        match self.reading {
            Some(Stretch::RootOnly) => {
                let latency = std::mem::take(&mut self.roots).faults().fault_latencies();
                self.root_only.merge(&latency);
                self.paths.pause();
                self.output.note(&TraceNote::RootOnly { latency })?;
            }
            Some(Stretch::Survey) => {
                let census = self.paths.take_census().unwrap_or_default();
                let choice = census.choose(&self.functions);
                self.functions.clone_from(&choice.functions);
                self.awaits_census = false;
                self.output.note(&TraceNote::Functions {
                    count: choice.functions.len() as u64,
                    reason: choice.reason(),
                })?;
                self.choice = Some(choice);
            }
            Some(Stretch::Paths) | None => {}
        }
        self.output.flush()
    }

    /// Stops recording and reads the buffers to their end.
    fn read_to_end(&mut self) -> anyhow::Result<()> {
        if !self.is_full {
            self.stop_early()?;
        }
        while self.drain(CHUNK)? {}
        let mut cutter = std::mem::take(&mut self.cutter);
        cutter.finish(|piece| self.piece(piece))?;
        self.conclude()
    }

    /// Ends the capture and the file.
    fn end(mut self) -> anyhow::Result<Ended> {
        let ended = self.read_to_end();
        let lost: Vec<(u32, u64)> = self
            .capture
            .stats()
            .into_iter()
            .map(|(cpu, stats)| (cpu, stats.lost()))
            .filter(|(_, events)| *events > 0)
            .collect();
        let setting = Setting::new(&self.capture);
        let differences = self.capture.finish()?;
        for &(cpu, events) in &lost {
            self.output.note(&TraceNote::Lost { cpu, events })?;
        }
        let path = self.output.path().to_owned();
        let size = self.output.finish();
        ended
            .and(size)
            .map(|size| Ended {
                cost: Cost::new(&self.paths, &self.root_only, &self.spent),
                own_cpu: Nanos(thread_cpu_time().0.saturating_sub(self.cpu_before.0)),
                setting,
                choice: self.choice,
                rejected: self.rejected,
                lost,
                differences,
                path: path.clone(),
                size,
            })
            .with_context(|| format!("the trace in {} is incomplete", path.display()))
    }
}
