//! `record --every`: a short recording now and then, as long as the host runs, sent to where the
//! tables of all hosts are.
//!
//! Each recording is made by a process of its own, so that between two of them next to no memory is
//! in use, and one that fails does not end the others.

use super::spool::Spool;
use crate::fleet;
use crate::{duration, size};
use anyhow::{Context, Result, bail};
use pagewise_linux::host;
use pagewise_linux::process::{Finished, Launch, Output, interrupt};
use pagewise_model::quantity::count;
use pagewise_model::run::Ending;
use pagewise_model::units::Bytes;
use std::collections::hash_map::RandomState;
use std::ffi::OsString;
use std::hash::{BuildHasher, Hasher};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// How long a recording may end, or what waits be sent, beyond the time it should take.
const PATIENCE: Duration = Duration::from_secs(120);

/// Recording now and then.
#[derive(clap::Args, Debug, Default)]
pub struct Collecting {
    /// Record again and again, beginning every TIME, until Ctrl-C
    ///
    /// Recordings begin at a random moment within TIME, so that hosts do not record in step. Tables wait in the
    /// folder of -o until they are sent to --to; without it they stay there.
    #[arg(long, value_name = "TIME", value_parser = duration::parse, requires = "duration", requires = "export",
          conflicts_with_all = ["command", "measure_overhead"])]
    every: Option<Duration>,

    /// Where to send tables: a folder, s3://BUCKET/FOLDER or gs://BUCKET/FOLDER
    ///
    /// Buckets need pagewise-fleet (pagewise help fleet). Recordings queue while the destination is unreachable.
    #[arg(long, value_name = "PLACE", requires = "every")]
    to: Option<String>,

    /// Most bytes of recordings that wait; the oldest are dropped beyond that, and counted in later
    /// ones
    #[arg(long, value_name = "SIZE", value_parser = size::positive, default_value = "1G", requires = "every")]
    spool_size: Bytes,

    /// Most of the host's CPU time that recording, tables and sending may take on average; pauses
    /// become longer than --every where it would be exceeded
    #[arg(long, value_name = "PERCENT", default_value_t = 0.1, requires = "every", value_parser = percent)]
    most_cpu: f64,

    /// The folder for the tables of one of many recordings
    #[arg(long, hide = true, value_name = "FOLDER")]
    into: Option<PathBuf>,

    /// Earlier recordings that were dropped
    #[arg(long, hide = true, value_name = "N", default_value_t = 0)]
    unsent: u64,
}

fn percent(text: &str) -> Result<f64, String> {
    let wanted: Option<f64> = text.trim_end_matches('%').parse().ok();
    wanted
        .filter(|share| *share > 0.0 && *share <= 100.0)
        .ok_or_else(|| format!("'{text}' is not above 0 and up to 100"))
}

/// What to do again and again.
pub struct Rounds<'a> {
    options: &'a Collecting,
    every: Duration,
    duration: Duration,
    folder: &'a Path,
}

impl Collecting {
    /// The rounds, unless this is one recording.
    pub fn rounds<'a>(
        &'a self,
        duration: Option<Duration>,
        folder: &'a Path,
    ) -> Result<Option<Rounds<'a>>> {
        let (Some(every), Some(duration), None) = (self.every, duration, &self.into) else {
            return Ok(None);
        };
        if every <= duration {
            bail!("--every has to be longer than --duration");
        }
        Ok(Some(Rounds {
            options: self,
            every,
            duration,
            folder,
        }))
    }

    /// Whether this process makes one of many recordings, and says nothing.
    pub fn is_one_of_many(&self) -> bool {
        self.into.is_some()
    }

    /// The folder for tables, which `-o` names unless this is one of many recordings.
    pub fn folder(&self, output: PathBuf) -> PathBuf {
        self.into.clone().unwrap_or(output)
    }

    /// Earlier recordings that were dropped.
    pub fn unsent(&self) -> u64 {
        self.unsent
    }
}

