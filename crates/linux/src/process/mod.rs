//! Starting the observed or compared program, and waiting for it.
//!
//! [`Launch`] describes what to run. [`Launch::spawn_gated`] forks a child that waits before
//! `execve(2)`, so that perf events can be attached with `enable_on_exec` and see its first
//! instruction. [`Gated::release`] lets it continue and reports a failed exec as an error with the
//! shell's status. [`Running::wait`] returns its cost, including waited-for children.
//!
//! The child stays in our process group and keeps our terminal, so job control and Ctrl-C work as
//! usual; see [`interrupt`] for our side.

pub mod client;
pub mod environment;
pub mod interrupt;
pub mod library;
mod lookup;
mod nodes;
mod orphans;
mod running;
mod stopped;
mod to_end;
mod usage;

pub use orphans::{adopt, still_running};
pub use running::{Finished, Gated, Running};
pub use stopped::{ThreadRegisters, registers, while_stopped};

pub use crate::sys::file_lock::{is_byte_locked, try_lock};
pub use crate::sys::own_code::release as release_own_code;
pub use crate::sys::process::effective_user;
pub use crate::sys::process::share_memory;

use crate::sys::numa::Nodes;
use crate::sys::process as sys;
use environment::Environment;
use pagewise_model::advice::{Setting, Settings};
use std::ffi::{CString, OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Where the program's standard output and error go.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Output {
    /// The same as ours.
    #[default]
    Inherit,
    /// Both to our standard error: standard output is reserved for our own results.
    Stderr,
    /// To `/dev/null`.
    Null,
    /// Both to this file, created or truncated.
    Capture(PathBuf),
}

/// Where the program's standard input comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Input {
    /// The same as ours.
    #[default]
    Inherit,
    /// `/dev/null`.
    Null,
    /// This file, from its start.
    File(PathBuf),
}

/// Sends a signal to any process.
///
/// # Errors
/// `ESRCH` when it is gone, `EPERM` when it is not ours.
pub fn signal(pid: u32, signal: i32) -> io::Result<()> {
    let pid = i32::try_from(pid).map_err(|_| io::ErrorKind::InvalidInput)?;
    sys::kill(pid, signal)
}

/// What to run and how.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Launch {
    /// Program: a path, or a name to look up in `PATH`.
    pub program: OsString,
    /// Its arguments, without its own name.
    pub args: Vec<OsString>,
    /// Settings on top of our environment.
    pub settings: Settings,
    /// Standard output and error.
    pub output: Output,
    /// Standard input.
    pub input: Input,
}

/// What to type instead of a program that is not there.
fn remedy(program: &OsStr) -> &'static str {
    let words = program.to_string_lossy();
    if let Some((name, _)) = words.split_once('=')
        && !name.is_empty()
        && !name.contains('/')
    {
        return "without a shell, variables are set by env, as in: env NAME=VALUE PROGRAM";
    }
    match words.split_once(' ') {
        Some((first, _)) if !first.contains('/') || Path::new(first).exists() => {
            "give it and its arguments as words of their own, or use sh -c 'COMMAND'"
        }
        _ => "check the spelling, or give its path",
    }
}

