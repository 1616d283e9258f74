//! A server under a load: its options on the command line.

use crate::duration::parse as duration;
use anyhow::{Error, anyhow};
use pagewise_linux::proc::ProcRoot;
use pagewise_operate::experiment::{Load, Ready};
use pagewise_report::visible::command_line;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A server that is not ready after this time has failed: long enough for a cold start of a virtual
/// machine, short enough for a waiting user.
const WITHIN: Duration = Duration::from_secs(60);

/// The load, and when it may start.
#[derive(clap::Args, Debug)]
pub struct ServerArgs {
    /// Shell command that drives the program, a server; PAGEWISE_PORT holds the port that the server
    /// listens on. The server is started before it and stopped after it
    #[arg(long, value_name = "CMD", conflicts_with_all = ["pid", "duration"])]
    load: Option<OsString>,

    /// The server is ready when it listens on this TCP port [default: the first that it listens on]
    #[arg(long, value_name = "PORT", requires = "load", value_parser = clap::value_parser!(u16).range(1..))]
    port: Option<u16>,

    /// The server is ready after this time, such as 2s, whatever it listens on
    #[arg(long, value_name = "TIME", requires = "load", conflicts_with = "port", value_parser = duration)]
    ready_after: Option<Duration>,
}

impl ServerArgs {
    pub fn has_load(&self) -> bool {
        self.load.is_some()
    }

    pub fn load(&self) -> Option<Load> {
        let ready = match (self.port, self.ready_after) {
            (Some(port), _) => Ready::Port(port),
            (None, Some(time)) => Ready::After(time),
            (None, None) => Ready::Listens,
        };
        Some(Load {
            command: self.load.clone()?,
            ready,
            within: WITHIN,
        })
    }
}

/// Why no proof is possible with a running process, and the command to type instead.
pub fn not_by_number(pid: i32) -> Error {
    let proc = ProcRoot::default();
    match command_of(&proc, pid) {
        Some(command) => anyhow!(
            "a proof starts its program repeatedly, so it cannot use process {pid}. Let it start the server itself and drive it with a load (stop the process first if both need the same port):\n  {}pagewise doctor --prove --load 'COMMAND THAT DRIVES IT' -- {command}",
            elsewhere(&proc, pid)
        ),
        None => {
            anyhow!("there is no process {pid}: it may just have ended. `ps -e` lists what runs")
        }
    }
}

/// The command line of a process; if the process overwrote it, only the path of its program.
fn command_of(proc: &ProcRoot, pid: i32) -> Option<String> {
    let words = proc.cmdline(pid).ok().flatten()?;
    let exe = || Some(proc.exe(pid).ok().flatten()?.into_os_string());
    let words = match words.as_slice() {
        [] => vec![exe()?],
        [title] if title.to_string_lossy().contains(' ') => {
            vec![exe().unwrap_or_else(|| title.clone()), "ARGUMENTS".into()]
        }
        _ => words,
    };
    let words: Vec<String> = words
        .iter()
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    Some(command_line(&words))
}

/// `cd FOLDER && ` if the process runs in a different folder.
fn elsewhere(proc: &ProcRoot, pid: i32) -> String {
    let own = std::env::current_dir().ok();
    let its = std::fs::read_link(proc.process_path(pid, "cwd")).ok();
    let is_known = |folder: &PathBuf| folder.is_dir() && folder != Path::new("/");
    match its.filter(|its| is_known(its) && own.as_ref() != Some(its)) {
        Some(folder) => {
            let folder = command_line(&[folder.to_string_lossy().into_owned()]);
            format!("cd {folder} && ")
        }
        None => String::new(),
    }
}
