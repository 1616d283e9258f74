//! Changes outside our own process, written to a file before they are made, so that they can be
//! undone however we end.
//!
//! A text file, mode 0600, one JSON object per line: the owner, then each file or object about to
//! be changed and its earlier state. A process that changes something holds a lock on the file as
//! long as it lives: a journal that can be locked and is not empty was left by a killed process
//! ([`crate::left_behind`]). Several users of one setting share the lock, and the last one restores
//! the setting.
//!
//! ```text
//! {"owner":{"who":"trace","pid":4242,"start_ticks":171753,"boot_id":"6fd1b2c3-…"}}
//! {"instance":"pagewise-4242"}                                folder below instances/ of tracefs
//! {"setting":{"path":"current_tracer","before":"nop\n"}}      a file, its earlier content
//! {"group":{"folder":"/sys/fs/cgroup/memory/pagewise-4242","home":"/sys/fs/cgroup/memory/job"}}
//! {"swap":"/var/tmp/.pagewise-swap-4242"}                     a swap file
//! {"slot":{"address":"0x7f0000200000","change":"split","before":{…}}}   pages of `subject`
//! ```
//!
//! A line cut off by a crash is the last one and is ignored: its change was not started. No noted
//! change survives a reboot, so a journal of another boot has nothing to restore, and lines are
//! passed to the kernel without waiting for the disk, which takes milliseconds.

mod record;

pub use record::{Line, MadeGroup, Owner, Record, Setting, SlotChange, Subject};

use crate::own_folder;
use crate::proc::ProcRoot;
use crate::sys::file_lock::{lock_soon, try_lock, try_share};
use crate::sys::process::effective_user;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Why a journal cannot be kept or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file could not be opened, created or written.
    #[error("cannot {action} {}: {source}", path.display())]
    File {
        /// The attempted action.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The kernel's reason.
        source: io::Error,
    },
    /// The folder is not ours: its contents may be anyone's.
    #[error(
        "cannot keep journals in {}: {source}; set XDG_RUNTIME_DIR to a folder of your own",
        path.display()
    )]
    Folder {
        /// The folder.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// Its owner is alive.
    #[error(
        "{} is in use by a running controller: stop it first (Ctrl-C or SIGTERM)",
        .0.display()
    )]
    Held(PathBuf),
    /// A line is not valid in a journal.
    #[error("{}:{line}: not a line of a journal: {text:?}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// Line, from 1.
        line: usize,
        /// The line's text.
        text: String,
    },
}

/// Who else may use the journal at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lock {
    /// No one.
    Alone,
    /// Other processes of ours with the same wish.
    Shared,
}

/// A journal that no other process has open, except those that share it.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
}

/// How long another process may take to check whether a journal was left behind.
const SHORT: Duration = Duration::from_secs(1);

impl Journal {
    /// Opens and locks the journal `name` in `folder`; both are created if missing.
    ///
    /// # Errors
    /// [`Error::Held`] if another process has it, [`Error::Folder`], [`Error::File`].
    pub fn open(folder: &Path, name: &str, lock: Lock) -> Result<Self, Error> {
        own_folder::make(folder).map_err(|source| not_ours(folder, source))?;
        let path = folder.join(name);
        let failed = |source| file_error("open", &path, source);
        loop {
            let file = open(&path, OpenOptions::new().create(true)).map_err(failed)?;
            let is_ours = match lock {
                Lock::Alone => lock_soon(file.as_fd()),
                Lock::Shared => share_soon(&file),
            };
            if !is_ours.map_err(failed)? {
                return Err(Error::Held(path));
            }
            // The previous holder of the lock may have removed the file.
            if is_at(&file, &path) {
                return Ok(Self { path, file });
            }
        }
    }

    /// The journal at `path` if no process has it, without waiting; `None` if it is missing or its
    /// owner is alive.
    ///
    /// # Errors
    /// [`Error::File`].
    pub fn abandoned(path: &Path) -> Result<Option<Self>, Error> {
        let failed = |source| file_error("open", path, source);
        let file = match open(path, &mut OpenOptions::new()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened.map_err(failed)?,
        };
        let is_free = try_lock(file.as_fd()).map_err(failed)? && is_at(&file, path);
        let path = path.to_path_buf();
        Ok(is_free.then_some(Self { path, file }))
    }

    /// Its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its content; `None` if it is empty.
    ///
    /// # Errors
    /// [`Error::File`], [`Error::Line`].
    pub fn record(&mut self) -> Result<Option<Record>, Error> {
        let text = text(&mut self.file).map_err(|source| file_error("read", &self.path, source))?;
        Record::parse(&self.path, &text)
    }

    /// Notes what is about to be changed.
    ///
    /// # Errors
    /// [`Error::File`]: then nothing must be changed.
    pub fn note(&mut self, line: &Line) -> Result<(), Error> {
        write_line(&mut self.file, line).map_err(|source| file_error("write", &self.path, source))
    }

    /// Cuts off an unfinished last line, left by a process that died while writing it, so that the
    /// next line starts afresh. Returns the bytes that remain.
    ///
    /// # Errors
    /// [`Error::File`].
    pub fn drop_cut_line(&mut self) -> Result<u64, Error> {
        drop_cut_line(&mut self.file).map_err(|source| file_error("write", &self.path, source))
    }

    /// Empties it: everything is restored.
    ///
    /// # Errors
    /// [`Error::File`].
    pub fn empty(&mut self) -> Result<(), Error> {
        let emptied = self.file.set_len(0);
        emptied.map_err(|source| file_error("write", &self.path, source))
    }

