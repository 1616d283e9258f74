//! A server under a load: started, waited for, driven, stopped.
//!
//! The load's run is measured: its elapsed time, and the usage of the server's processes meanwhile.
//! The start and end of the server do not count, nor does the usage of the load. CPU time is that
//! of the kernel's task clock, which includes every child, even one forked for a connection that no
//! process waits for; `/proc` provides the split into user and system time, and faults. If perf
//! events are not allowed, CPU time is also that of `/proc`, mostly in clock ticks of 10 ms, and
//! without such children: a load should keep the server busy for a second.

use super::group::Group;
use crate::observe::{Observation, ObserveOptions, Subject, observe_while};
use anyhow::{Context, Result};
use pagewise_linux::memcg::temporary::Temporary;
use pagewise_linux::proc::{ProcRoot, Tree, TreeReading, family, is_listened_on, listening_ports};
use pagewise_linux::process::{Finished, Input, Launch, Output, interrupt};
use pagewise_model::advice::{Setting, Settings};
use pagewise_model::run::{Ending, RunCost};
use pagewise_model::secrets;
use pagewise_model::units::{Bytes, Nanos};
use std::ffi::OsString;
use std::fmt;
use std::time::{Duration, Instant};

/// The load of a server, and when to start it.
#[derive(Clone, Debug)]
pub struct Load {
    /// A shell command.
    pub command: OsString,
    /// When the server is ready.
    pub ready: Ready,
    /// A server that is not ready after this time has failed.
    pub within: Duration,
}

/// When a server is ready to be driven.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ready {
    /// Once one of its processes listens on a TCP port.
    Listens,
    /// Once a process listens on this port.
    Port(u16),
    /// After this time.
    After(Duration),
}

/// The variable that contains the server's port, for the load.
const PORT: &str = "PAGEWISE_PORT";
/// Interval of checks whether the server listens.
const LOOK: Duration = Duration::from_millis(10);
/// A server that listens on several ports opens them within this time.
const SETTLES: Duration = Duration::from_millis(50);
/// Time between two readings of the server's processes while it is driven.
const INTERVAL: Duration = Duration::from_millis(100);

/// Why a server was not driven to the end of its load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// `server` or `load`.
    pub who: &'static str,
    /// What it did.
    pub how: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "the {} {}", self.who, self.how)
    }
}

impl std::error::Error for Failure {}

fn of_server<T>(how: impl Into<String>) -> Result<T> {
    let (who, how) = ("server", how.into());
    Err(Failure { who, how }.into())
}

fn of_load<T>(load: &Load, ending: Ending) -> Result<T> {
    let command = secrets::masked_text(&load.command.to_string_lossy());
    let how = format!("'{command}' {}", ending.words());
    Err(Failure { who: "load", how }.into())
}

/// A server that is ready. Ended with all its processes when dropped.
struct Server {
    group: Group,
    port: Option<u16>,
}

/// Observes a server while the load drives it, and then ends it.
///
/// # Errors
/// [`Failure`] if the server was not driven to the end; otherwise as [`crate::observe::observe`].
pub fn observe_driven(
    options: &ObserveOptions,
    launch: &Launch,
    load: &Load,
) -> Result<Observation> {
    interrupt::install()?;
    let mut server = Server::start(launch, load, None)?;
    let options = ObserveOptions {
        subject: Subject::Processes(vec![server.group.pid()]),
        ..options.clone()
    };
    let mut driver = None;
    let mut outcome = Ok(None);
    let observation = observe_while(&options, &mut || {
        outcome = step(&mut driver, &server, load, &launch.output);
        matches!(outcome, Ok(None))
    })?;
    let was_asked = interrupt::requested().is_some();
    match outcome? {
        _ if was_asked => Ok(observation),
        Some(finished) => server.judge(load, &finished).map(|()| observation),
        None => match server.group.wait_for(INTERVAL)? {
            Some(end) => of_server(format!("{} while it was driven", end.ending.words())),
            // The time for observing is over.
            None => Ok(observation),
        },
    }
}

/// Starts the load, or checks whether it has ended.
fn step(
    driver: &mut Option<Group>,
    server: &Server,
    load: &Load,
    output: &Output,
) -> Result<Option<Finished>> {
    match driver {
        Some(driver) => driver.wait_for(Duration::ZERO),
        None => {
            *driver = Some(server.begin(load, output)?);
            Ok(None)
        }
    }
}

/// Cost of one start, load and stop of a server; `None` if the load took longer than `patience`.
///
/// # Errors
/// [`Failure`] if the server was not driven to the end.
pub(super) fn once(
    launch: &Launch,
    load: &Load,
    room: Option<&Temporary>,
    patience: Duration,
) -> Result<Option<Finished>> {
    let mut server = Server::start(launch, load, room)?;
    let Some(cost) = server.drive(load, &launch.output, patience)? else {
        return Ok(None);
    };
    let whole = server.group.stop()?.map(|finished| finished.cost);
    let whole = whole.unwrap_or_default();
    Ok(Some(Finished {
        ending: Ending::Exited(0),
        cost: RunCost {
            max_rss: cost.max_rss.max(whole.max_rss),
            voluntary_switches: whole.voluntary_switches,
            involuntary_switches: whole.involuntary_switches,
            ..cost
        },
    }))
}

