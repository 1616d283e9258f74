//! Restores what killed processes of ours left changed, at the next start of a command.
//!
//! Every command that changes or observes calls this first. It looks for journals
//! ([`crate::journal`]) in the folders where this user's processes keep them, now and in earlier
//! versions; without any it costs a few system calls. Page sizes of a process that still runs stay,
//! because a controller leaves them on purpose: `huge balance --undo` reverts them.

use crate::delays::switch;
use crate::hugepages::journal as page_sizes;
use crate::journal::{self, Journal, Owner, Record};
use crate::memcg::temporary as control_group;
use crate::own_folder;
use crate::swap_area;
use crate::tracefs::guard::{self, journal as tracing};
use crate::tracefs::{Tracefs, control::Control};
use std::fmt;
use std::path::{Path, PathBuf};

/// Where journals are, and the file systems that they refer to.
#[derive(Clone, Debug)]
pub struct Places {
    /// Folders of journals.
    pub folders: Vec<PathBuf>,
    /// `/proc`.
    pub proc: PathBuf,
    /// `/sys`.
    pub sys: PathBuf,
    /// The top of tracefs; `None` to look for it.
    pub tracefs: Option<PathBuf>,
}

impl Places {
    /// Places of this machine and user.
    #[must_use]
    pub fn this() -> Self {
        let mut folders = vec![journal::machine_folder()];
        let others = own_folder::runtime().into_iter();
        for folder in others.chain([own_folder::temporary()]) {
            if !folders.contains(&folder) {
                folders.push(folder);
            }
        }
        Self {
            folders,
            proc: "/proc".into(),
            sys: "/sys".into(),
            tracefs: None,
        }
    }
}

/// Changes of a killed process that were undone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restored {
    /// The journal that recorded them.
    pub journal: PathBuf,
    /// The killed process, if the journal names it.
    pub owner: Option<Owner>,
    /// Number of settings restored and instances removed.
    pub count: usize,
    /// What could not be restored, and why.
    pub remaining: Vec<String>,
}

impl fmt::Display for Restored {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.owner {
            Some(owner) => write!(out, "{} (process {})", owner.who, owner.pid)?,
            None => write!(out, "an earlier command")?,
        }
        let settings = if self.count == 1 {
            "setting"
        } else {
            "settings"
        };
        write!(out, " was killed: restored {} {settings}", self.count)?;
        for remaining in &self.remaining {
            write!(out, "\n  not restored: {remaining}")?;
        }
        Ok(())
    }
}

/// Restores what killed processes of this user left changed on this machine. Returns one entry for
/// each journal that had something to restore or could not be processed; journals of running
/// processes are left alone.
#[must_use]
pub fn restore() -> Vec<Restored> {
    restore_in(&Places::this())
}

/// The same for other places.
#[must_use]
pub fn restore_in(places: &Places) -> Vec<Restored> {
    // A folder that is not ours has no journals of ours.
    let files = |folder: &PathBuf| journal::files(folder, is_journal).unwrap_or_default();
    let paths = places.folders.iter().flat_map(files);
    let restored = paths.filter_map(|path| match restore_one(places, &path) {
        Ok(restored) => restored,
        Err(why) => Some(Restored {
            journal: path,
            owner: None,
            count: 0,
            remaining: vec![why.to_string()],
        }),
    });
    restored.collect()
}

fn is_journal(name: &str) -> bool {
    [tracing::NAME, switch::JOURNAL].contains(&name)
        || page_sizes::is_name(name)
        || control_group::is_name(name)
        || swap_area::is_name(name)
}

type Outcome = Result<Option<Restored>, Box<dyn std::error::Error>>;

