//! Brings all pages of a paged process into memory, and keeps them there while a debugger reads
//! them.

use super::PAGE_BYTES;
use anyhow::{Context, Error, Result, anyhow, bail};
use pagewise_linux::proc::ProcRoot;
use pagewise_linux::process::interrupt;
use pagewise_model::units::Bytes;
use pagewise_wire::counter;
use pagewise_wire::settings::{Settings, VARIABLE};
use pagewise_wire::shared::RELEASED;
use pagewise_wire::snapshot;
use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Command, ExitStatus};
use std::time::{Duration, Instant};

/// Interval of progress checks.
const PAUSE: Duration = Duration::from_millis(50);
/// Time without progress after which the process counts as not responding.
const LONGEST: Duration = Duration::from_secs(10);

/// A process of a run, through the run's shared memory.
struct Process {
    pid: u32,
    shared: File,
    place: usize,
}

/// State of a process from its figures.
struct State {
    name: String,
    resident: u64,
    managed: u64,
    is_held: bool,
}

/// How filling ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filled {
    /// By an interrupt, before all pages were in memory.
    Interrupted,
    /// By an interrupt, or because the process ended.
    Released,
    /// When the command that used the pages ended.
    Used(ExitStatus),
}

/// Fills process `pid`, runs `command` or waits for an interrupt, and releases the pages.
///
/// # Errors
/// If the process does not belong to a run, does not respond, or the machine has too little memory.
pub fn fill(pid: u32, command: &[OsString], say: &dyn Fn(&str)) -> Result<Filled> {
    interrupt::install()?;
    let process = Process::find(pid)?;
    process.check_room()?;
    // Released at the end in any case; the process also notices if this one dies.
    process.want(std::process::id())?;
    let _held = Held(&process);
    let Some(state) = process.await_all()? else {
        return Ok(Filled::Interrupted);
    };
    say(&format!(
        "all pages of {} (process {pid}) are in memory, {}; its budget applies again when {} ends",
        state.name,
        Bytes(state.resident),
        command
            .first()
            .map_or_else(|| "this".into(), |name| name.to_string_lossy())
    ));
    let Some((program, arguments)) = command.split_first() else {
        while interrupt::requested().is_none() && process.state()?.is_some() {
            std::thread::sleep(PAUSE);
        }
        return Ok(Filled::Released);
    };
    let ended = Command::new(program)
        .args(arguments)
        .status()
        .with_context(|| format!("cannot run {}", program.to_string_lossy()))?;
    Ok(Filled::Used(ended))
}

/// Releases the pages when dropped.
struct Held<'a>(&'a Process);

impl Drop for Held<'_> {
    fn drop(&mut self) {
        // The process may have ended, with its run.
        let _ = self.0.want(RELEASED);
    }
}

impl Process {
    /// Finds the process's run through the settings in its environment.
    fn find(pid: u32) -> Result<Self> {
        let environment = i32::try_from(pid)
            .map_err(Error::from)
            .and_then(|pid| Ok(ProcRoot::default().environ(pid)?))
            .with_context(|| format!("--fill {pid}: cannot read its environment"))?
            .with_context(|| format!("--fill {pid}: there is no such process"))?;
        let settings = environment.iter().find(|(name, _)| name == VARIABLE);
        let settings = settings.and_then(|(_, text)| Settings::from_text(text).ok());
        let not_ours = || anyhow!("--fill {pid}: this process was not started by pagewise run");
        let settings = settings.ok_or_else(not_ours)?;
        let shared = Path::new(std::ffi::OsStr::from_bytes(settings.shared.as_bytes()));
        let shared = OpenOptions::new()
            .read(true)
            .write(true)
            .open(shared)
            .with_context(|| format!("--fill {pid}: cannot reach its run (has pagewise ended?)"))?;
        let bytes = read(&shared)?;
        let place = snapshot::processes(&bytes)
            .find(|(_, one)| one.pid() == pid && !one.has_ended())
            .map(|(place, _)| place);
        let place = place.with_context(|| {
            format!("--fill {pid}: its memory is not managed, or it has no slot for statistics")
        })?;
        Ok(Self { pid, shared, place })
    }

    /// Its figures; `None` once it has ended.
    fn state(&self) -> Result<Option<State>> {
        let bytes = read(&self.shared)?;
        let found = snapshot::processes(&bytes).find(|(place, _)| *place == self.place);
        let lives = Path::new(&format!("/proc/{}", self.pid)).exists();
        Ok(found
            .filter(|(_, one)| one.pid() == self.pid && !one.has_ended() && lives)
            .map(|(_, one)| State {
                name: String::from_utf8_lossy(one.name()).into_owned(),
                resident: counter!(one, resident_pages) * PAGE_BYTES,
                managed: counter!(one, managed_bytes),
                is_held: one.hold()[1] == std::process::id(),
            }))
    }

    /// Whether the machine has room for the evicted pages.
    fn check_room(&self) -> Result<()> {
        let Some(state) = self.state()? else {
            bail!("--fill {}: it has ended", self.pid);
        };
        let memory = ProcRoot::default().meminfo()?;
        let available = memory.and_then(|memory| memory.get("MemAvailable"));
        let missing = state.managed.saturating_sub(state.resident);
        match available {
            Some(available) if missing > available => bail!(
                "--fill {}: {} of its memory is evicted or untouched, and this machine has only {} left",
                self.pid,
                Bytes(missing),
                Bytes(available)
            ),
            _ => Ok(()),
        }
    }

    fn want(&self, who: u32) -> Result<()> {
        self.shared
            .write_all_at(&who.to_le_bytes(), snapshot::hold_at(self.place) as u64)
            .context("cannot write to the run's shared memory")
    }

    /// Waits until all pages are in memory; `None` if interrupted.
    fn await_all(&self) -> Result<Option<State>> {
        let mut moved = (Instant::now(), 0);
        loop {
            let Some(state) = self.state()? else {
                bail!("--fill {}: it has ended", self.pid);
            };
            if state.is_held {
                return Ok(Some(state));
            }
            let resident = self.resident();
            if resident != moved.1 {
                moved = (Instant::now(), resident);
            }
            if moved.0.elapsed() > LONGEST {
                bail!(
                    "--fill {}: it does not respond: it is stopped, or it is a forked child that has not used its memory yet",
                    self.pid
                );
            }
            if interrupt::requested().is_some() {
                return Ok(None);
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// Its resident memory now, according to the kernel.
    fn resident(&self) -> u64 {
        super::outside::size(self.pid).map_or(0, |size| size.resident)
    }
}

fn read(shared: &File) -> Result<Vec<u8>> {
    let mut bytes = vec![0; snapshot::BYTES];
    shared
        .read_exact_at(&mut bytes, 0)
        .context("its run is of another version of pagewise")?;
    Ok(bytes)
}
