//! A memory cgroup for one run: next to the one that sets the effective limit, with a larger limit,
//! and removed afterwards.
//!
//! It is noted in a journal ([`crate::journal`]) before it is created, so that the next command
//! removes it if we are killed. Where it limited a run, its page cache is evicted before it is removed:
//! pages that stayed would serve the next reader of the same files, whose limit is smaller.

use super::{MemoryCgroup, Version, limit_in};
use crate::journal::{self, Journal, Line, Lock, MadeGroup, Owner, machine_folder};
use crate::pseudo_file;
use pagewise_model::units::Bytes;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Names of journals and of folders, before the number of the process.
const JOURNAL: &str = "memory-cgroup-";
const FOLDER: &str = "pagewise-";
const PROCESSES: &str = "cgroup.procs";
/// How long a cgroup that has become empty may report that it is busy.
const PATIENCE: Duration = Duration::from_secs(1);

/// Other limits of a version 2 cgroup, which a run in another one keeps. `memory.high` is not among
/// them, as it is a limit of memory.
const KEPT: [&str; 10] = [
    "cpu.max",
    "cpu.weight",
    "cpuset.cpus",
    "cpuset.mems",
    "io.max",
    "io.weight",
    "memory.swap.max",
    "memory.swap.high",
    "memory.zswap.max",
    "pids.max",
];

/// Why no cgroup with a larger limit can be created.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No limit of memory is set.
    #[error("no control group that it starts in limits its memory")]
    Unlimited,
    /// The limit is at the top of the hierarchy visible to us, or above the process's own cgroup.
    #[error(
        "the limit is set outside of what can be changed from here: that of a container, or of a \
             group above"
    )]
    OutOfReach,
    /// A folder or file that cannot be written.
    #[error("that takes root and a control group that can be written ({}: {source})", path.display())]
    Write {
        /// The path.
        path: PathBuf,
        /// The kernel's reason.
        source: io::Error,
    },
    /// The journal could not be written, so nothing was changed.
    #[error(transparent)]
    Journal(#[from] journal::Error),
    /// A cgroup that cannot be read.
    #[error(transparent)]
    Read(#[from] pseudo_file::Error),
}

/// Where a cgroup with a larger limit can be created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    version: Version,
    /// The folder in which to create it.
    parent: PathBuf,
    /// The cgroup whose processes it takes.
    home: PathBuf,
    /// The limit in effect today.
    pub limit: Bytes,
    /// The lowest limit above it, which caps any larger limit.
    pub most: Option<Bytes>,
}

/// A cgroup that we created. Removed when dropped.
#[derive(Debug)]
pub struct Temporary {
    version: Version,
    group: MadeGroup,
    journal: Option<Journal>,
    cache: Cache,
}

/// What becomes of the page cache that is charged to a cgroup when it is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cache {
    /// It would serve the next reader of the same files, whose limit is smaller.
    Evict,
    /// It was read without a limit of ours.
    Leave,
}

impl MemoryCgroup {
    /// Where a cgroup with a larger limit can be created for processes of this one.
    ///
    /// # Errors
    /// [`Error::Unlimited`], [`Error::OutOfReach`], [`Error::Read`]; [`Error::Write`] if we may not
    /// write to the folder.
    pub fn beside_limit(&self) -> Result<Place, Error> {
        let (limiting, limit) = self.limiting()?.ok_or(Error::Unlimited)?;
        // In version 2 a process would leave the groups in between, with all their other limits.
        let between = self.version == Version::V2 && limiting != self.folder;
        let parent = match limiting.parent() {
            Some(parent) if limiting != self.top && !between => parent.to_path_buf(),
            _ => return Err(Error::OutOfReach),
        };
        let mut most: Option<Bytes> = None;
        for folder in parent
            .ancestors()
            .take_while(|at| at.starts_with(&self.top))
        {
            let above = limit_in(&folder.join(self.version.limit()))?;
            most = most.into_iter().chain(above).min();
        }
        let place = Place {
            version: self.version,
            parent,
            home: self.folder.clone(),
            limit,
            most,
        };
        // Whether it can be created is found out by creating it.
        place.make("a check", limit).map(|_| place)
    }
}

impl MemoryCgroup {
    /// Where cgroups with any limits can be made for runs that start in this one: inside it, or in version
    /// 2, whose groups but the root have either processes or groups inside, next to it. `total` is the
    /// machine's memory.
    ///
    /// # Errors
    /// [`Error::OutOfReach`] at the top of what is visible in version 2, unless groups inside it have
    /// limits of memory.
    pub fn beside(&self, total: Bytes) -> Result<Place, Error> {
        let parent = match self.version {
            Version::V1 => self.folder.clone(),
            Version::V2 if self.folder == self.top => match self.limits_inside() {
                true => self.folder.clone(),
                false => return Err(Error::OutOfReach),
            },
            Version::V2 => self.folder.parent().unwrap_or(&self.top).to_path_buf(),
        };
        let limit = self.limit()?;
        Ok(Place {
            version: self.version,
            parent,
            home: self.folder.clone(),
            limit: limit.unwrap_or(total),
            most: limit,
        })
    }

    /// Whether groups inside this one have limits of memory (version 2).
    fn limits_inside(&self) -> bool {
        pseudo_file::setting(&self.folder.join("cgroup.subtree_control"))
            .is_some_and(|on| on.split_whitespace().any(|name| name == "memory"))
    }
}