impl Server {
    fn start(launch: &Launch, load: &Load, room: Option<&Temporary>) -> Result<Self> {
        let own = i32::try_from(std::process::id()).context("no process id")?;
        if let Ready::Port(port) = load.ready
            && is_listened_on(&ProcRoot::default(), own, port)?
        {
            return of_server(format!(
                "was not started: another process already listens on port {port}"
            ));
        }
        let mut server = Self {
            group: Group::start(launch, room)?,
            port: None,
        };
        server.await_ready(load)?;
        Ok(server)
    }

    fn await_ready(&mut self, load: &Load) -> Result<()> {
        let began = Instant::now();
        loop {
            if let Some(end) = self.group.wait_for(LOOK)? {
                return of_server(format!(
                    "{} before it was ready: it must run in the foreground, and its port must be free",
                    end.ending.words()
                ));
            }
            if interrupt::requested().is_some() {
                return of_server("was not ready yet when it was interrupted");
            }
            if self.is_ready(load.ready, began.elapsed())? {
                return Ok(());
            }
            if began.elapsed() >= load.within {
                return of_server(format!(
                    "{} after {}. --port N names the port; --ready-after 2s is for servers that listen on none",
                    load.ready.missed(),
                    Nanos::from(load.within)
                ));
            }
        }
    }

    fn is_ready(&mut self, ready: Ready, elapsed: Duration) -> Result<bool> {
        let proc = ProcRoot::default();
        let pid = self.group.pid();
        match ready {
            Ready::After(time) => return Ok(elapsed >= time),
            Ready::Port(port) => {
                self.port = is_listened_on(&proc, pid, port)?.then_some(port);
            }
            Ready::Listens => {
                let ports = || listening_ports(&proc, &family(&proc, pid));
                if !ports()?.is_empty() {
                    std::thread::sleep(SETTLES);
                    self.port = ports()?.first().copied();
                }
            }
        }
        Ok(self.port.is_some())
    }

    /// Starts the load.
    fn begin(&self, load: &Load, output: &Output) -> Result<Group> {
        let port = self.port.map(|port| Setting::Env {
            name: PORT.to_owned(),
            value: port.to_string(),
        });
        let launch = Launch {
            program: "sh".into(),
            args: vec!["-c".into(), load.command.clone()],
            settings: Settings(port.into_iter().collect()),
            input: Input::Null,
            output: output.clone(),
        };
        Group::start(&launch, None)
    }

    /// Drives it once: returns the usage of its processes meanwhile, and the load's elapsed time.
    fn drive(
        &mut self,
        load: &Load,
        output: &Output,
        patience: Duration,
    ) -> Result<Option<RunCost>> {
        let Some(mut tree) = Tree::new(ProcRoot::default(), self.group.pid())? else {
            return of_server("ended before it was driven");
        };
        let began = Instant::now();
        let used_before = self.group.cpu_time();
        let mut driver = self.begin(load, output)?;
        let mut peak = Bytes(0);
        loop {
            let finished = driver.wait_for(INTERVAL)?;
            let reading = tree.read();
            peak = peak.max(largest(&reading));
            if let Some(finished) = finished {
                let used = self.group.cpu_time().zip(used_before);
                self.judge(load, &finished)?;
                let seen = cost(&reading, finished.cost.wall, peak);
                return Ok(Some(match used {
                    Some((now, before)) => with_cpu_time(seen, now - before),
                    None => seen,
                }));
            }
            if let Some(end) = self.group.wait_for(Duration::ZERO)? {
                return of_server(format!("{} while it was driven", end.ending.words()));
            }
            if interrupt::requested().is_some() || began.elapsed() >= patience {
                return Ok(None);
            }
        }
    }

    /// Whether the load ended successfully, and the server is alive.
    fn judge(&mut self, load: &Load, finished: &Finished) -> Result<()> {
        // A server that dies closes its connections before it can be waited for.
        let patience = match finished.ending {
            Ending::Exited(0) => Duration::ZERO,
            _ => SETTLES,
        };
        if let Some(end) = self.group.wait_for(patience)? {
            return of_server(format!("{} while it was driven", end.ending.words()));
        }
        match finished.ending {
            Ending::Exited(0) => Ok(()),
            other => of_load(load, other),
        }
    }
}

impl Ready {
    fn missed(self) -> String {
        match self {
            Self::Port(port) => format!("does not listen on port {port}"),
            _ => "listens on no TCP port".to_owned(),
        }
    }
}

fn largest(reading: &TreeReading) -> Bytes {
    let sizes = reading.processes.iter().map(|process| process.rss);
    sizes.max().unwrap_or_default()
}

fn cost(reading: &TreeReading, wall: Nanos, max_rss: Bytes) -> RunCost {
    RunCost {
        wall,
        user: reading.point.user,
        system: reading.point.system,
        minor_faults: reading.point.minor_faults,
        major_faults: reading.point.major_faults,
        max_rss,
        ..RunCost::default()
    }
}

/// The same cost with this CPU time, split in the same proportion.
fn with_cpu_time(seen: RunCost, cpu: Nanos) -> RunCost {
    let share = seen.system.0 as f64 / seen.cpu().0.max(1) as f64;
    let system = Nanos::from_secs_f64(cpu.as_secs_f64() * share);
    RunCost {
        user: cpu - system,
        system,
        ..seen
    }
}

#[cfg(test)]
mod tests;
