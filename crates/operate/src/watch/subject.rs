//! The watched subject: a command that we start, or an existing process.

use super::End;
use crate::destination;
use anyhow::{Context, bail};
use pagewise_linux::own_folder;
use pagewise_linux::proc::ProcRoot;
use pagewise_linux::process::{Finished, Input, Launch, Output, Running};
use pagewise_model::answer;
use pagewise_model::run::Ending;
use pagewise_model::secrets;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// What to watch.
pub enum Whom {
    /// Existing processes, with all their descendants; at least one.
    Processes(Vec<i32>),
    /// A program that is started.
    Program {
        /// What to start.
        launch: Launch,
        /// File for its output; by default the output is not redirected.
        output: Option<PathBuf>,
        /// Whether its output must be redirected because our standard output is in use.
        redirect: bool,
    },
}

/// The watched process tree or trees.
pub struct Subject {
    /// Command line, or the process's name.
    name: String,
    /// The command; empty for existing processes.
    command: Vec<String>,
    kind: Kind,
}

enum Kind {
    Started {
        running: Running,
        output: Option<PathBuf>,
        /// Whether the user named the output's file.
        named: bool,
    },
    Found {
        first: i32,
        others: Vec<i32>,
    },
}

/// How it ended, for the final message.
pub struct SubjectEnd {
    /// How it ended, if the process was ours and has ended.
    pub finished: Option<Finished>,
    /// Where the command's output went.
    pub output: Option<PathBuf>,
    /// Note for the user.
    pub note: Option<String>,
    /// Whether the user or `--duration` ended it.
    pub was_asked: bool,
}

/// Time that a command gets to end after a request.
const GRACE: Duration = Duration::from_secs(3);

impl Subject {
    /// Starts the program, or checks that the process exists.
    ///
    /// # Errors
    /// If neither is possible.
    pub fn start(whom: Whom) -> anyhow::Result<Self> {
        match whom {
            Whom::Processes(pids) => Self::find(&pids),
            Whom::Program {
                launch,
                output,
                redirect,
            } => Self::launch(launch, output, redirect),
        }
    }

    fn find(pids: &[i32]) -> anyhow::Result<Self> {
        let proc = ProcRoot::default();
        let names = pids.iter().map(|&pid| name_of(&proc, pid));
        let names: Vec<String> = names.collect::<anyhow::Result<_>>()?;
        let Some((&first, others)) = pids.split_first() else {
            bail!("say which process to watch");
        };
        Ok(Self {
            name: names.join(", "),
            command: Vec::new(),
            kind: Kind::Found {
                first,
                others: others.to_vec(),
            },
        })
    }

    fn launch(mut launch: Launch, named: Option<PathBuf>, redirect: bool) -> anyhow::Result<Self> {
        let is_named = named.is_some();
        let output = match named {
            Some(file) => Some(file),
            None => redirect.then(output_file).transpose()?,
        };
        // Readable only by its owner and never another user's; kept open in case it is a pipe.
        let opened = output.as_deref().map(destination::begin).transpose()?;
        if let Some(file) = &opened {
            // What was opened and checked, wherever its name leads meanwhile.
            let open = format!("/proc/self/fd/{}", file.as_raw_fd());
            launch.output = Output::Capture(open.into());
            launch.input = Input::Null;
        }
        let command = launch.words();
        let running = launch.spawn()?;
        drop(opened);
        Ok(Self {
            name: command.join(" "),
            command,
            kind: Kind::Started {
                running,
                output,
                named: is_named,
            },
        })
    }

    /// Command line, or the process's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The subject as named in documents.
    #[must_use]
    pub fn named(&self) -> answer::Subject {
        answer::Subject {
            pids: self.processes(),
            ..answer::Subject::of_command(self.command.clone())
        }
    }

    /// Root of the first tree.
    #[must_use]
    pub fn pid(&self) -> i32 {
        match &self.kind {
            Kind::Started { running, .. } => running.pid(),
            Kind::Found { first, .. } => *first,
        }
    }

    /// Roots of all trees.
    #[must_use]
    pub fn processes(&self) -> Vec<i32> {
        std::iter::once(self.pid())
            .chain(self.others().iter().copied())
            .collect()
    }

    /// Roots of the others.
    #[must_use]
    pub fn others(&self) -> &[i32] {
        match &self.kind {
            Kind::Started { .. } => &[],
            Kind::Found { others, .. } => others,
        }
    }

    /// Whether we started it.
    #[must_use]
    pub fn is_ours(&self) -> bool {
        matches!(self.kind, Kind::Started { .. })
    }

    /// Waits for a command of ours, after requesting its end unless `end` shows that it ended by
    /// itself. An existing process is left alone.
    pub fn end(self, end: Option<End>) -> SubjectEnd {
        let was_asked = end != Some(End::TreeEnded);
        let Kind::Started {
            mut running,
            output,
            named,
        } = self.kind
        else {
            return SubjectEnd {
                finished: None,
                output: None,
                note: None,
                was_asked,
            };
        };
        let (finished, note) = match ask_to_end(&mut running, was_asked) {
            Ok(Some(finished)) => (Some(finished), None),
            Ok(None) => (None, Some(still_runs(&running))),
            Err(error) => (
                None,
                Some(format!("How the command ended is unknown: {error}.")),
            ),
        };
        SubjectEnd {
            finished,
            output: output.filter(|file| named || !remove_if_empty(file)),
            note,
            was_asked,
        }
    }
}