impl Rounds<'_> {
    /// Records until a signal ends it. Only a first recording that fails is an error: what is wrong
    /// then is wrong in all.
    pub fn run(&self) -> Result<ExitCode> {
        interrupt::install()?;
        let spool = Spool::open(self.folder)?;
        let host = host::snapshot();
        let mut pace = Pace::new(self.every, self.options.most_cpu, host.cpus);
        let mut message = Announced::default();
        message.begin(self, &spool)?;
        pause(pace.first());
        let mut has_recorded = false;
        while interrupt::requested().is_none() {
            let begun = Instant::now();
            pace.begin();
            let mut cpu = match self.record(&spool, &host.hostname) {
                Ok(cpu) => {
                    has_recorded = true;
                    cpu
                }
                Err(error) if !has_recorded => return Err(error),
                Err(error) => {
                    message.say(&format!("{error:#}"))?;
                    Duration::ZERO
                }
            };
            cpu += self.send(&spool, &mut message)?;
            let dropped = spool.limit(self.options.spool_size.0)?;
            message.dropped(dropped)?;
            let wait = pace.next(begun.elapsed(), cpu);
            if pace.is_stretched() {
                message.stretched(wait, self.options.most_cpu)?;
            }
            if interrupt::requested().is_none() {
                pause(wait);
            }
        }
        self.send(&spool, &mut message)?;
        Ok(ExitCode::SUCCESS)
    }

    /// Makes one recording. Returns the CPU time that it took.
    fn record(&self, spool: &Spool, host: &str) -> Result<Duration> {
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let (day, time) = date(now.as_secs());
        // Two processes may record at the same moment.
        let name = format!("{time}-{:08x}", random());
        let made = spool.next(&name);
        let unsent = spool.dropped();
        let mut command = vec![OsString::from("/proc/self/exe")];
        command.extend(std::env::args_os().skip(1));
        command.extend(["--into".into(), made.clone().into()]);
        command.extend(["--unsent".into(), unsent.to_string().into()]);
        let finished = run(&command, self.duration + PATIENCE)?;
        let cpu = cpu_time(&finished);
        let is_there = made.join("runs.parquet").exists();
        if !is_there {
            // There may be nothing.
            let _ = std::fs::remove_dir_all(&made);
            return match interrupt::requested() {
                Some(_) => Ok(cpu),
                None => bail!("a recording failed: {}", ended(finished.ending)),
            };
        }
        let host = match host {
            "" => "unknown",
            host => host,
        };
        let host = host.replace(['/', '='], "_");
        let place = format!("day={day}/host={host}/{name}");
        spool.add(&made, Path::new(&place))?;
        spool.reported(unsent)?;
        Ok(cpu)
    }

    /// Sends what waits. Returns the CPU time that it took.
    fn send(&self, spool: &Spool, message: &mut Announced) -> Result<Duration> {
        let Some(to) = &self.options.to else {
            return Ok(Duration::ZERO);
        };
        let before = spool.waiting()?.len();
        if before == 0 {
            return Ok(Duration::ZERO);
        }
        let (cpu, outcome) = match to.contains("://") {
            true => self.put(spool, to),
            false => (Duration::ZERO, spool.send(Path::new(to)).map(drop)),
        };
        let left = spool.waiting()?.len();
        message.sent(to, before - left.min(before), left, outcome)?;
        Ok(cpu)
    }

    /// Sends what waits to an object store: pagewise-fleet can.
    fn put(&self, spool: &Spool, to: &str) -> (Duration, Result<()>) {
        let put = ["put".into(), "--to".into(), OsString::from(to)];
        let mut command = vec![fleet::program().into()];
        command.extend(put);
        command.push(spool.folder().into());
        match run(&command, self.every.max(PATIENCE)) {
            Ok(finished) => {
                let outcome = match finished.ending {
                    Ending::Exited(0) => Ok(()),
                    ending => Err(anyhow::anyhow!("pagewise-fleet put: {}", ended(ending))),
                };
                (cpu_time(&finished), outcome)
            }
            Err(error) => (Duration::ZERO, Err(error)),
        }
    }
}

/// Runs a program, and ends it with us or after `patience`.
fn run(command: &[OsString], patience: Duration) -> Result<Finished> {
    let mut launch = Launch::from_command(command).context("a program")?;
    launch.output = Output::Stderr;
    let running = launch.spawn()?;
    // Until the end is requested: a recorder then keeps what it has.
    let finished = running.wait_within(patience, PATIENCE)?;
    finished.with_context(|| format!("{} did not end", command[0].display()))
}

fn cpu_time(finished: &Finished) -> Duration {
    Duration::from_nanos(finished.cost.user.0 + finished.cost.system.0)
}

fn ended(ending: Ending) -> String {
    match ending {
        Ending::Exited(status) => format!("status {status}"),
        Ending::Killed(signal) => pagewise_model::run::signal_name(signal),
        Ending::Running => "still running".to_owned(),
    }
}

/// When to record.
struct Pace {
    every: Duration,
    /// Share of one CPU that may be used.
    share: f64,
    begun: Option<Instant>,
    used: Duration,
    stretched: bool,
}

impl Pace {
    fn new(every: Duration, percent: f64, cpus: u32) -> Self {
        Self {
            every,
            share: percent / 100.0 * f64::from(cpus.max(1)),
            begun: None,
            used: Duration::ZERO,
            stretched: false,
        }
    }

    /// Until the first recording.
    fn first(&self) -> Duration {
        self.every.mul_f64(fraction())
    }

    /// The first recording begins.
    fn begin(&mut self) {
        self.begun.get_or_insert_with(Instant::now);
    }

    /// Until the next recording, after one that has taken `elapsed` and `cpu`.
    fn next(&mut self, elapsed: Duration, cpu: Duration) -> Duration {
        self.used += cpu;
        // A pause pays for this recording and for what earlier ones took too much.
        let since = self.begun.map_or(Duration::ZERO, |begun| begun.elapsed());
        let owed = self.used.div_f64(self.share).saturating_sub(since);
        let usual = self.every.saturating_sub(elapsed);
        self.stretched = owed > usual;
        // A twentieth more or less, so that nothing that happens every so often stays in step.
        usual.mul_f64(0.95 + fraction() / 10.0).max(owed)
    }