/// Why a program could not be started or waited for.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No such program.
    #[error("there is no program '{}': {}", .program.display(), remedy(program))]
    NotFound {
        /// Name as given.
        program: OsString,
    },
    /// The file exists but cannot be executed.
    #[error("cannot execute '{}': {reason}", .path.display())]
    NotExecutable {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: &'static str,
    },
    /// `execve(2)` failed.
    #[error("cannot execute '{}'", .path.display())]
    Exec {
        /// The file.
        path: PathBuf,
        /// The kernel's reason.
        source: io::Error,
    },
    /// A setting that cannot be applied.
    #[error("cannot apply setting '{setting}': {problem}")]
    InvalidSetting {
        /// Its name or value.
        setting: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// Text with a NUL byte where the kernel ends strings with one.
    #[error("'{}' contains a NUL byte, which no argument or variable can carry", .text.display())]
    Nul {
        /// The argument, or the variable's name.
        text: OsString,
    },
    /// A file for the standard streams could not be opened.
    #[error("cannot open '{}' for the program's {stream}", .path.display())]
    Stream {
        /// The file.
        path: PathBuf,
        /// `input` or `output`.
        stream: &'static str,
        /// The kernel's reason.
        source: io::Error,
    },
    /// What an earlier command left behind still runs.
    #[error(
        "process {pid} ({name}), which the command started and left running, still runs: no other run starts beside it"
    )]
    LeftRunning {
        /// Its id.
        pid: i32,
        /// Its name.
        name: String,
    },
    /// No new process could be created.
    #[error("cannot start another process (a limit on processes or memory?)")]
    Fork(#[source] io::Error),
    /// Waiting or signalling failed.
    #[error("cannot {action} process {pid}")]
    Process {
        /// Its id.
        pid: i32,
        /// The attempted action.
        action: &'static str,
        /// The kernel's reason.
        source: io::Error,
    },
    /// A signal handler was refused.
    #[error("cannot install a signal handler")]
    Handler(#[source] io::Error),
}

impl Error {
    /// The exit status that a shell would give: 127 not found, 126 found but not executable,
    /// 1 for anything that is not the command's fault.
    #[must_use]
    pub fn shell_status(&self) -> u8 {
        match self {
            Self::NotFound { .. } => 127,
            Self::Exec { source, .. } if source.raw_os_error() == Some(libc::ENOENT) => 127,
            Self::NotExecutable { .. } | Self::Exec { .. } => 126,
            _ => 1,
        }
    }
}

impl Launch {
    /// The program and its arguments, as text for people.
    #[must_use]
    pub fn words(&self) -> Vec<String> {
        let words = std::iter::once(&self.program).chain(&self.args);
        words
            .map(|word| word.to_string_lossy().into_owned())
            .collect()
    }

    /// A launch of `command` (program first) that inherits everything. `None` when it is empty.
    #[must_use]
    pub fn from_command(command: &[OsString]) -> Option<Self> {
        let (program, args) = command.split_first()?;
        Some(Self {
            program: program.clone(),
            args: args.to_vec(),
            ..Self::default()
        })
    }

    /// Forks a child that waits before `execve(2)`.
    ///
    /// # Errors
    /// If the program is missing or not executable, a setting or argument is invalid, a stream's
    /// file cannot be opened, no process can be created, or one that an earlier command left
    /// behind still runs.
    pub fn spawn_gated(&self) -> Result<Gated, Error> {
        if let Some((pid, name)) = still_running().into_iter().next() {
            return Err(Error::LeftRunning { pid, name });
        }
        let environment =
            environment::with_settings(std::env::vars_os().collect(), &self.settings)?;
        let path = lookup::find(&self.program, &environment)?;
        let streams = self.open_streams()?;
        let (wait, open) = io::pipe().map_err(Error::Fork)?;
        let (outcome, report) = io::pipe().map_err(Error::Fork)?;
        let image = sys::Image {
            path: &c_string(path.as_os_str())?,
            arguments: &self.arguments()?,
            environment: &environment::to_c(&environment)?,
            streams: streams
                .each_ref()
                .map(|stream| stream.as_ref().map(AsFd::as_fd)),
            huge_pages: self.huge_pages(),
            nodes: self.nodes()?,
        };
        let gate = sys::Gate {
            wait: wait.as_fd(),
            open: open.as_fd(),
            report: report.as_fd(),
        };
        let pid = sys::fork_gated(&image, &gate).map_err(Error::Fork)?;
        orphans::started(pid);
        Ok(Gated::new(pid, path, open, outcome))
    }

    /// The file that will be executed.
    ///
    /// # Errors
    /// If the program is missing or not executable, or a setting is invalid.
    pub fn path(&self) -> Result<PathBuf, Error> {
        lookup::find(&self.program, &self.environment()?)
    }

    /// Starts the program at once.
    ///
    /// # Errors
    /// As [`Launch::spawn_gated`] and [`Gated::release`].
    pub fn spawn(&self) -> Result<Running, Error> {
        self.spawn_gated()?.release()
    }

    /// The program's environment.
    ///
    /// # Errors
    /// [`Error::InvalidSetting`].
    pub fn environment(&self) -> Result<Environment, Error> {
        environment::with_settings(std::env::vars_os().collect(), &self.settings)
    }

    /// The last huge-page setting; [`environment::with_settings`] accepts no other words.
    fn huge_pages(&self) -> sys::HugePages {
        let mut modes = self
            .settings
            .0
            .iter()
            .rev()
            .filter_map(|setting| match setting {
                Setting::Thp { mode } => Some(mode.as_str()),
                _ => None,
            });
        match modes.next() {
            Some("advised") => sys::HugePages::AdvisedOnly,
            Some(_) => sys::HugePages::Never,
            None => sys::HugePages::Inherit,
        }
    }

    /// The last setting of NUMA nodes.
    fn nodes(&self) -> Result<Option<Nodes>, Error> {
        let settings = self.settings.0.iter().rev();
        let mut options = settings.filter_map(|setting| match setting {
            Setting::Numa { options } => Some(options),
            _ => None,
        });
        options
            .next()
            .map(|options| nodes::parse(options))
            .transpose()
    }

    fn arguments(&self) -> Result<Vec<CString>, Error> {
        std::iter::once(&self.program)
            .chain(&self.args)
            .map(|text| c_string(text))
            .collect()
    }

    /// Replacements of standard input, output and error.
    fn open_streams(&self) -> Result<[Option<File>; 3], Error> {
        let null = PathBuf::from("/dev/null");
        let input = match &self.input {
            Input::Inherit => None,
            Input::Null => Some(open_input(null.clone())?),
            Input::File(path) => Some(open_input(path.clone())?),
        };
        let output = match &self.output {
            Output::Inherit => None,
            Output::Stderr => Some(our_stderr()?),
            Output::Null => Some(open_output(null)?),
            Output::Capture(path) => Some(open_output(path.clone())?),
        };
        let error = output
            .as_ref()
            .map(File::try_clone)
            .transpose()
            .map_err(Error::Fork)?;
        Ok([input, output, error])
    }
}

fn open_input(path: PathBuf) -> Result<File, Error> {
    File::open(&path).map_err(|source| Error::Stream {
        path,
        stream: "input",
        source,
    })
}

fn our_stderr() -> Result<File, Error> {
    let copy = io::stderr().as_fd().try_clone_to_owned();
    copy.map(File::from).map_err(Error::Fork)
}

fn open_output(path: PathBuf) -> Result<File, Error> {
    File::create(&path).map_err(|source| Error::Stream {
        path,
        stream: "output",
        source,
    })
}

fn c_string(text: &OsStr) -> Result<CString, Error> {
    CString::new(text.as_bytes()).map_err(|_| Error::Nul {
        text: text.to_owned(),
    })
}

#[cfg(test)]
mod tests;