fn restore_one(places: &Places, path: &Path) -> Outcome {
    let Some(mut journal) = Journal::abandoned(path)? else {
        return Ok(None);
    };
    let name = path.file_name().and_then(|name| name.to_str());
    if name == Some(switch::JOURNAL) {
        return restore_switch(places, journal);
    }
    let record = journal.record()?;
    let owner = record.and_then(|record| record.owner);
    if owner.as_ref().is_some_and(Owner::is_at_work) {
        return Ok(None);
    }
    match name {
        Some(name) if control_group::is_name(name) => restore_groups(places, journal, owner),
        Some(name) if swap_area::is_name(name) => restore_swap(journal, owner),
        Some(tracing::NAME) => restore_tracing(places, journal, owner),
        _ => restore_page_sizes(places, journal, owner),
    }
}

fn restore_switch(places: &Places, mut journal: Journal) -> Outcome {
    let owner = journal.record()?.and_then(|record| record.owner);
    let is_back = switch::put_back(&mut journal, &places.proc.join(switch::SWITCH))?;
    Ok(is_back.then(|| Restored {
        journal: journal.path().to_owned(),
        owner,
        count: 1,
        remaining: Vec::new(),
    }))
}

fn restore_groups(places: &Places, journal: Journal, owner: Option<Owner>) -> Outcome {
    let objects = |record: &Record| record.groups.clone();
    take_away(journal, owner, objects, |group| {
        let why = control_group::take_away(group, control_group::Cache::Evict, &places.sys);
        why.map_err(|why| format!("{}: {why}", group.folder.display()))
    })
}

fn restore_swap(journal: Journal, owner: Option<Owner>) -> Outcome {
    let objects = |record: &Record| record.swaps.clone();
    take_away(journal, owner, objects, |path| {
        let why = swap_area::take_away(path);
        why.map_err(|why| format!("{}: {why}", path.display()))
    })
}

/// Takes away the noted objects by `one`, which tells whether there was one, or why it stays.
fn take_away<T>(
    mut journal: Journal,
    owner: Option<Owner>,
    objects: impl Fn(&Record) -> Vec<T>,
    one: impl Fn(&T) -> Result<bool, String>,
) -> Outcome {
    let path = journal.path().to_owned();
    let record = journal.record()?.unwrap_or_default();
    let mut restored = Restored {
        journal: path,
        owner,
        count: 0,
        remaining: Vec::new(),
    };
    let is_now = record.is_of_boot(&journal::boot_id());
    for object in objects(&record).iter().filter(|_| is_now) {
        match one(object) {
            Ok(was_there) => restored.count += usize::from(was_there),
            Err(why) => restored.remaining.push(why),
        }
    }
    if restored.remaining.is_empty() {
        journal.remove()?;
    }
    Ok((restored.count > 0 || !restored.remaining.is_empty()).then_some(restored))
}

fn restore_tracing(places: &Places, journal: Journal, owner: Option<Owner>) -> Outcome {
    let path = journal.path().to_owned();
    let mut journal = tracing::Journal::abandoned(journal);
    match journal.entries()? {
        Some(entries) if entries.boot == journal::boot_id() => {}
        Some(_) => {
            journal.empty()?;
            return Ok(None);
        }
        None => return Ok(None),
    }
    let tracefs = match &places.tracefs {
        Some(top) => Tracefs::at(top),
        None => Tracefs::find()?,
    };
    let top: Control = tracefs.control();
    let recovered = guard::recover_from(&mut journal, &top)?;
    Ok(recovered.map(|recovered| Restored {
        journal: path,
        owner,
        count: recovered.files + recovered.instances,
        remaining: (recovered.differences.iter().map(ToString::to_string)).collect(),
    }))
}

fn restore_page_sizes(places: &Places, journal: Journal, owner: Option<Owner>) -> Outcome {
    let path = journal.path().to_owned();
    let (count, left) = crate::hugepages::left::restore_settings(journal, &places.sys)?;
    let remaining = left.iter().map(|path| {
        let path = path.display();
        format!("{path}: another program has changed it since, so it was left as it is")
    });
    let restored = Restored {
        journal: path,
        owner,
        count: usize::try_from(count).unwrap_or(usize::MAX),
        remaining: remaining.collect(),
    };
    Ok((restored.count > 0 || !restored.remaining.is_empty()).then_some(restored))
}

#[cfg(test)]
mod tests;