/// Command line of a process, or its name if it has none.
fn name_of(proc: &ProcRoot, pid: i32) -> anyhow::Result<String> {
    let Some(stat) = proc.stat(pid)? else {
        bail!("there is no process {pid} (ps lists them)");
    };
    let words = proc.cmdline(pid)?.unwrap_or_default();
    let line = words.iter().map(|word| word.to_string_lossy().into_owned());
    let line = secrets::masked(&line.collect::<Vec<_>>());
    Ok(match line.is_empty() {
        true => stat.comm,
        false => line.join(" "),
    })
}

/// Removes a file if it is empty; returns whether it is gone.
fn remove_if_empty(file: &Path) -> bool {
    let is_empty = std::fs::metadata(file).is_ok_and(|metadata| metadata.len() == 0);
    is_empty && std::fs::remove_file(file).is_ok()
}

fn ask_to_end(
    running: &mut Running,
    ask: bool,
) -> Result<Option<Finished>, pagewise_linux::process::Error> {
    if let Some(finished) = running.try_wait()? {
        return Ok(Some(finished));
    }
    if ask {
        running.signal(libc::SIGTERM)?;
    }
    running.wait_for(GRACE)
}

fn still_runs(running: &Running) -> String {
    let pid = running.pid();
    format!(
        "The command did not terminate when asked and still runs as process {pid}: kill -9 {pid}"
    )
}

impl SubjectEnd {
    /// The command's own status if it ended by itself, as a shell would report it; otherwise 0.
    #[must_use]
    pub fn status(&self) -> i32 {
        match &self.finished {
            Some(finished) if !self.was_asked => finished.ending.shell_status(),
            _ => 0,
        }
    }

    /// How the command ended, in words.
    #[must_use]
    pub fn words(&self) -> Option<String> {
        match self.finished?.ending {
            Ending::Exited(status) => Some(format!("ended with status {status}")),
            Ending::Killed(_) if self.was_asked => Some("ended by pagewise".to_string()),
            Ending::Killed(signal) => Some(format!("killed by signal {signal}")),
            Ending::Running => None,
        }
    }
}

/// A new file in the user's cache folder for a command's output.
fn output_file() -> anyhow::Result<PathBuf> {
    let folder = cache_folder();
    own_folder::make(&folder).with_context(|| {
        let folder = folder.display();
        format!("nowhere to put the command's output: cannot use {folder}; name a file with --command-output")
    })?;
    remove_old(&folder);
    Ok(folder.join(format!("watch-{}.out", std::process::id())))
}

/// Outputs of earlier commands that are kept.
const KEPT_OUTPUTS: usize = 5;

/// Removes the outputs of earlier commands, but for the last ones and those of commands that are
/// still watched.
fn remove_old(folder: &Path) {
    let proc = ProcRoot::default();
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut old: Vec<(SystemTime, PathBuf)> = entries
        .filter_map(|entry| {
            let path = entry.path();
            let name = path.file_name()?.to_str()?;
            let pid = name.strip_prefix("watch-")?.strip_suffix(".out")?;
            let pid: i32 = pid.parse().ok()?;
            let is_watched = !matches!(proc.stat(pid), Ok(None));
            let written = entry.metadata().ok()?.modified().ok()?;
            (!is_watched).then_some((written, path))
        })
        .collect();
    old.sort();
    let surplus = (old.len() + 1).saturating_sub(KEPT_OUTPUTS);
    for (_, path) in &old[..surplus] {
        // One that cannot be removed does no harm.
        let _ = std::fs::remove_file(path);
    }
}

/// `pagewise` in `$XDG_CACHE_HOME` or `~/.cache`, otherwise a temporary folder of ours.
fn cache_folder() -> PathBuf {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    set("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .or_else(|| set("HOME").map(|home| PathBuf::from(home).join(".cache")))
        .map_or_else(own_folder::temporary, |cache| cache.join("pagewise"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn outputs_of_earlier_watches_do_not_pile_up() {
        let folder = tempfile::tempdir().unwrap();
        let path = |pid: u32| folder.path().join(format!("watch-{pid}.out"));
        // Numbers that no process can have (pid_max, proc(5)), the first written first.
        let first = 5_000_000;
        for number in 0..8 {
            let file = fs::File::create(path(first + number)).unwrap();
            let written = SystemTime::UNIX_EPOCH + Duration::from_secs(number.into());
            file.set_modified(written).unwrap();
        }
        let others = [path(std::process::id()), folder.path().join("watch-x.out")];
        others
            .iter()
            .for_each(|other| fs::write(other, "").unwrap());
        remove_old(folder.path());
        let kept: Vec<u32> = (0..8)
            .filter(|number| path(first + number).exists())
            .collect();
        assert_eq!(kept, [4, 5, 6, 7]);
        assert!(others.iter().all(|other| other.exists()));
    }
}