impl Place {
    /// Creates a cgroup with this limit; `who` wants it, as a later command says if we are killed.
    ///
    /// # Errors
    /// [`Error::Journal`], [`Error::Write`].
    pub fn make(&self, who: &str, limit: Bytes) -> Result<Temporary, Error> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("{}-{number}", std::process::id());
        let group = MadeGroup {
            folder: self.parent.join(format!("{FOLDER}{name}")),
            home: self.home.clone(),
        };
        if crate::sys::process::effective_user() != 0 {
            return Err(Error::Write {
                path: self.parent.clone(),
                source: io::ErrorKind::PermissionDenied.into(),
            });
        }
        let journal_name = format!("{JOURNAL}{name}");
        let mut journal = Journal::open(&machine_folder(), &journal_name, Lock::Alone)?;
        journal.note(&Line {
            owner: Some(Owner::this(who)),
            group: Some(group.clone()),
            ..Line::default()
        })?;
        let made = Temporary {
            version: self.version,
            group,
            journal: Some(journal),
            cache: Cache::Evict,
        };
        let folder = &made.group.folder;
        fs::create_dir(folder).map_err(|source| failed(folder, source))?;
        if self.version == Version::V2 {
            KEPT.iter().try_for_each(|name| made.keep(name))?;
        }
        let file = folder.join(self.version.limit());
        fs::write(&file, limit.0.to_string()).map_err(|source| failed(&file, source))?;
        Ok(made)
    }
}

impl Temporary {
    /// The group, to read what it has counted.
    #[must_use]
    pub fn group(&self) -> MemoryCgroup {
        let folder = self.group.folder.clone();
        MemoryCgroup {
            version: self.version,
            top: folder.clone(),
            folder,
        }
    }

    /// Leaves the page cache as it is at the end: for a run whose memory we do not limit.
    #[must_use]
    pub fn with_cache_left(mut self) -> Self {
        self.cache = Cache::Leave;
        self
    }

    /// Moves a process in. Memory that it has touched so far stays charged to its old cgroup.
    ///
    /// # Errors
    /// [`Error::Write`].
    pub fn take(&self, pid: i32) -> Result<(), Error> {
        let file = self.group.folder.join(PROCESSES);
        fs::write(&file, pid.to_string()).map_err(|source| failed(&file, source))
    }

    /// Has its processes swapped as by default, also where the group around it wants that less (version 1;
    /// in version 2 the machine's setting holds for all).
    ///
    /// # Errors
    /// [`Error::Write`].
    pub fn swap_as_usual(&self) -> Result<(), Error> {
        const USUAL: &str = "60";
        let file = self.group.folder.join("memory.swappiness");
        match self.version {
            Version::V1 => fs::write(&file, USUAL).map_err(|source| failed(&file, source)),
            Version::V2 => Ok(()),
        }
    }

    /// Sets another limit; the kernel evicts what is beyond it. Returns whether the peak is that from now
    /// on (version 1; version 2 keeps the one since the start).
    ///
    /// # Errors
    /// [`Error::Write`]; then the former limit holds.
    pub fn limit_to(&mut self, limit: Bytes) -> Result<bool, Error> {
        let write = |file: &str, number: u64| {
            let file = self.group.folder.join(file);
            fs::write(&file, number.to_string()).map_err(|source| failed(&file, source))
        };
        write(self.version.limit(), limit.0)?;
        let restarts = self.version == Version::V1;
        let has_restarted = restarts && write("memory.max_usage_in_bytes", 0).is_ok();
        self.cache = Cache::Evict;
        Ok(has_restarted)
    }

    /// Copies the setting of its processes' home cgroup.
    fn keep(&self, name: &str) -> Result<(), Error> {
        let file = self.group.folder.join(name);
        let had = pseudo_file::setting(&self.group.home.join(name));
        match had {
            Some(had) if !had.is_empty() && pseudo_file::setting(&file).as_ref() != Some(&had) => {
                fs::write(&file, had).map_err(|source| failed(&file, source))
            }
            _ => Ok(()),
        }
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // If the cgroup stays, so does the journal, and the next command tries again.
        if take_away(&self.group, self.cache, Path::new("/sys")).is_ok()
            && let Some(journal) = self.journal.take()
        {
            let _ = journal.remove();
        }
    }
}

fn failed(path: &Path, source: io::Error) -> Error {
    let path = path.to_path_buf();
    Error::Write { path, source }
}

/// Whether a journal of this name is about cgroups.
pub(crate) fn is_name(name: &str) -> bool {
    name.starts_with(JOURNAL)
}

/// Returns the group's processes to their home and removes the group. Returns whether it existed.
///
/// # Errors
/// If it cannot be removed, or is not ours.
pub(crate) fn take_away(group: &MadeGroup, cache: Cache, sys: &Path) -> io::Result<bool> {
    let folder = &group.folder;
    let name = folder.file_name().and_then(|name| name.to_str());
    let is_ours = name.is_some_and(|name| name.starts_with(FOLDER)) && folder.starts_with(sys);
    if !is_ours {
        return Err(io::Error::other("not a control group that Pagewise makes"));
    }
    if !folder.is_dir() {
        return Ok(false);
    }
    let deadline = Instant::now() + PATIENCE;
    loop {
        let left = fs::read_to_string(folder.join(PROCESSES)).unwrap_or_default();
        for pid in left.split_whitespace() {
            // The process may just have ended.
            let _ = fs::write(group.home.join(PROCESSES), pid);
        }
        if cache == Cache::Evict {
            evict(folder);
        }
        match fs::remove_dir(folder) {
            Ok(()) => return Ok(true),
            Err(error) if Instant::now() >= deadline => return Err(error),
            Err(_) => std::thread::sleep(Duration::from_millis(5)),
        }
    }
}

/// Evicts the page cache charged to a group without processes. If the kernel does not, the charge
/// moves to the parent.
fn evict(folder: &Path) {
    for file in ["memory.force_empty", "memory.max"] {
        let file = folder.join(file);
        if file.exists() {
            let _ = fs::write(file, "0");
        }
    }
}

#[cfg(test)]
mod tests;