    /// Whether all others that shared it are gone. If not, we no longer share it.
    ///
    /// # Errors
    /// If the file system does not support locks.
    pub fn is_last(&self) -> io::Result<bool> {
        try_lock(self.file.as_fd())
    }

    /// Removes it: nothing is left to restore.
    ///
    /// # Errors
    /// [`Error::File`].
    pub fn remove(self) -> Result<(), Error> {
        remove(&self.path)
    }
}

/// Whether process `pid` is alive and is the one that started at `start_ticks`.
pub(crate) fn is_running(pid: i32, start_ticks: u64) -> bool {
    let stat = ProcRoot::default().stat(pid).ok().flatten();
    stat.is_some_and(|stat| stat.is_alive() && stat.start_ticks == start_ticks)
}

/// The id of this boot.
#[must_use]
pub fn boot_id() -> String {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id");
    text.map(|text| text.trim().to_owned()).unwrap_or_default()
}

/// Folder for journals of machine-wide settings, the same for every user who may change them.
#[must_use]
pub fn machine_folder() -> PathBuf {
    if effective_user() == 0 {
        return "/run/pagewise".into();
    }
    let variable = |name: &str| {
        let value = std::env::var_os(name).filter(|value| !value.is_empty());
        value.map(PathBuf::from)
    };
    let state = || {
        let named = variable("XDG_STATE_HOME");
        let state = named.or_else(|| Some(variable("HOME")?.join(".local/state")));
        state.map(|state| state.join("pagewise"))
    };
    let folder = own_folder::runtime().or_else(state);
    folder.unwrap_or_else(own_folder::temporary)
}

/// Folder for journals of this user's processes.
#[must_use]
pub fn process_folder() -> PathBuf {
    own_folder::runtime().unwrap_or_else(own_folder::temporary)
}

/// Reads the journal at `path`, locked or not; `None` if it is empty.
///
/// # Errors
/// [`Error::File`], [`Error::Line`].
pub fn read(path: &Path) -> Result<Option<Record>, Error> {
    let file = own_folder::open(path, OpenOptions::new().read(true));
    let read = file.and_then(|mut file| text(&mut file));
    let text = read.map_err(|source| file_error("read", path, source))?;
    Record::parse(path, &text)
}

/// Whether no process has the journal at `path`.
///
/// # Errors
/// [`Error::File`].
pub fn is_free(path: &Path) -> Result<bool, Error> {
    let file = own_folder::open(path, OpenOptions::new().read(true));
    let is_free = file.and_then(|file| lock_soon(file.as_fd()));
    is_free.map_err(|source| file_error("lock", path, source))
}

/// Removes the journal at `path`.
///
/// # Errors
/// [`Error::File`].
pub fn remove(path: &Path) -> Result<(), Error> {
    fs::remove_file(path).map_err(|source| file_error("remove", path, source))
}

/// Files in `folder` whose names pass `is_name`, in order; empty if the folder is missing.
///
/// # Errors
/// [`Error::Folder`] if it is not ours.
pub fn files(folder: &Path, is_name: impl Fn(&str) -> bool) -> Result<Vec<PathBuf>, Error> {
    match own_folder::check(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        checked => checked.map_err(|source| not_ours(folder, source))?,
    }
    let files = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = files
        .filter(|file| file.file_name().to_str().is_some_and(&is_name))
        .map(|file| file.path())
        .collect();
    paths.sort();
    Ok(paths)
}

fn not_ours(folder: &Path, source: io::Error) -> Error {
    let path = folder.to_path_buf();
    Error::Folder { path, source }
}

fn file_error(action: &'static str, path: &Path, source: io::Error) -> Error {
    let path = path.to_path_buf();
    Error::File {
        action,
        path,
        source,
    }
}

fn open(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    own_folder::open(path, options.read(true).append(true))
}

/// Whether `file` is still the file at `path`.
fn is_at(file: &File, path: &Path) -> bool {
    let (here, there) = (file.metadata(), fs::symlink_metadata(path));
    here.is_ok_and(|here| there.is_ok_and(|there| here.ino() == there.ino()))
}

/// Shares the lock; an exclusive holder has it only for a moment, to check or to restore.
fn share_soon(file: &File) -> io::Result<bool> {
    let end = Instant::now() + SHORT;
    loop {
        let is_ours = try_share(file.as_fd())?;
        if is_ours || Instant::now() >= end {
            return Ok(is_ours);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn text(file: &mut File) -> io::Result<String> {
    let mut text = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut text)?;
    Ok(crate::pseudo_file::lossy(text))
}

fn drop_cut_line(file: &mut File) -> io::Result<u64> {
    let mut text = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut text)?;
    let whole = text.iter().rposition(|&byte| byte == b'\n');
    let whole = whole.map_or(0, |newline| newline + 1) as u64;
    if file.metadata()?.len() > whole {
        file.set_len(whole)?;
    }
    Ok(whole)
}

/// Adds a line in one write, or nothing if the disk is full.
fn write_line(file: &mut File, line: &Line) -> io::Result<()> {
    let mut text = serde_json::to_vec(line)?;
    text.push(b'\n');
    let before = file.metadata()?.len();
    file.write_all(&text).inspect_err(|_| {
        // If this fails too, the next process that opens the journal drops the cut line.
        let _ = file.set_len(before);
    })
}

#[cfg(test)]
mod tests;