    fn is_stretched(&self) -> bool {
        self.stretched
    }
}

/// What was said, so that a lasting condition is reported once.
#[derive(Default)]
struct Announced {
    is_away: bool,
    has_dropped: bool,
    is_stretched: bool,
}

impl Announced {
    fn say(&self, words: &str) -> io::Result<()> {
        writeln!(io::stderr(), "pagewise: {words}")
    }

    fn begin(&self, rounds: &Rounds<'_>, spool: &Spool) -> Result<()> {
        let to = match &rounds.options.to {
            Some(to) => format!("sends tables to {to}"),
            None => format!("keeps tables in {}", spool.folder().display()),
        };
        let (duration, every) = (rounds.duration, rounds.every);
        self.say(&format!("records {duration:?} every {every:?}, and {to}"))?;
        match spool.waiting()?.len() as u64 {
            0 => {}
            waiting => self.say(&format!("waiting from before: {}", recordings(waiting)))?,
        }
        Ok(())
    }

    fn sent(&mut self, to: &str, sent: usize, left: usize, outcome: Result<()>) -> io::Result<()> {
        let (sent, left) = (recordings(sent as u64), recordings(left as u64));
        match outcome {
            Err(error) if !self.is_away => {
                self.is_away = true;
                self.say(&format!("{error:#}; waiting to be sent: {left}"))
            }
            Ok(()) if self.is_away => {
                (self.is_away, self.has_dropped) = (false, false);
                self.say(&format!("{to} is there again; sent: {sent}"))
            }
            _ => Ok(()),
        }
    }

    fn dropped(&mut self, dropped: u64) -> io::Result<()> {
        if dropped == 0 || std::mem::replace(&mut self.has_dropped, true) {
            return Ok(());
        }
        self.say("more waits than --spool-size allows: the oldest recordings are dropped, and counted in later ones")
    }

    fn stretched(&mut self, wait: Duration, most: f64) -> io::Result<()> {
        if std::mem::replace(&mut self.is_stretched, true) {
            return Ok(());
        }
        let seconds = wait.as_secs_f64();
        self.say(&format!(
            "the next recording begins in {seconds:.0} s: sooner would take more than {most} % of the CPUs (--most-cpu)"
        ))
    }
}

fn recordings(number: u64) -> String {
    match number {
        1 => "1 recording".to_owned(),
        _ => format!("{} recordings", count(number)),
    }
}

/// Sleeps, unless a signal requests the end.
fn pause(time: Duration) {
    const STEP: Duration = Duration::from_millis(250);
    let until = Instant::now() + time;
    while interrupt::requested().is_none() {
        match until.checked_duration_since(Instant::now()) {
            Some(left) if !left.is_zero() => std::thread::sleep(left.min(STEP)),
            _ => return,
        }
    }
}

fn random() -> u32 {
    let hash = RandomState::new().build_hasher().finish();
    u32::try_from(hash >> 32).unwrap_or(0)
}

/// A random number from 0 to 1.
fn fraction() -> f64 {
    f64::from(random()) / f64::from(u32::MAX)
}

/// The day and the time of day (UTC) at this many seconds since 1970: `2026-11-26`, `235959`.
fn date(seconds: u64) -> (String, String) {
    let (mut days, time) = (seconds / 86_400, seconds % 86_400);
    let is_leap = |year: u64| {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    };
    let mut year = 1970;
    while days >= 365 + u64::from(is_leap(year)) {
        days -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let february = 28 + u64::from(is_leap(year));
    let lengths = [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 0;
    while days >= lengths[month] {
        days -= lengths[month];
        month += 1;
    }
    let (hour, minute, second) = (time / 3600, time / 60 % 60, time % 60);
    (
        format!("{year}-{:02}-{:02}", month + 1, days + 1),
        format!("{hour:02}{minute:02}{second:02}"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (seconds, day, time) in [
            (0, "1970-01-01", "000000"),
            (951_782_399, "2000-02-28", "235959"),
            (951_782_400, "2000-02-29", "000000"),
            (4_107_542_400, "2100-03-01", "000000"),
            (1_795_735_445, "2026-11-26", "232405"),
        ] {
            assert_eq!(date(seconds), (day.to_owned(), time.to_owned()));
        }
    }

    #[test]
    fn pauses_pay_for_what_was_used() {
        let every = Duration::from_secs(600);
        let mut pace = Pace::new(every, 0.1, 2);
        pace.begin();
        // 0.2 % of one CPU: a second is worth 500.
        let usual = pace.next(Duration::from_secs(10), Duration::from_secs(1));
        assert!(!pace.is_stretched());
        assert!((560..=620).contains(&usual.as_secs()), "{usual:?}");
        let longer = pace.next(Duration::from_secs(10), Duration::from_secs(2));
        assert!(pace.is_stretched());
        assert!((1499..=1500).contains(&longer.as_secs()), "{longer:?}");
    }
}
